"""Aggregators: the cohort's matrix of updates to one."""

from dittofl.aggregate.mean import Mean, Stateless, mean

__all__ = ["Mean", "Stateless", "mean"]
