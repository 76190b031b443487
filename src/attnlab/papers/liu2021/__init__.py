"""Liu, Balaji, Xue, Min, "Analyzing Attention Mechanisms through Lens of Sample Complexity and Loss
Landscape" (2021).
"""

PAPER = "Liu, Balaji, Xue, Min (2021)"
