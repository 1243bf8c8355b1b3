"""Local optimisers: pairs of pure functions on a solver's direction, chained by writing them in a tuple.

    v ← v − η(t) · T_n(… T_1(d))        for through=(T_1, …, T_n), d the solver's direction

`(Adam(), Decay(rate=.01))` is AdamW, `(Decay(rate=.01), Momentum(beta=.9))` is SGD with L2 decay and momentum. Their
states live for one visit: Algorithm 1 keeps nothing but v_k on the device.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from dittofl.errors import blamed, finite, flag, fraction, nonnegative, positive, require, short
from dittofl.types import Counter, State, Vector

Rate = float | Callable[[Counter], Any]  # η, or η(t) of the round


@runtime_checkable
class Transform(Protocol):
    """One link of the chain."""

    def init(self, v: Vector) -> State:
        """Its state where a visit begins: a pytree of tensors, () for none."""

    def apply(self, d: Vector, state: State, v: Vector) -> tuple[Vector, State]:
        """The changed direction and the next state."""


Chain = tuple[Transform, ...]


class Walk(NamedTuple):
    """Where a model stands within a visit."""

    at: Vector
    states: tuple[State, ...]


def begin(through: Chain, v: Vector) -> Walk:
    """A walk that starts at v."""
    return Walk(v, tuple([link.init(v) for link in through]))


def descend(s: Walk, d: Vector, rate: Any, through: Chain) -> Walk:
    """v ← v − η T(d)."""
    d, states = turned(s, d, through) if through else (d, ())
    return Walk(plus(s.at, -rate, d), states)


def plus(v: Vector, a: Any, u: Vector) -> Vector:
    """v + a u in one pass over memory where a is a number; a compiled map fuses the other form itself."""
    return v + a * u if isinstance(a, Tensor) else torch.add(v, u, alpha=a)


def turned(s: Walk, d: Vector, through: Chain) -> tuple[Vector, tuple[State, ...]]:
    """T(d) and the next states."""
    states = []
    for link, state in zip(through, s.states, strict=True):
        d, state = link.apply(d, state, s.at)
        states.append(state)
    return d, tuple(states)


def rate(lr: Rate, t: Counter) -> Any:
    """η(t); or λ(n), for a rule of a device's samples."""
    return lr(t) if callable(lr) else lr


def check_rate(name: str, lr: Rate) -> None:
    """Refuses a step size that is no positive number and no schedule."""
    value: Any = lr
    if callable(lr) and not isinstance(lr, type):
        with blamed(f"{name}'s schedule lr="):
            value = lr(0)
    require(
        finite(value) and value > 0,
        f"{name} needs lr > 0, or a schedule that gives such numbers, got lr={short(lr)}"
        + (f", whose value at round 0 is {short(value)}" if value is not lr else ""),
    )


def check_rates(solvers: Mapping[str, object], t: int) -> None:
    """Refuses a schedule that gives no step size for round t; 0 is one, where a schedule ends."""
    for name, solver in solvers.items():
        lr = getattr(solver, "lr", 0.0)
        if callable(lr):
            with blamed(f"the schedule of {name!r}", f"round {t}"):
                value = lr(t)
            require(
                finite(value) and value >= 0,
                f"the schedule of {name!r} must give a number lr ≥ 0 in every round, got {short(value)} in round {t}",
            )


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """b ← β b + d, then d = b (heavy ball) or d + β b (Nesterov); torch.optim.SGD without dampening.

    >>> d = torch.ones(1)
    >>> d, b = Momentum(beta=0.5).apply(d, torch.ones(1), d)
    >>> d
    tensor([1.5000])
    """

    beta: float = 0.9
    nesterov: bool = False

    def __post_init__(self) -> None:
        fraction("Momentum", "beta", self.beta)
        flag("Momentum", "nesterov", self.nesterov)

    def init(self, v: Vector) -> Tensor:
        return torch.zeros_like(v)

    def apply(self, d: Vector, state: Tensor, v: Vector) -> tuple[Vector, Tensor]:
        b = self.beta * state + d
        return (d + self.beta * b if self.nesterov else b), b


@dataclass(frozen=True, kw_only=True)
class Adam:
    """m ← β₁ m + (1−β₁) d,  u ← β₂ u + (1−β₂) d²,  d = m̂ / (√û + ε)  (Kingma, Ba 2015, Algorithm 1).

    >>> adam = Adam()
    >>> d, _ = adam.apply(torch.tensor([-3.0]), adam.init(torch.zeros(1)), torch.zeros(1))
    >>> round(d.item(), 3)
    -1.0
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        fraction("Adam", "beta1", self.beta1)
        fraction("Adam", "beta2", self.beta2)
        positive("Adam", "eps", self.eps)

    def init(self, v: Vector) -> tuple[Tensor, Tensor, Tensor]:
        # The count is float64: in float32 1 − β₂ᵗ loses four digits.
        return torch.zeros_like(v), torch.zeros_like(v), torch.zeros((), dtype=torch.float64, device=v.device)

    def apply(self, d: Vector, state: State, v: Vector) -> tuple[Vector, State]:
        m, u, steps = state
        m, u, steps = self.beta1 * m + (1 - self.beta1) * d, self.beta2 * u + (1 - self.beta2) * d * d, steps + 1
        m_hat, u_hat = m / (1 - self.beta1**steps), u / (1 - self.beta2**steps)
        return m_hat / (u_hat.sqrt() + self.eps), (m, u, steps)


@dataclass(frozen=True, kw_only=True)
class Decay:
    """d ← d + ρ v: before an adaptive link L2 regularisation, behind it decoupled decay (AdamW)."""

    rate: float

    def __post_init__(self) -> None:
        nonnegative("Decay", "rate", self.rate)

    def init(self, v: Vector) -> tuple[()]:
        return ()

    def apply(self, d: Vector, state: State, v: Vector) -> tuple[Vector, State]:
        return d + self.rate * v, state


@dataclass(frozen=True, kw_only=True)
class ClipNorm:
    """d ← d · min(1, c / ‖d‖)."""

    norm: float

    def __post_init__(self) -> None:
        positive("ClipNorm", "norm", self.norm)

    def init(self, v: Vector) -> tuple[()]:
        return ()

    def apply(self, d: Vector, state: State, v: Vector) -> tuple[Vector, State]:
        tiny = torch.finfo(d.dtype).tiny
        return d * (self.norm / d.norm().clamp_min(tiny)).clamp_max(1), state
