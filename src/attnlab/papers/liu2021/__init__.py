"""Liu, Balaji, Xue, Min, "Analyzing Attention Mechanisms through Lens of Sample Complexity and Loss
Landscape" (2021).
"""

from attnlab.lab import Provenance

PAPER = "Liu, Balaji, Xue, Min (2021)"

# Protocols that were chosen while looking at the first seeds are judged on seeds from 100 on.
EARLY_SEEDS = Provenance(
    "after", "2026-11-16", "a prototype's runs (docs/theory.md) and seeds 0 to 7"
)
