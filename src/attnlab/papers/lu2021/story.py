r"""Lu 2021 in six figures; numbers in braces are filled in from a record (``attnlab.lab.fill``)."""

from attnlab.papers.lu2021.derivations import IDENTITY, REDUCED, SCORE_SUM, SEN
from attnlab.report import Chapter, Story

STORY = Story(
    id="lu2021",
    title="Lu 2021 in six figures",
    question="How does attention learn which words matter, when nobody tells it?",
    chapters=(
        Chapter(
            id="task",
            title="One word of twenty-one tells the label",
            body=(
                "Take sentences of 21 words. One is a topic word, which tells which of four labels is right; the "
                "other 20 are drawn from a large dictionary and tell nothing. A model has to "
                "find out which words matter.",
                r"Every word has an embedding $\nu$ and a key $\kappa$, vectors that are "
                r"learned. One query $q$ is drawn at random and stays as it is. The product of "
                r"query and key is the word's score $s = q \cdot \kappa$, and a softmax turns "
                r"the scores of a sentence into attention $a$: positive numbers that sum to "
                r"one. The context $c$ is the mean of the sentence's embeddings, weighted by "
                r"attention. A head, at its simplest a fixed matrix, makes label probabilities "
                r"of it, and gradient descent on the loss $L$, their cross-entropy, moves "
                r"embeddings and keys.",
                "At first all keys are zero, attention is even and embeddings are tiny. The "
                "figure shows what follows: the topic word takes over the context while the "
                "loss has hardly moved. All sentences with a topic word push its embedding "
                "the same way, and the pushes add up. The pushes on another word cancel, "
                "because it occurs with every label. When the loss has fallen by a tenth, the "
                "topic word's share of the context is {lu2021.context:share of the context at "
                "0.9 of the initial loss!%} or more in every run.",
            ),
            figure="lu2021.context/context_loss",
            claim="lu2021.context",
        ),
        Chapter(
            id="together",
            title="Score and norm grow together",
            body=(
                r"Each thin line is a topic word in training: to the right its norm $|\nu|$, "
                r"the length of the embedding, upward its score.",
                "Why does a topic word's score grow? Because its embedding points toward its "
                "label, and more attention puts more of that embedding into the context, "
                "which lowers the loss. The norm grows for the same reason: a longer "
                "embedding puts more of the right direction there, too.",
                "Each makes the other faster, which the paper calls mutual promotion. "
                "Attention is a factor in the embedding's gradient, the embedding a factor in "
                "the score's: a word with a higher score gets longer faster, and a longer "
                "word gains score faster. Freezing one half shows cause and effect: when the "
                "loss has halved, the norm with frozen keys has grown at most "
                "{lu2021.promotion:growth of the norm, keys frozen over full, at half the "
                "loss} times as far, the score with frozen embeddings at most "
                "{lu2021.promotion:growth of the score, embeddings frozen over full, at half "
                "the loss} times.",
                "There are setbacks. A word whose embedding starts away from its label first "
                "loses both: more attention to it would raise the loss, so that it has to "
                "turn round before it can rise. And under a head of two layers, whose hidden "
                "units all topics share, words can lose a little while another topic starts "
                "to rise. What was found: “{lu2021.promotion}”.",
            ),
            figure="lu2021.promotion/promotion_paths",
            claim="lu2021.promotion",
        ),
        Chapter(
            id="relation",
            title="Why one determines the other",
            body=(
                "The point of the derivation is in its second and fourth line: the same "
                "forces move embedding and score. The force $g_n$ is the downhill direction "
                "of the loss for the context of sentence $n$. The embedding moves by the "
                "forces, the score by their part along the embedding, because a score can "
                "only draw the context toward the word's own embedding or away from it. So a "
                "push that makes the embedding longer also raises the score, by an amount "
                "that depends on $|q|$ and attention alone.",
                r"Two assumptions make this a law of each word by itself: the contexts $o_n$ "
                r"of the other words average out to zero, and their weight $Z_o$ is the same "
                r"in every sentence. Here it is the number $m$ of other words, 20, since each "
                r"has a score near zero. Added up from the start, where the score is zero and "
                r"the initial embedding is $\nu_0$, the motion gives the score–norm relation, "
                r"SEN.",
                "It says: the score of a word tells the norm of its embedding, at every step, "
                "without a look at data, labels or head. Each dot is a topic word; move the "
                "slider, and the dots run along the dashed curve. The predicted norm is off "
                "by {lu2021.sen:relative error, fixed and linear head, median!%} in the "
                "median and never by more than {lu2021.sen:relative error, fixed and linear "
                "head, max!%}; under a head of two layers the median is {lu2021.sen:relative "
                "error, two-layer head, median!%}, because the head acts through the forces, "
                "and these drop out. With a query taken 1.2 times too long it would be "
                "{lu2021.sen:|q| × 1.2, median!%}.",
            ),
            figure="lu2021.sen/sen_relation",
            derivation=SEN,
            claim="lu2021.sen",
        ),
        Chapter(
            id="convergence",
            title="Attention finds the words that matter",
            body=(
                "After 5000 steps topic words stand apart: the area under the curve, 1 where "
                "no other word has as high a score, is at least {lu2021.convergence:AUC of "
                "scores, topic against other words}, and at least {lu2021.convergence:test "
                "accuracy!%} of new sentences are sorted correctly. With labels drawn at "
                "random there is nothing to find, and accuracy falls to "
                "{lu2021.convergence:test accuracy, labels at random!%}.",
                "Only topic words rise. The pushes on other words cancel, and the sum of all "
                "scores cannot change, because a softmax does not see a number that is added "
                "to every score: the gradients by the scores sum to zero. What topic words "
                "gain, all other words lose together.",
                "Sentences with the same topic word are nearly alike, so that one sentence of "
                "that word and empty ones can stand for them all. This reduced model predicts "
                "training from the initial values alone: under the fixed head 95 % of its "
                "scores are within {lu2021.reduced_fc:error of the score along training, "
                "p95!%}. Under a head of two layers it predicts {lu2021.reduced_tl:runs of "
                "which every word is predicted!%} of the runs; in the others chance decides "
                "between hidden units that are nearly tied.",
            ),
            figure="lu2021.convergence/convergence_curves",
            derivation=SCORE_SUM,
            claim="lu2021.convergence",
        ),
        Chapter(
            id="rate",
            title="Certain, and very slow",
            body=(
                r"The better a sentence is classified, the weaker is its pull, because the "
                r"slope of cross-entropy is the probability that is still wrong. In time "
                r"$\tau$, the number of steps times their size, the margin of the right label "
                r"therefore grows like $\log \tau$, and the loss falls like $1/\tau$. The "
                r"exponent measured in training is {lu2021.rate:exponent of the loss in "
                r"training, 1e6 to 1e9!interval}.",
                r"Under a fixed head the margin grows with the norm, so $|\nu|$ grows like "
                r"$\log \tau$. The score–norm relation does the rest: for large scores $e^s$ "
                r"grows like $|\nu|^2$, and the score like $2 \log |\nu|$, that is, like $2 "
                r"\log \log \tau$. Measured, the factor is {lu2021.rate:ds / d log log τ in "
                r"training, 1e6 to 1e9!interval}.",
                r"While time grows a thousandfold, from $10^6$ to $10^9$, $\log \log \tau$ "
                r"grows by $\log 1.5$, and the score by about 0.8. Attention on the topic word "
                r"tends to 1 with certainty, and no training anybody runs gets there. A model "
                r"whose attention stops at 0.6 has not failed: there is hardly any loss left "
                r"to lower.",
            ),
            figure="lu2021.rate/rate_training",
            derivation=REDUCED,
            claim="lu2021.rate",
        ),
        Chapter(
            id="breaks",
            title="Where it breaks",
            body=(
                "The relation rests on three things: steps along the gradient with a frozen "
                "query, other words of known weight, and contexts of other words near zero.",
                "Adam divides every coordinate of the gradient by a size of its own. Its step "
                "is not along the gradient, and the forces no longer move embedding and score "
                "alike: the median error is {lu2021.beyond_sen:Adam: median error!%}. Not "
                "even the sum of scores survives, because its parts no longer cancel. "
                "Momentum adds gradients up and keeps the sum; but its step is not the "
                "gradient at the current point, and the error is {lu2021.beyond_sen:momentum "
                "0.9: median error!%}.",
                r"The derivation makes this exact for steps $\Delta\nu$ of the embedding and "
                r"$\Delta s$ of the score, of step size $\eta$, numbered by $k$ up to step "
                r"$T$. What the relation leaves out are the sum $I_1$ of squared steps and the "
                r"sum $I_2$ of what a word shares with its context, which a linear head of "
                r"weights $W$ shows in the logits $\ell_n$. Descent obeys this identity to "
                r"rounding error.",
                "With three topic words in a sentence the error is {lu2021.beyond_sen:three "
                "topic words in a sentence: median error!%}, because the other words' context "
                "points to the same label instead of averaging out. A small dictionary does "
                "the same by degrees, since each of its words occurs often enough to learn "
                "something: {lu2021.beyond_sen:dictionary of 320: median error!%} with 320 "
                "words, {lu2021.beyond_sen:dictionary of 20: median error!%} with 20.",
                "A deeper head, minibatches and unequal topics touch none of the three, and "
                "the relation survives them. One more sentence of the paper stands only in "
                "part: that heads of low capacity give attention a stronger signal. Found: "
                "“{lu2021.capacity}”.",
            ),
            figure="lu2021.beyond_sen/beyond_table",
            derivation=IDENTITY,
            claim="lu2021.beyond_sen",
        ),
    ),
)
