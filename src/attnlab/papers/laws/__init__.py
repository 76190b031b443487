"""Exact laws of training word attention, beyond the papers (docs/theory.md#a4)."""
