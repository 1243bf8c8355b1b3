"""How far apart a cohort's rows are, to the last few digits however far they are from 0 and from each other."""

import torch
from torch import Tensor

from dittofl.aggregate.cohort import Cohort

SAMPLE = 128  # columns that a row amidst the others is found by
TRUSTED = 1e-6  # ‖x − y‖² from a Gram matrix has lost at most 6 of 16 digits where it is this share of ‖x‖², ‖y‖²


def amidst(cohort: Cohort) -> int:
    """A row that half of the others are near to, by a few columns.

    An attacker may make it a bad one, which costs time and no accuracy: `squares` checks what it computes.
    """
    some = cohort.at(torch.linspace(0, max(cohort.P - 1, 0), min(cohort.P, SAMPLE)).long())
    apart = torch.cdist(some, some, compute_mode="donot_use_mm_for_euclid_dist")
    return int(apart.median(1).values.argmin())


def apart(gram: Tensor) -> Tensor:
    """‖x_i − x_j‖² from the Gram matrix of the x."""
    square = gram.diagonal()
    return (square[:, None] + square - 2 * gram).clamp(min=0).fill_diagonal_(0)


def squares(cohort: Cohort) -> Tensor:
    """‖row_i − row_j‖² [m, m], exactly 0 for equal rows.

    From the Gram matrix about a row amidst them: one pass over the matrix. Pairs that it cannot tell apart are measured
    again about one of them, which takes a pass over those rows: near-equal outliers, and whatever is near to each other
    where an outlier was the centre.
    """
    m = len(cohort)
    found, unsure = torch.zeros(m, m, dtype=torch.float64), ~torch.eye(m, dtype=torch.bool)
    group, centre = torch.arange(m), amidst(cohort)
    while bool(unsure.any()):
        gram = cohort.only(group).gram(centre)
        among, length, pairs = apart(gram), gram.diagonal(), (group[:, None], group)
        sure = unsure[pairs] & (among >= TRUSTED * torch.maximum(length[:, None], length))
        found[pairs] = torch.where(sure, among, found[pairs])
        unsure[pairs] &= ~sure
        worst = unsure.sum(1).argmax()
        group = torch.cat([worst[None], torch.nonzero(unsure[worst]).flatten()])
        centre = 0
    return found
