r"""Derivations that the story of this paper shows: SEN, the exact identity, two laws, the reduced model.

The id of a derivation is that of the claim that it explains. Each line has a numerical
check in ``tests/papers/test_derivations.py``, bound to its formula.
"""

from attnlab.report import Derivation, Line

SEN = Derivation(
    id="lu2021.sen",
    title="From the gradient to the score–norm relation",
    lines=(
        Line(
            r"c_n = \sum_{u \in n} a_{u,n}\,\nu_u",
            r"The context of sentence $n$ is the mean of the embeddings of its words $u$, weighted by "
            r"attention.",
        ),
        Line(
            r"\frac{\mathrm{d}\nu}{\mathrm{d}\tau} = \sum_n a_n\, g_n, \qquad "
            r"g_n = -\frac{\partial L}{\partial c_n}",
            r"Along the gradient flow the word's embedding $\nu$ follows the forces $g_n$ on the "
            r"contexts of its sentences, each times the word's attention $a_n$ there, because $\nu$ "
            r"enters $c_n$ with the factor $a_n$ and the loss in no other way.",
            lights="measured",
        ),
        Line(
            r"\frac{\partial c_n}{\partial s} = a_n\,(\nu - c_n)",
            r"A higher score $s$ draws the context toward the word's own embedding, because attention "
            r"is a softmax: what the word gains, all words of the sentence lose in proportion.",
        ),
        Line(
            r"\frac{\mathrm{d}s}{\mathrm{d}\tau} = |q|^2 \sum_n a_n\,(\nu - c_n) \cdot g_n",
            r"The score $s = q\cdot\kappa$ moves by its key $\kappa$ alone, because the query is "
            r"frozen: the key moves along $q$, which brings the factor $|q|^2$.",
        ),
        Line(
            r"\nu - c_n = (1 - a_n)\,(\nu - o_n)",
            r"Here $o_n$ is the context of the other words alone. The equation holds because $c_n$ lies "
            r"between $\nu$ and $o_n$, in the proportion of their attention.",
        ),
        Line(
            r"\frac{\mathrm{d}s}{\mathrm{d}\tau} = |q|^2\,(1 - a)\; \nu \cdot "
            r"\frac{\mathrm{d}\nu}{\mathrm{d}\tau}",
            r"Two assumptions: the other words' contexts average out, $o_n = 0$, and their weight "
            r"$Z_o$ is the same in every sentence, so that attention is, too. The forces $g_n$, and "
            r"with them head and labels, drop out because the same sum moves embedding and score.",
        ),
        Line(
            r"\left(1 + \frac{e^s}{m}\right) \frac{\mathrm{d}s}{\mathrm{d}\tau} = "
            r"\frac{|q|^2}{2}\,\frac{\mathrm{d}|\nu|^2}{\mathrm{d}\tau}",
            r"With $Z_o = m$, one for each of $m$ other words of score zero, attention is "
            r"$a = e^s/(e^s + m)$; divide by $1 - a$.",
        ),
        Line(
            r"s + \frac{e^s - 1}{m} = \frac{|q|^2}{2} \left(|\nu|^2 - |\nu_0|^2\right)",
            r"Both sides are derivatives by time, so they integrate from the start, where $s = 0$ and "
            r"the embedding is $\nu_0$. This is the score–norm relation, SEN: the dashed curve.",
            lights="theory",
        ),
    ),
)

IDENTITY = Derivation(
    id="laws.identity",
    title="Without approximation: the identity of each step",
    lines=(
        Line(
            r"\Delta\nu = \eta \sum_n a_n\, g_n",
            r"A step of gradient descent of size $\eta$ adds the forces once, because the gradient is "
            r"taken at the point from which the step is made.",
        ),
        Line(
            r"\tfrac{1}{2}|\nu + \Delta\nu|^2 - \tfrac{1}{2}|\nu|^2 = \nu \cdot \Delta\nu + "
            r"\tfrac{1}{2}|\Delta\nu|^2",
            r"A finite step also adds its own square, which a flow does not have.",
        ),
        Line(
            r"\Delta s = \eta\,|q|^2 \sum_n a_n\,(\nu - c_n) \cdot g_n",
            r"The score's step is exact at any size because a score is linear in its key.",
        ),
        Line(
            r"\Delta s = |q|^2 \left(\nu \cdot \Delta\nu - \eta \sum_n a_n\, c_n \cdot g_n\right)",
            r"Insert the first line: the part along $\nu$ is the embedding's own step.",
        ),
        Line(
            r"s(T) - s(0) = |q|^2 \left[\tfrac{1}{2}\left(|\nu(T)|^2 - |\nu(0)|^2\right) - I_1 - "
            r"I_2\right]",
            r"Sum over all steps: $I_1 = \frac{1}{2}\sum_k |\Delta\nu_k|^2$ is what finite steps add, "
            r"and $I_2 = \sum_k \eta \sum_n a_n c_n \cdot g_n$ what the word shares with its context. "
            r"Nothing was assumed but steps along the gradient, so the identity is exact.",
        ),
        Line(
            r"c_n \cdot g_n = -\ell_n \cdot \frac{\partial L}{\partial \ell_n}",
            r"With a linear head the logits are $\ell_n = W^\top c_n$, so that $I_2$ needs no context: "
            r"the projected one is enough.",
        ),
    ),
)

SCORE_SUM = Derivation(
    id="laws.score_sum",
    title="The sum of all scores does not move",
    lines=(
        Line(
            r"L(s + t\,\mathbf{1}) = L(s)",
            r"Adding a number $t$ to every score changes no attention, because a softmax sees "
            r"differences only.",
        ),
        Line(
            r"\sum_w \frac{\partial L}{\partial s_w} = 0",
            r"This is the derivative of the line above by $t$: the gradients by the scores of all words $w$ "
            r"sum to zero.",
        ),
        Line(
            r"\Delta s_w = -\eta\,|q|^2\, \frac{\partial L}{\partial s_w}",
            r"With a frozen query descent of step size $\eta$ moves every score by the same multiple of its "
            r"own gradient.",
        ),
        Line(
            r"\sum_w s_w(T) = \sum_w s_w(0)",
            r"So the sum is the same at the last step $T$, at any step size, and momentum keeps it too "
            r"because it only adds gradients up. Adam divides each coordinate by a size of its own, and the sum moves.",
        ),
    ),
)

BALANCE = Derivation(
    id="laws.balance",
    title="Embeddings and a trained first layer stay in balance",
    lines=(
        Line(
            r"U = E\,W, \qquad L(E, W) = L(U)",
            r"The context is projected by the first layer $W$ before anything else happens, so the "
            r"loss depends on embeddings $E$ and $W$ through their product alone.",
        ),
        Line(
            r"\frac{\partial L}{\partial E} = G\,W^\top, \qquad "
            r"\frac{\partial L}{\partial W} = E^\top G",
            r"By the chain rule the two gradients share the factor $G = \partial L / \partial U$.",
        ),
        Line(
            r"\frac{\mathrm{d}}{\mathrm{d}\tau} E^\top E = "
            r"-\left(E^\top G\,W^\top + W\,G^\top E\right)",
            r"Along the flow, $\mathrm{d}E/\mathrm{d}\tau = -G\,W^\top$; apply the product rule.",
        ),
        Line(
            r"\frac{\mathrm{d}}{\mathrm{d}\tau} W\,W^\top = "
            r"-\left(E^\top G\,W^\top + W\,G^\top E\right)",
            r"The same for $\mathrm{d}W/\mathrm{d}\tau = -E^\top G$: what one gains the other gains.",
        ),
        Line(
            r"E^\top E - W\,W^\top = \mathrm{const}",
            r"The right sides are equal, so the flow conserves the difference exactly.",
        ),
        Line(
            r"\Delta\left(E^\top E - W\,W^\top\right) = \eta^2 \left(W\,G^\top G\,W^\top - "
            r"E^\top G\,G^\top E\right)",
            r"A step of descent leaves the terms of second order. There are $T/\eta$ steps in a time "
            r"$T$, so the drift over a fixed time is proportional to $\eta$: a slope of one.",
            lights="linear head",
        ),
    ),
)

REDUCED = Derivation(
    id="lu2021.rate",
    title="A whole data set in one sentence per topic word",
    lines=(
        Line(
            r"a_t = \frac{e^{s_t}}{e^{s_t} + m}, \qquad c_n = a_t\,\nu_t",
            r"Assume that the $m$ other words of a sentence have score and embedding zero. Then every "
            r"sentence with topic word $t$ has the same attention and the same context.",
        ),
        Line(
            r"L = \sum_t P_t\; \mathrm{CE}\left(\mathrm{head}(a_t\,\nu_t)\right)",
            r"Equal sentences have equal cross-entropy CE, so the mean over the data is a sum over "
            r"topic words, each with its frequency $P_t$ in the data.",
        ),
        Line(
            r"\frac{\mathrm{d}\nu_t}{\mathrm{d}\tau} = a_t\, f_t, \qquad "
            r"f_t = -\frac{\partial L}{\partial (a_t\nu_t)}",
            r"The loss has only as many terms as there are topic words; $f_t$ is the force on the "
            r"context of word $t$.",
        ),
        Line(
            r"\frac{\mathrm{d}s_t}{\mathrm{d}\tau} = |q|^2\, a_t\,(1 - a_t)\; \nu_t \cdot f_t",
            r"As in the derivation of SEN, with $o = 0$ because the other words' embeddings are zero. "
            r"These two equations, solved from the initial values alone, are the prediction.",
            lights="reduced model",
        ),
        Line(
            r"\frac{\mathrm{d}}{\mathrm{d}\tau}\left[s_t + \frac{e^{s_t}}{m} - "
            r"\frac{|q|^2}{2}|\nu_t|^2\right] = 0",
            r"SEN is a first integral of the reduced model, because both equations contain the same "
            r"force: each word has one number left to move.",
        ),
    ),
)

DERIVATIONS: tuple[Derivation, ...] = (SEN, IDENTITY, SCORE_SUM, BALANCE, REDUCED)
