"""Exact laws of training word attention, beyond the papers (docs/theory.md#a4)."""

from attnlab.lab import Source

SOURCE = Source("ours", note="exact laws of training, beyond Lu, Mao and Nayak (2021)")
