"""The parts that most solvers share, to be named in a class body: where a visit begins, what it asks, what it leaves.

A solver whose local step is one minibatch gradient is then its update line and a choice among these.
"""

import warnings
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from dittofl.errors import an_instance, blamed, is_whole, nonnegative, require, short
from dittofl.optimiser import Chain, Rate, Transform, Walk, begin, check_rate, rate
from dittofl.types import Ask, Down, Epochs, Row, Sent, Steps, Vector


class Stepping(Protocol):
    """What these parts read of a solver."""

    @property
    def lr(self) -> Rate: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def through(self) -> Chain: ...


def check(self: Stepping) -> None:
    """Refuses wrong step sizes, step counts and chains; what every `__post_init__` calls."""
    name = type(self).__name__
    check_rate(name, self.lr)
    require(
        is_whole(self.steps.count if an_instance(self.steps, Epochs) else self.steps, 1),  # type: ignore[union-attr]
        f"{name} needs steps ≥ 1, a whole number or Epochs(count=…), got steps={short(self.steps)}",
    )
    require(
        isinstance(self.through, tuple) and all(an_instance(link, Transform) for link in self.through),
        f"{name} needs through=(…,), a tuple of transforms such as Momentum(), got through={short(self.through)}",
    )


def check_pull(self: Stepping, lam: Rate, *, name: str = "lam", lr: str = "lr", explicit: str = "lower lr") -> None:
    """Refuses λ outside [0, ∞), a number or a rule of n; warns where |1 − ηλ| ≥ 1: the explicit step on λ/2 ‖v − w‖²
    does not shrink. `explicit` says what to do then; it is "" where the step is another."""
    owner, value = type(self).__name__, cast(Any, lam)
    if callable(lam) and not isinstance(lam, type):
        with blamed(f"{owner}'s rule {name}="):
            value = lam(1)
    nonnegative(owner, name, value)
    eta = rate(getattr(self, lr), 0)
    if explicit and lam is value and not self.through and eta * value >= 2:
        warnings.warn(f"{owner}'s step diverges where {lr}·{name} ≥ 2, got {eta} · {value}: {explicit}", stacklevel=4)


def lowest(f: Tensor) -> Tensor:
    """argmin_c f_c; a loss that is no number, of a model that diverged, is never the lowest.

    >>> lowest(torch.tensor([3.0, float("nan"), 1.0]))
    tensor(2)
    """
    return torch.where(f.isnan(), torch.inf, f).argmin()


def keep_nothing(self: object, w0: Vector) -> Row:
    return w0[:0]


def keep_a_model(self: object, w0: Vector) -> Row:
    """v_k⁰ = w⁰."""
    return w0


def one_gradient_a_step(self: object, steps: int) -> tuple[Ask, ...]:
    return (Ask(),) * steps


def begin_at_w(self: Stepping, row: Row, down: Down) -> Walk:
    return begin(self.through, down.w)


def begin_at_row(self: Stepping, row: Row, down: Down) -> Walk:
    return begin(self.through, row)


def where_it_stands(self: object, s: Walk, down: Down, i: int) -> tuple[Vector, ...]:
    return (s.at,)


def leave_row(self: object, s: Walk, row: Row, down: Down) -> Row:
    return row


def keep_v(self: object, s: Walk, row: Row, down: Down) -> Row:
    return s.at


def send_delta(self: object, s: Walk, row: Row, down: Down) -> Sent:
    """Δ_k = w_k − w^t."""
    return Sent(s.at - down.w)


def serve_w(self: object, row: Row, down: Down) -> Vector:
    return down.w


def serve_row(self: object, row: Row, down: Down) -> Vector:
    return row
