r"""Symbols and words of both papers as our pages use them.

A meaning begins with the name, and a colon. A symbol with two meanings has one entry that says both.
"""

from attnlab.report import Term

_TRAINING = (
    Term("ν", r"\nu", "Embedding: the vector of a word that attention mixes into the context."),
    Term("ν₀", r"\nu_0", "Initial embedding: the embedding before the first step."),
    Term("|ν|", r"|\nu|", "Norm: the length of a word's embedding."),
    Term(
        "κ", r"\kappa", "Key: the vector of a word that is compared with the query; it starts at 0."
    ),
    Term(
        "q",
        "q",
        "Query: one vector for all sentences; it is drawn at random and frozen unless a page says "
        "otherwise.",
    ),
    Term(
        "s",
        "s",
        r"Score: $s = q \cdot \kappa$; the larger it is, the more attention a word gets. As a number "
        r"of features: how many are relevant.",
    ),
    Term(
        "a",
        "a",
        r"Attention: the weight of a word in its sentence, $e^s$ over the sum of all words' $e^s$; "
        r"the weights of a sentence sum to 1.",
    ),
    Term("Z", "Z", r"Weight: the sum of $e^s$ over words; $Z_o$ is that of the other words."),
    Term("c", "c", r"Context: the mean of a sentence's embeddings, weighted by attention."),
    Term("o", "o", r"Context of the other words: what the context would be without the word."),
    Term("m", "m", "Number of other words: how many words a sentence has besides the topic word."),
    Term(
        "n",
        "n",
        "Sentence, or samples: in formulas about training, the sentence that is meant; otherwise the "
        "number of training samples.",
    ),
    Term(
        "g",
        "g",
        r"Force, or teacher: $g_n = -\partial L/\partial c_n$, the downhill direction for a "
        r"sentence's context; in errors of regression, the noiseless output of the teacher.",
    ),
    Term(
        "f", "f", "Force, or mask: the force on a topic word's context; or a known map of features."
    ),
    Term("L", "L", "Loss: the mean cross-entropy, or squared error, that training lowers."),
    Term(
        "τ",
        r"\tau",
        "Time, or sharpness: in training, the number of steps times their size; in the models of "
        "Liu 2021, the sharpness of the activation, which tends to ReLU as it grows.",
    ),
    Term("η", r"\eta", "Step size: what descent multiplies the gradient by."),
    Term("Δ", r"\Delta", "Step: the change of what follows it in one step of training."),
    Term("k", "k", "Number of a step: it counts the steps of training."),
    Term(
        "T",
        "T",
        "Temperature, or last step: what scores are divided by before the softmax; in sums over "
        "training, the last step; in bounds on entropy, the number of words.",
    ),
    Term(
        "I₁",
        "I_1",
        r"Sum of squared steps: $\frac{1}{2}\sum_k |\Delta\nu_k|^2$, what finite steps add to a flow.",
    ),
    Term(
        "I₂",
        "I_2",
        r"Sum of shared forces: $\sum_k \eta \sum_n a_n c_n \cdot g_n$, what a word shares with its "
        r"context.",
    ),
    Term("I", "I", r"Sum: one of the two sums $I_1$ and $I_2$ of the exact identity."),
    Term("W", "W", "Weights of the head: the matrix of its first layer."),
    Term(
        "E",
        "E",
        "Embeddings, or expectation: the matrix of all embeddings, a row for each word; before a "
        "bracket, the mean over inputs.",
    ),
    Term("U", "U", r"Projected embeddings: $U = E\,W$."),
    Term("G", "G", r"Gradient by the projected embeddings: $\partial L/\partial U$."),
    Term("ℓ", r"\ell", "Logits: the head's outputs, which a softmax makes probabilities of."),
    Term("P", "P", "Frequency: the share of the sentences that contain a topic word."),
    Term("w", "w", "Word: the one that is meant, as an index."),
    Term("u", "u", "Word: any word of a sentence, as an index."),
    Term(
        "t",
        "t",
        "Topic word, or number: as an index, a topic word; else a number added to every score.",
    ),
    Term("K", "K", "Keys: the matrix of all keys, a row for each word."),
    Term(
        "d",
        "d",
        "Dimension: how many numbers an embedding has, or how many hidden units a network.",
    ),
    Term("J", "J", "Topics: how many there are."),
    Term("N", "N", "Normal distribution: with mean and variance in brackets."),
)

_SAMPLES = (
    Term("p", "p", "Features: how many numbers, or words, an input has."),
    Term("x", "x", "Input: what a student sees of a sample."),
    Term("y", "y", "Output: what a model answers, or the label it is trained on."),
    Term("ε", r"\varepsilon", "Level: the error that has to be reached."),
    Term(
        "n_ε",
        r"n_\varepsilon",
        "Needed samples: the number of training samples at which the error first reaches the level.",
    ),
    Term("λ", r"\lambda", "Penalty: the factor of the squared weights that is added to the loss."),
    Term("λ_max", r"\lambda_{\max}", "Largest eigenvalue: of the Hessian, or of a covariance."),
    Term("φ", r"\varphi", "Activation: softplus, a smooth ReLU."),
    Term("σ", r"\sigma", "Standard deviation, or norm: of the noise; of logits, their norm."),
    Term("δ", r"\delta", "Rounding: eigenvalues that are closer to 0 than this count as flat."),
    Term("Σ", r"\Sigma", "Covariance, or sum: of the inputs; before a term, its sum."),
    Term("∇", r"\nabla", "Gradient: the derivatives by all weights."),
    Term(
        "β", r"\beta", "Factor: of the lower bound on entropy, the smaller the longer the logits."
    ),
    Term("S", "S", "Number of steps: how long a variant is trained."),
    Term("w_V", "w_V", "Value matrix: what attention mixes are the words times this matrix."),
    Term("d_q", "d_q", "Size of queries and keys: how many numbers each has, in self-attention."),
    Term("d_v", "d_v", "Size of values: how many numbers the value of a word has."),
    Term("H", "H", "Hessian: the matrix of second derivatives of the loss by all weights."),
)

_WORDS = (
    Term("topic word", "", "Topic word: a word that tells the label of its sentence."),
    Term(
        "head", "", "Head: what makes label probabilities of a context; fixed, linear or two-layer."
    ),
    Term("fixed head", "", "Fixed head: a random matrix that is not trained (FC)."),
    Term("linear head", "", "Linear head: a trained matrix (TC)."),
    Term("two-layer head", "", "Two-layer head: trained, with ten hidden ReLU units (TL)."),
    Term("norm", "", "Norm: the length of a vector, here mostly of a word's embedding."),
    Term(
        "SEN",
        "",
        "SEN: the relation of a word's score and the norm of its embedding, "
        r"$s + (e^s - 1)/m = \frac{1}{2}|q|^2(|\nu|^2 - |\nu_0|^2)$.",
    ),
    Term("gradient flow", "", "Gradient flow: descent with infinitely small steps."),
    Term(
        "gradient descent", "", "Gradient descent: steps along the gradient of the whole data set."
    ),
    Term(
        "reduced model", "", "Reduced model: one sentence per topic word in place of the data set."
    ),
    Term("onset", "", "Onset: the first time at which a score reaches half of its own last value."),
    Term("mutual promotion", "", "Mutual promotion: score and norm make each other rise."),
    Term(
        "mutual suppression",
        "",
        "Mutual suppression: a word that starts away from its label first loses score and norm.",
    ),
    Term(
        "misaligned", "", "Misaligned: with an initial embedding that points away from the label."
    ),
    Term("dip", "", "Dip: a fall of the score below where it began."),
    Term(
        "area under the curve", "", "AUC: 1 if two groups of numbers do not overlap, 0.5 by chance."
    ),
    Term("purity", "", "Purity: how far the sentences that contain a word agree in their label."),
    Term(
        "excess purity", "", "Excess purity: purity less what shuffled labels give the same word."
    ),
    Term("teacher", "", "Teacher: the model that makes the data, so that the truth is known."),
    Term("student", "", "Student: a model that learns from the teacher's samples."),
    Term("baseline", "", "Baseline: a network with one hidden layer and no attention."),
    Term("mask", "", "Mask: a factor for each feature, here 0 for those that are not to be seen."),
    Term("gate", "", "Gate: a mask whose factors depend on the input."),
    Term(
        "known attention",
        "",
        "Known attention: a network whose attention is given, by a mask, a gate or weights of words.",
    ),
    Term(
        "needed samples",
        "",
        "Needed samples: the number of training samples at which an error, or accuracy, first "
        "reaches its level.",
    ),
    Term("minimum", "", "Minimum: a point from which every small change raises the loss."),
    Term(
        "stationary point",
        "",
        "Stationary point: where the gradient is zero; a minimum or a saddle.",
    ),
    Term("saddle", "", "Saddle: a stationary point from which some direction leads downhill."),
    Term(
        "certificate",
        "",
        "Certificate: a computed proof, with bounds on rounding, that a stationary point is near and "
        "of what kind it is.",
    ),
    Term("zero mode", "", "Zero mode: a direction in which a symmetry leaves the loss unchanged."),
    Term("flatness", "", "Flatness: how little the loss curves at a minimum; many measures exist."),
    Term("live parameter", "", "Live parameter: a weight that has an influence on the output."),
    Term("claim", "", "Claim: a statement that is put to the test."),
    Term("criterion", "", "Criterion: a measured quantity, and the threshold it has to meet."),
    Term(
        "control",
        "",
        "Control: a setting in which the claim must be rejected, else the test shows nothing.",
    ),
    Term(
        "verdict",
        "",
        "Verdict: a claim holds if all criteria are met and all controls come out as they should; it "
        "fails if a criterion is surely missed; else it is inconclusive.",
    ),
    Term(
        "inconclusive",
        "",
        "Inconclusive: an interval contains the threshold, or a control did not do its work.",
    ),
    Term("seed", "", "Seed: the number that all chance of a run comes from; one seed, one run."),
    Term(
        "interval",
        "",
        "Interval: where the true value is to be expected, with 95 % confidence unless a page says "
        "otherwise.",
    ),
    Term("provenance", "", "Provenance: when a threshold was set, and what had been seen by then."),
)

TERMS: tuple[Term, ...] = (*_TRAINING, *_SAMPLES, *_WORDS)
