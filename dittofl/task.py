"""A task is a module and a loss; bound to a federation it is F_k(row) = mean of the losses + penalty."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from dittofl import losses as per_sample_losses
from dittofl.errors import InputError, require
from dittofl.federation import PARTS, Federation
from dittofl.inputs import Inputs, each
from dittofl.layout import Layout
from dittofl.losses import Loss
from dittofl.module import admit, call, fails_alone, mixes, trained
from dittofl.target import Target, by_sample
from dittofl.types import Criterion

Penalty = Callable[[dict[str, Tensor]], Tensor]  # named parameters → a number added to F_k
Transform = Callable[[Inputs, torch.Generator], Inputs]  # augments a minibatch by draws of its generator


HELD = 2**26  # elements of activations that a forward pass over a whole part may hold


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A user's metric: (outputs [n, …], y [n, …]) of one device → one number, or one per sample to be averaged."""

    of: Callable[[Tensor, Tensor], Tensor | float]
    lower_is_better: bool = False


@dataclass(frozen=True)
class Task:
    """A model and what it is trained for. The module is copied, never changed; its frozen parameters stay as they are.

    >>> Task(nn.Linear(2, 3), nn.CrossEntropyLoss()).metrics
    {}
    """

    module: nn.Module
    loss: Loss
    target: Target | None = None  # the meaning of y, inferred where it is not given
    penalty: Penalty | None = None
    transform: Transform | None = None
    metrics: Mapping[str, Metric | Callable[[Tensor, Tensor], Tensor | float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", per_sample_losses.per_sample(self.loss))
        for name, metric in self.metrics.items():
            require(name not in ("accuracy", "loss"), f"a metric of your own cannot be called {name!r}: rename it")
            require(
                isinstance(metric, Metric) or callable(metric),
                f"metric {name!r} must be a function (outputs, y) → number, got {metric!r}",
            )

    def metric(self, name: str) -> Metric:
        """A user's metric with its direction; a bare function counts as higher-is-better."""
        metric = self.metrics[name]
        return metric if isinstance(metric, Metric) else Metric(of=metric)

    def bind(self, federation: Federation, seed: int = 0) -> "Objective":
        """F_k on rows, after every check that data and module allow before training."""
        x, y = _first_samples(federation)
        dtype = next(
            (p.dtype for p in getattr(self.module, "parameters", list)() if p.is_floating_point()), torch.float32
        )
        x = each(x, lambda part: prepared(part, dtype))
        module, watch, out = admit(self.module, x, seed)
        target = self.target or per_sample_losses.infer(self.loss, out, y)
        _check_labels(federation, target)
        rows = dict(trained(module))
        objective = Objective(
            task=self,
            module=module,
            layout=Layout(tuple(rows), tuple(tuple(parameter.shape) for parameter in rows.values())),
            w0=torch.cat([parameter.detach().reshape(-1) for parameter in rows.values()]),
            target=target,
            drops=watch.drops,
            mixes=mixes(module, x),
            activations=-(-watch.elements // len(out)),
            width=out[0].numel(),
            accurate=target.right(*per_sample_losses.aligned(out, y)) is not None,
        )
        objective.try_loss(out, y)
        if objective.mixes and fails_alone(module, x):
            _check_batches_of_one(federation)
        return objective


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """F_k on flat rows: what the engines evaluate."""

    task: Task
    module: nn.Module
    layout: Layout
    w0: Tensor
    target: Target
    drops: bool  # the module draws dropout masks
    mixes: bool  # an output depends on its whole batch
    activations: int  # elements held per sample of a forward pass
    width: int  # elements of one output
    accurate: bool  # the target knows which outputs are right

    @property
    def paddable(self) -> bool:
        """Whether a short minibatch may be filled up with samples of weight 0."""
        return not (self.drops or self.mixes)

    def piece(self, n: int) -> int:
        """How many of n samples one forward pass over a whole part takes."""
        return max(1, n if self.mixes else HELD // max(1, self.activations))

    def to(self, device: torch.device) -> "Objective":
        """The same objective with module and w⁰ on a device."""
        return replace(self, module=self.module.to(device), w0=self.w0.to(device))

    def losses(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of every sample, [B]."""
        return by_sample(self.task.loss(*per_sample_losses.aligned(out, y)))

    def other(self, criterion: Criterion, out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
        """The losses [B] of another objective that a solver asks for."""
        return per_sample_losses.checked(criterion(out, y, anchor), len(out))

    def penalty(self, named: Callable[[], dict[str, Tensor]]) -> Tensor | float:
        """What F_k adds to the mean loss."""
        return 0.0 if self.task.penalty is None else self.task.penalty(named())

    def right(self, out: Tensor, y: Tensor) -> Tensor | None:
        """The share of each sample that is predicted right, where the target knows it."""
        return self.target.right(*per_sample_losses.aligned(out, y))

    def forward(self, row: Tensor, x: Inputs) -> Tensor:
        """The module's outputs with a row as its parameters, as a pure function that can be mapped."""
        return call(self.module, x, self.layout.named(row))

    def module_of(self, row: Tensor) -> nn.Module:
        """A module of the user's own class that holds this row."""
        module = copy.deepcopy(self.module).eval()
        with torch.no_grad():
            for (_, parameter), value in zip(trained(module), self.layout.split(row), strict=True):
                parameter.copy_(value)
        return module

    def try_loss(self, out: Tensor, y: Tensor) -> None:
        """Refuses a loss that fails on the first samples or does not give one number for each."""
        try:
            value = self.task.loss(*per_sample_losses.aligned(out, y))
        except Exception as error:
            raise InputError(
                f"the loss fails on outputs {tuple(out.shape)} {out.dtype} and y {tuple(y.shape)} {y.dtype}: "
                f"{(str(error) or type(error).__name__).strip().splitlines()[0]}"
            ) from error
        per_sample_losses.checked(by_sample(value) if isinstance(value, Tensor) else value, len(out))


def prepared(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats and images (uint8) in the module's dtype; integers, which are tokens, as they are."""
    return x.to(dtype) if x.is_floating_point() or x.dtype == torch.uint8 else x


def _first_samples(federation: Federation, count: int = 4) -> tuple[Inputs, Tensor]:
    """A few samples, of several devices where the first has not as many."""
    return each(federation.x, lambda part: part[:count]), federation.y[:count]


def _check_batches_of_one(federation: Federation) -> None:
    for part in PARTS:
        lonely = np.flatnonzero(federation.sizes(part) == 1)
        if len(lonely):
            raise InputError(
                f"device {federation.ids[lonely[0]]!r} has 1 {part} sample, of which the module can take no batch "
                "statistics: give it more samples, or use nn.GroupNorm"
            )


def _check_labels(federation: Federation, target: Target) -> None:
    legal = target.legal(federation.y)
    if not bool(legal.all()):
        bad = int(torch.nonzero(~legal)[0])
        k = int(np.searchsorted(federation.bounds[:, 0], bad, side="right")) - 1
        raise InputError(
            f"device {federation.ids[k]!r} has a sample labelled {federation.y[bad].tolist()}, but {target} was "
            "expected from the module's outputs and the loss: correct the label, or give the task its target="
        )
