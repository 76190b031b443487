r"""Liu 2021 in five figures; numbers in braces are filled in from a record (``attnlab.lab.fill``)."""

from attnlab.report import Chapter, Story

STORY = Story(
    id="liu2021",
    title="Liu 2021 in five figures",
    question="What does knowing where to look save, and what does it cost to learn it?",
    chapters=(
        Chapter(
            id="known",
            title="What knowing where to look saves",
            body=(
                r"A teacher computes a number from 4 of $p$ features and never looks at the "
                r"others. A student sees all $p$ features of an input $x$ and a noisy answer. "
                r"How many samples does it need? The error of a student is its mean squared "
                r"distance from the teacher, over the variance of the teacher: a constant has "
                r"an error of 1. With more training samples, of which there are $n$, the error "
                r"falls; the needed samples $n_\varepsilon$ are those at which it reaches a "
                r"level $\varepsilon$, here 0.1.",
                "Two students are compared. The baseline is a network with one hidden layer. "
                "Known attention is the same network behind a mask that sets the irrelevant "
                "features to zero. The student has the same problem to solve for 16 features "
                "as for 128, because what is zero never reaches a weight. The baseline has "
                "weights for every feature, and only samples can tell it which ones should be "
                "zero. So its needed samples grow with the features: as the power "
                "{liu2021.known_attention_samples:exponent of n(0.1) in p, baseline!interval} "
                "of $p$, against {liu2021.known_attention_samples:exponent of n(0.1) in p, "
                "known mask!interval} with the mask. For 128 features the mask saves a factor "
                "of {liu2021.known_attention_samples:samples saved at p = 128 "
                "(ratio)!interval}.",
                "When does it save nothing? When it takes no work off the network. A wrong "
                "mask hides what is needed, and one that loses half of the relevant features "
                "does not get to the level at all. Where the teacher is a plain network, "
                "there is nothing to attend to. Measured: “{liu2021.no_advantage}”. And if "
                "the relevant block moves with the input, to know where it is does not say "
                "what to do with it there; the network must learn every place, and needed "
                "samples grow with the power {liu2021.moving_block:exponent of n(0.1) in p, "
                "known moving block!interval} although the block is known. On ordinary text: "
                "“{liu2021.text}”.",
            ),
            figure="liu2021.known_attention_samples/mask_needed",
            claim="liu2021.known_attention_samples",
        ),
        Chapter(
            id="learned",
            title="What learning it costs",
            body=(
                "Mostly nobody knows where to look. Now the teacher itself is a small "
                "self-attention model: each of five words looks at the others, and what it "
                "sees depends on products of words.",
                "A student that is given the teacher's attention needs "
                "{liu2021.self_attention_samples:n(0.1), known weights!interval} samples. An "
                "MLP has to build products of words out of hidden units. Its needed samples, "
                "with at most 4096 on offer: {liu2021.self_attention_samples:n(0.1), MLP}. "
                "Learned attention is between the two. A rough fit, to an error of 0.5, takes "
                "it {liu2021.self_attention_samples:MLP over learned self-attention at ε = "
                "0.5 (ratio)} times fewer samples than the MLP, because products of words are "
                "built into it. A close fit it finds from some starts and not from others, "
                "even with 4096 samples; the next chapter says why.",
                "Depth makes it worse. With known weights three layers need "
                "{liu2021.depth:n(0.1) at depth 3 over depth 1, known weights!interval} times "
                "the samples of one. Learned, with 4096 samples, {liu2021.depth:share of "
                "seeds at ε ≤ 0.1 with 4096 samples, learned, depth 3!%} of the runs get "
                "there, because every layer reads what the one below has written: while the "
                "first looks at the wrong words, the next has nothing right to look at.",
                "The optimiser counts, too. On sentences with one telling word, pooling by "
                "attention needs {liu2021.topic_pooling:mean over attention pooling at "
                "accuracy 0.9 (ratio)!interval} times fewer of them than pooling by a plain "
                "mean, if Adam trains both. Adam gives rare words steps as large as telling "
                "ones, and only attention can undo that. Under plain descent the factor is "
                "{liu2021.topic_pooling:the same under plain gradient descent "
                "(ratio)!interval}.",
            ),
            figure="liu2021.self_attention_samples/attention_curves",
            claim="liu2021.self_attention_samples",
        ),
        Chapter(
            id="minima",
            title="Minima, good and bad",
            body=(
                "The paper says that with attention every stationary point, and every local "
                "minimum, predicts well. “Every” can be put to the test. From many starts the "
                "loss is minimised until its gradient is below $10^{-8}$; then a certificate "
                "is computed: all eigenvalues of the second derivative, and a bound on "
                "rounding errors. It tells a minimum from a saddle. A minimum is called good "
                "if its error is at most 0.1.",
                "With a known gate, a mask that depends on the input, "
                "{liu2021.local_minima_known:share of good minima, known gate, n = 128!%} of "
                "the minima are good, and in {liu2021.local_minima_known:problems in which "
                "every minimum is good, known gate, n = 128!%} of the problems every one is. "
                "A minimum predicts badly if hidden units are stuck or if weights fit noise "
                "with irrelevant features; the gate removes the second cause because those "
                "features never reach a weight. When attention is learned, every minimum is "
                "good in {liu2021.local_minima_learned:problems in which every minimum is "
                "good, learned self-attention, n = 512!%} of the problems, with four times "
                "the samples. A start whose attention settles on the wrong words fits its "
                "network to these and stays, because every small change of attention makes "
                "that network worse.",
                "For “every stationary point” one counterexample is enough, and it is easy to "
                "understand. If all hidden units are alike, they get equal gradients and stay "
                "alike. Among such networks there is always a stationary point; the worst one "
                "certified here, with a known gate, has an error of "
                "{liu2021.stationary_points:error of every certified stationary point, known "
                "gate}. It is a saddle, and descent leaves it. But the sentence, as it "
                "stands, does not hold: “{liu2021.stationary_points}”. The theorems of the "
                "paper have assumptions of their own, which these small problems need not "
                "meet; what is tested is the sentence.",
            ),
            figure="liu2021.local_minima_learned/minima_errors_large",
            claim="liu2021.local_minima_learned",
        ),
        Chapter(
            id="flatness",
            title="What flatness says, and what it does not",
            body=(
                "Flat minima are said to predict well. At equal training error those of known "
                "attention are flatter indeed: the trace of the second derivative is "
                "{liu2021.flatness_known:trace of the Hessian at equal error, known gate / "
                "baseline} times the baseline's.",
                r"Two things make it so, and neither is attention. Of the 36 weights 24 sit "
                r"behind the zeros of the gate: they have no curvature because they have no "
                r"influence. And the same training error is reached under different penalties "
                r"$\lambda$ on the squared weights; attention's is the larger by far, and a "
                r"larger penalty by itself makes minima flatter. Counted per weight that has "
                r"an influence, and at equal penalties, the ratio is "
                r"{liu2021.flatness_known:trace of the Hessian per live parameter, known gate "
                r"/ baseline!interval}.",
                "So flatness here says how a network was penalised and how many of its "
                "weights are alive, not that it attends. The same holds when attention is "
                "learned: “{liu2021.flatness_learned}”. That the measure can find a "
                "difference of two is shown by the comparison at equal error; it is the "
                "control.",
            ),
            figure="liu2021.flatness_known/flat_known",
            claim="liu2021.flatness_known",
        ),
        Chapter(
            id="advice",
            title="Advice, tested",
            body=(
                "Should attention be made sparser where one word matters? Dividing the scores "
                "by a temperature $T$ of 0.25 does it. After 1500 steps the error is "
                "{liu2021.sparse_helps_hard:error of T = 0.25 over softmax, 1500 steps} times "
                "that of plain softmax: good advice, it seems. But a trained query can grow "
                "by itself, and then does the work of the temperature. Softmax that trains "
                "four times as long has caught up: the ratio is "
                "{liu2021.sparse_helps_hard:error of T = 0.25 with 1500 over softmax with "
                "6000 steps!interval}. The low temperature wins time, not ability.",
                "The reverse is true of a high temperature: at 4 the query has to grow four "
                "times as long, and the error is {liu2021.high_temperature_hurts:error of T = "
                "4 over softmax, 6000 steps!interval} times as large even after 6000 steps. "
                "And where all words matter, sparse attention starts far worse, and the "
                "damage fades with training: “{liu2021.sparse_hurts_dense}”.",
                "What helps is knowledge. A penalty that pulls attention toward the right "
                "words saves a factor of {liu2021.prior_helps:samples saved by the right "
                "prior (ratio)!interval} of the samples, because the labels no longer have to "
                "say where to look. Toward the wrong words the factor is "
                "{liu2021.prior_helps:samples saved by the wrong prior (ratio)}: samples are "
                "lost.",
                "So: if you know where to look, say so, and be right. Compare variants at "
                "more than one number of steps, since a head start looks like an advantage. "
                "And try them on your own data, because all of this depends on the task.",
            ),
            figure="liu2021.sparse_helps_hard/hard_steps",
            claim="liu2021.sparse_helps_hard",
        ),
    ),
)
