"""Lu, Mao and Nayak, "On the Dynamics of Training Attention Models" (2021)."""

PAPER = "Lu, Mao and Nayak (2021)"
