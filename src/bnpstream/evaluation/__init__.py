"""How good a clustering is: agreement with labels that the model never saw."""

from bnpstream.evaluation.agreement import Agreement, agreement, majority_labels

__all__ = ["Agreement", "agreement", "majority_labels"]
