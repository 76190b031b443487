"""Names for studies that are not yet experiments; all stand in ``lab`` and ``papers``."""

from attnlab.lab import axis, side_by_side
from attnlab.papers.lu2021.sweeps import measure_endings, measure_relation, predicted_errors

__all__ = ["axis", "measure_endings", "measure_relation", "predicted_errors", "side_by_side"]
