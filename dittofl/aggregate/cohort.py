"""The rows that a rule works on: those of a report, some of them, scaled, and never copied as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from dittofl.errors import require
from dittofl.types import Aggregator, Report, State, Vector

BLOCK = 2**19  # elements of a block of columns, which should stay in a CPU's cache
MORE = 16  # a GPU takes as many times more
GROUPS = 4  # of rows, or a few more: little more than half of a symmetric matrix is then computed
KERNEL = 24  # rows that matrix products of a CPU are made of: other groups cost a fifth more
SMALL = 1e-15  # below it, and above 1/it, squares may not fit into float32
LARGE = 1e140  # beyond this a square, or the sum of many, does not fit into float64


@dataclass(frozen=True, eq=False)
class Cohort:
    """Row i is c_i Δ_k, k = `which`[i], of a report's matrix Δ, which stays as it is.

    What a defence leaves is another cohort of the same matrix, so that a chain of them reads it once a defence that
    measures it, and once more for δ. All that is small is on the host, in float64, whatever Δ is.
    """

    whole: Report
    which: Tensor  # [m]
    c: Tensor  # [m]

    @staticmethod
    def of(report: Report) -> "Cohort":
        m = len(report.delta)
        return Cohort(report, torch.arange(m), torch.ones(m, dtype=torch.float64))

    def __len__(self) -> int:
        return len(self.which)

    @property
    def P(self) -> int:
        return self.whole.delta.shape[1]

    def only(self, rows: Tensor) -> "Cohort":
        """Some of the rows."""
        return Cohort(self.whole, self.which[rows], self.c[rows])

    def scaled(self, c: Tensor) -> "Cohort":
        """Every row times a number of its own."""
        return Cohort(self.whole, self.which, self.c * c)

    def report(self) -> Report:
        """The same as a report with a matrix of its own."""
        its = self.whole.rows(self.which.to(self.whole.delta.device))
        return its._replace(delta=its.delta * self.c.to(its.delta)[:, None])

    @property
    def size(self) -> Tensor:
        return self._small(self.whole.size).double()

    @property
    def loss(self) -> Tensor:
        """F_k(w^t)."""
        require(self.whole.loss is not None, "this aggregator needs the loss of every report: give Report(…, loss=…)")
        return self._small(self.whole.loss).double()

    @property
    def place(self) -> Tensor:
        """Which devices; without names a report's row i is device i."""
        return self.which if self.whole.place is None else self._small(self.whole.place).long()

    def _small(self, field: Any) -> Tensor:
        return field.detach().cpu()[self.which]  # type: ignore[no-any-return]

    def at(self, columns: Tensor) -> Tensor:
        """A few columns of all rows, [m, columns], on the host."""
        rows, columns = (index.to(self.whole.delta.device) for index in (self.which, columns))
        return self.whole.delta[rows[:, None], columns].double().cpu() * self.c[:, None]

    def blocks(self, dtype: torch.dtype, most: int = BLOCK, *, read: bool = False) -> Iterator[tuple[slice, Tensor]]:
        """All columns, a block [m, …] at a time: the caller's until the next, or Δ's own where it only reads."""
        delta, m = self.whole.delta, len(self)
        width = max(64, (MORE if delta.is_cuda else 1) * most // max(m, 1))
        rows = None if m == len(delta) and bool((self.which.diff() == 1).all()) else self.which.to(delta.device)
        c = None if bool((self.c == 1).all()) else self.c.to(delta.device, dtype)[:, None]
        copied = not read or c is not None or dtype != delta.dtype
        room = delta.new_empty((m, min(width, self.P) if copied else 0), dtype=dtype)
        for start in range(0, self.P, width):
            at = slice(start, min(start + width, self.P))
            block = delta[:, at] if rows is None else delta[rows, at]
            block = room[:, : at.stop - start].copy_(block) if copied else block
            yield at, block if c is None else block.mul_(c)

    def sum(self, p: Tensor) -> Vector:
        """Σ_i p_i c_i Δ_k: one pass over the matrix, or one row."""
        delta = self.whole.delta
        a = torch.zeros(len(delta), dtype=torch.float64).index_add_(0, self.which, p * self.c)
        used = torch.nonzero(a)
        return delta[int(used)] * float(a[int(used)]) if len(used) == 1 else a.to(delta) @ delta

    def norms(self, about: Vector | None = None, *, rough: bool = False) -> Tensor:
        """‖row_i − about‖ [m], or of the rows themselves.

        `rough` ones of float32 are right to 6 digits and take half the time: enough to scale rows by, not to choose.
        """
        dtype = self.whole.delta.dtype if rough else torch.float64
        square = self.c.new_zeros(len(self)).to(self.whole.delta.device)
        for at, block in self.blocks(dtype, read=about is None):
            away = block if about is None else block.sub_(about[at])
            square += torch.linalg.vector_norm(away, dim=1).double().square_()
        norms = square.sqrt().cpu()
        if dtype != torch.float64 and not bool(((norms > SMALL) & (norms < 1 / SMALL)).all()):
            return self.norms(about)
        if self.whole.delta.dtype == torch.float64:
            for i in torch.nonzero((norms < 1 / LARGE) | ~(norms < LARGE)).flatten().tolist():
                norms[i] = self._norm(i, about)
        return norms

    def _norm(self, i: int, about: Vector | None) -> float:
        """Of one row whose squares do not fit."""
        row = self.whole.delta[int(self.which[i])] * float(self.c[i])
        row = row if about is None else row - about
        top = float(row.abs().max()) if len(row) else 0.0
        return top and top * float(torch.linalg.vector_norm(row / top))

    def gram(self, about: int | Vector) -> Tensor:
        """(row_i − r)·(row_j − r) [m, m], r one of the rows or a vector; like rows keep the digits they differ in."""
        gram = self._gram(about, None)
        return gram if bool(gram.isfinite().all()) else self._gram(about, LARGE)

    def _gram(self, about: int | Vector, limit: float | None) -> Tensor:
        m = len(self)
        gram = self.c.new_zeros(m, m).to(self.whole.delta.device)
        rows = KERNEL * max(1, m // (GROUPS * KERNEL))
        cuts = [*range(0, max(1, m - rows // 2), rows), m]
        for at, block in self.blocks(torch.float64):
            block = block if limit is None else block.clamp_(-limit, limit)
            block -= block[about].clone() if isinstance(about, int) else about[at]
            for i, j in pairwise(cuts):
                gram[i:, i:j].addmm_(block[i:], block[i:j].T)
        lower = gram.tril().cpu()
        return lower + lower.tril(-1).T


@runtime_checkable
class Rule(Aggregator, Protocol):
    """An aggregator that works on a cohort, and so costs no copy behind another."""

    def combine(self, cohort: Cohort, state: State) -> tuple[Vector, State]:
        """δ and the next state."""


def on_report(self: Rule, report: Report, state: State) -> tuple[Vector, State]:
    """`__call__` of every rule."""
    return self.combine(Cohort.of(report), state)


def passed(rule: Aggregator, cohort: Cohort, state: State) -> tuple[Vector, State]:
    """What another aggregator makes of the rows that are left; one of the user's gets them as a report."""
    return rule.combine(cohort, state) if isinstance(rule, Rule) else rule(cohort.report(), state)
