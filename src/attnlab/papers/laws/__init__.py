"""Exact laws of training word attention, beyond the papers (docs/theory.md#a4)."""

SOURCE = "attnlab, exact laws of training word attention (beyond Lu et al. 2021)"
