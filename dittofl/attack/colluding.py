"""What attackers that act together go by: the honest rows they see, and how far those are apart."""

import torch
from torch import Tensor

from dittofl.types import Report, Vector


def seen(report: Report, who: Tensor, omniscient: bool) -> Tensor:
    """The finite rows [s, P] that attackers go by: the benign ones, or their own as they were before the attack.

    Where the cohort has none of the kind they go by the other kind, so that s ≥ 1.
    """
    mask = ~who if omniscient else who
    rows = report.delta[mask if bool(mask.any()) else ~mask]
    sound = finite(rows)
    return sound if len(sound) else rows


def finite(rows: Tensor) -> Tensor:
    """The rows without NaN and Inf."""
    sound = rows.isfinite().all(1)
    return rows if bool(sound.all()) else rows[sound]


def spread(rows: Tensor) -> Vector:
    """The standard deviation (ddof 0) of every column; of one row |row|/2, as if another had stood still."""
    return rows[0].abs() / 2 if len(rows) == 1 else rows.std(0, correction=0)


def distances(rows: Tensor) -> Tensor:
    """‖row_i − row_j‖² [s, s]; of one row ‖row‖², as if another had stood still."""
    if len(rows) == 1:
        return rows.square().sum(1, keepdim=True)
    centred = rows - rows.mean(0)  # else near-equal rows far from 0 would lose their differences to rounding
    gram = centred @ centred.T
    square = gram.diagonal()
    return (square[:, None] + square - 2 * gram).clamp(min=0).fill_diagonal_(0)


def sending(report: Report, who: Tensor, row: Vector) -> Report:
    """The report with one row in place of every malicious one."""
    return report._replace(delta=torch.where(who[:, None], row, report.delta))
