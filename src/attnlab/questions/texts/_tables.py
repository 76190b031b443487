"""What a study of texts measures: every data set and its variables, named once."""

from __future__ import annotations

from attnlab.lab import Table, variable
from attnlab.papers.liu2021.word_settings import TF_IDF

STUDENTS = ("attention-pooling", "mean-pooling", TF_IDF)  # of the learning curves


class Lengths(Table, label="lengths"):
    """Training texts, some of very many (sentence)."""

    length = variable("words of a training text, known and unknown")


class Curves(Table, label="curves"):
    """Learning curves (student, seed, size); the attribute ``level`` is where labels are compared."""

    accuracy = variable("test accuracy")
    step_size = variable("step size of Adam that validation chose")
    weight_decay = variable("weight decay of the chosen fit")
    at_end = variable("whether its step size is an end of what was tried", optional=True)
    strength = variable("strength C of logistic regression that validation chose")
    settling = variable("relative fall of the loss over the last fifth of the steps")


class Needed(Table, label="needed"):
    """Labels that each student needs for the level, the attribute ``level``."""

    value = variable("labels needed")
    low = variable("low end of its interval")
    high = variable("high end of its interval")
    kind = variable("exact, at most, at least")


class Answered(Table, label="answers"):
    """What every student and variant says with all labels (student, seed, text); the attributes are
    ``size``, the number of labels, and ``majority``, the number of the largest training class.
    """

    said = variable("number of the class that is named")
    truth = variable("number of the right class")
    name = variable("names of the classes")


class Scores(Table, label="scores"):
    """How good each student's answers are (student, score), and those that always name the largest
    class, which is the student `MAJORITY`.
    """

    value = variable("the score, mean over seeds")
    low = variable("low end of its interval, for other seeds and other texts")
    high = variable("high end of its interval")


class Confused(Table, label="confusion"):
    """What the best student says of texts of each class (true, said); the attribute is ``student``."""

    share = variable("share of the texts of a class, mean over seeds")
    low = variable("low end of its interval over texts")
    high = variable("high end of its interval")
    texts = variable("test texts of the class")


class Tried(Table, label="variants"):
    """Variants of attention from the best to the worst (student); the attributes are ``size``,
    ``seeds``, ``steps``, ``texts`` and ``against``.
    """

    value = variable("test accuracy, mean over seeds")
    low = variable("low end of its interval, for other seeds and other texts")
    high = variable("high end of its interval")
    gain = variable("accuracy less that of the variant compared with")
    gain_low = variable("low end of its interval, seeds and texts paired")
    gain_high = variable("high end of its interval")
    entropy = variable("median entropy of attention")


class Training(Table, label="training"):
    """Curves along training (seed, step); the attribute ``best_step`` is that of the first seed."""

    loss = variable("training loss")
    accuracy = variable("training accuracy")
    loss_valid = variable("loss on validation texts")
    accuracy_valid = variable("accuracy on validation texts")
    accuracy_test = variable("accuracy on test texts")
    attended_purity = variable("purity of the top-attended word, mean over texts")
    attended_null = variable("purity that shuffled labels give that word")
    attended_excess = variable("the difference of the two")
    attended_frequency = variable("training texts that contain it")
    least_attended_purity = variable("purity of the least attended word, mean over texts")
    least_attended_null = variable("purity that shuffled labels give that word")
    least_attended_excess = variable("the difference of the two")
    least_attended_frequency = variable("training texts that contain it")


class Words(Table, label="words"):
    """Words of the highest score at the best step of the first seed (rank)."""

    word = variable("the word")
    score = variable("its score")
    norm = variable("norm of its embedding")
    purity = variable("|difference of the classes' shares|, 1 for a word of one class only")
    excess = variable("purity less what shuffled labels give")
    frequency = variable("training texts that contain it")
    leaning = variable("the class it leans to; empty for none")
    onset = variable("step at which its score reached half of what it is here")


class Relation(Table, label="sen"):
    """The score–norm relation of the same words (rank)."""

    word = variable("the word")
    scaled_norm = variable("|q||ν|, measured")
    predicted_scaled_norm = variable("|q||ν|, predicted from the score alone")
    sen_error = variable("relative error of the prediction, where s > 0.05")


class Pairs(Table, label="pairs"):
    """Two words that compete in a training text, along training (pair, which, step)."""

    weight = variable("attention")
    score = variable("score")
    norm = variable("norm of the embedding")
    word = variable("the words")
    sentence = variable("the text")


class Deletion(Table, label="deletion"):
    """The deletion test of the first seed's model."""

    top = variable("share of answers that turn without the top-attended word")
    top_low = variable("low end of its interval")
    top_high = variable("high end of its interval")
    other = variable("share that turns without another word, drawn at random")
    other_low = variable("low end of its interval")
    other_high = variable("high end of its interval")
    sentences = variable("test texts that were tested")
    left_out = variable("test texts of one known word")


class Ends(Table, label="ends"):
    """Where training stopped (seed), in the coordinates of scores over |q| and the table."""

    accuracy_test = variable("test accuracy")
    loss = variable("training loss")
    gradient = variable("largest entry of its gradient")
    sharpness = variable("largest eigenvalue of its Hessian; nan if not converged")
    trace = variable("trace of its Hessian")
    trace_error = variable("standard error of the trace")


class Agreement(Table, label="agreement"):
    """How far two seeds agree (seed, other)."""

    share = variable("share of test texts with the same answer")


class Polish(Table, label="polish"):
    """The stationary point that a penalty has near the first seed's end (seed)."""

    kind = variable("what was certified")
    l2 = variable("the penalty's λ")
    loss = variable("training loss without the penalty")
    gradient = variable("largest entry of the gradient")
    accuracy_test = variable("test accuracy")
    certificate = variable("the certificate in a sentence")
    trained_loss = variable("training loss where training stopped")


# Data sets whose variables are those of somebody else: of `attnlab.report.shaded_figure` and of
# `attnlab.landscape.straight_path`.
SENTENCES, PATH = "sentences", "path"
MAJORITY = "always the largest class"
TABLES: tuple[type[Table], ...] = (
    Lengths,
    Curves,
    Needed,
    Answered,
    Scores,
    Confused,
    Tried,
    Training,
    Words,
    Relation,
    Pairs,
    Deletion,
    Ends,
    Agreement,
    Polish,
)
