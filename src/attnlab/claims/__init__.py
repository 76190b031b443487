"""Statements made executable: criteria, thresholds, controls, verdict. One file per paper."""

from attnlab.claims._catalogue import CLAIMS, GROUPS, resolve
from attnlab.claims._claim import Claim, Control, Criterion, CriterionResult, contradicts
from attnlab.claims._reproduce import SCHEMA, Reproduction, read_reproduction, reproduce

__all__ = [
    "CLAIMS",
    "Claim",
    "Control",
    "Criterion",
    "CriterionResult",
    "GROUPS",
    "Reproduction",
    "SCHEMA",
    "contradicts",
    "read_reproduction",
    "reproduce",
    "resolve",
]
