"""A task is a module and a loss; bound to a federation it is F_k(row) = mean of the losses + penalty."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from dittofl import losses as per_sample_losses
from dittofl.errors import InputError, an_instance, blamed, require, short
from dittofl.federation import PARTS, Federation
from dittofl.inputs import Inputs, each
from dittofl.layout import Layout
from dittofl.losses import Loss
from dittofl.module import admit, call, fails_alone, mixes, trained
from dittofl.target import Classes, Target, by_sample
from dittofl.trial import extremes, try_gradient, try_loss, try_penalty, try_transform
from dittofl.types import Criterion

Penalty = Callable[[dict[str, Tensor]], Tensor]  # named parameters → a number added to F_k
Transform = Callable[[Inputs, torch.Generator], Inputs]  # augments a minibatch by draws of its generator


FIRST = 4  # samples that module and functions are tried on
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
        require(
            self.target is None or an_instance(self.target, Target),
            f"target must be a meaning of y such as Binary(), or None, got {short(self.target)}",
        )
        for name in ("penalty", "transform"):
            given = getattr(self, name)
            require(given is None or callable(given), f"{name} must be a function, or None, got {short(given)}")
        require(isinstance(self.metrics, Mapping), f"metrics must be a dict by name, got {short(self.metrics)}")
        for name, metric in self.metrics.items():
            require(
                isinstance(name, str) and name not in ("accuracy", "loss"),
                f"a metric of your own cannot be called {name!r}: rename it",
            )
            function = metric.of if isinstance(metric, Metric) else metric
            require(
                callable(function), f"metric {name!r} must be a function (outputs, y) → number, got {short(function)}"
            )

    def metric(self, name: str) -> Metric:
        """A user's metric with its direction; a bare function counts as higher-is-better."""
        metric = self.metrics[name]
        return metric if isinstance(metric, Metric) else Metric(of=metric)

    def bind(self, federation: Federation, seed: int = 0) -> "Objective":
        """F_k on rows, after every check that data and module allow before training."""
        parameters = self.module.parameters() if an_instance(self.module, nn.Module) else ()
        dtype = next((p.dtype for p in parameters if p.is_floating_point()), torch.float32)
        x, y = each(federation.x, lambda part: prepared(part[:FIRST].clone(), dtype)), federation.y[:FIRST]
        module, watch, out = admit(self.module, x, seed)
        target = self.target or per_sample_losses.infer(self.loss, out, federation.y)
        _check_labels(federation, target, self.loss, out)
        try_loss(self.loss, out, y)
        rows = dict(trained(module))
        objective = Objective(
            task=self,
            module=module,
            layout=Layout(tuple(rows), tuple(tuple(parameter.shape) for parameter in rows.values())),
            w0=torch.cat([parameter.detach().reshape(-1) for parameter in rows.values()]),
            target=target,
            drops=watch.drops,
            writes=watch.writes,
            mixes=mixes(module, x),
            activations=-(-watch.elements // len(out)),
            width=out[0].numel(),
            accurate=target.right(*per_sample_losses.aligned(out, y)) is not None,
        )
        objective.rehearse(federation, x, y)
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
    writes: bool  # the module changes its inputs in place
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
        return call(self.module, self.fed(x), self.layout.named(row))

    def fed(self, x: Inputs) -> Inputs:
        """What the module may be given: copies, where it would change them."""
        return each(x, torch.clone) if self.writes else x

    def module_of(self, row: Tensor) -> nn.Module:
        """A module of the user's own class that holds this row."""
        module = copy.deepcopy(self.module).eval()
        with torch.no_grad():
            for (_, parameter), value in zip(trained(module), self.layout.split(row), strict=True):
                parameter.copy_(value)
        return module

    def rehearse(self, federation: Federation, x: Inputs, y: Tensor) -> None:
        """Refuses what would fail in training: functions of the user's, tokens out of range, batches of one."""
        row = self.w0.clone().requires_grad_()
        try_gradient(self.losses(self.forward(row, x), y).mean())
        if self.task.penalty is not None:
            try_penalty(self.task.penalty, self.layout.named(row))
        if self.task.transform is not None:
            try_transform(self.task.transform, x)
        if self.mixes and fails_alone(self.module, x):
            _check_batches_of_one(federation)
            return
        for place, sample in extremes(federation.x):
            with blamed(f"the module on a sample of device {_owner(federation, place)!r}"), torch.no_grad():
                self.forward(self.w0, each(sample, lambda part: prepared(part, self.w0.dtype)))


def prepared(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats and images (uint8) in the module's dtype; integers, which are tokens, as they are."""
    return x.to(dtype) if x.is_floating_point() or x.dtype == torch.uint8 else x


def _check_batches_of_one(federation: Federation) -> None:
    for part in PARTS:
        lonely = np.flatnonzero(federation.sizes(part) == 1)
        if len(lonely):
            raise InputError(
                f"device {federation.ids[lonely[0]]!r} has 1 {part} sample, of which the module can take no batch "
                "statistics: give it more samples, or use nn.GroupNorm"
            )


def _check_labels(federation: Federation, target: Target, loss: Loss, out: Tensor) -> None:
    legal = target.legal(federation.y)
    meaning = f"{(type(target).__doc__ or '').split(';')[0]} ({target})"
    if not bool(legal.all()):
        bad = int(torch.nonzero(~legal)[0])
        name = getattr(getattr(loss, "func", loss), "__name__", type(loss).__name__)
        raise InputError(
            f"device {_owner(federation, bad)!r} has a sample labelled {federation.y[bad].tolist()}, but {meaning} was "
            f"expected of the outputs and the loss {name}: correct the label, or give the task its target="
        )
    require(
        not isinstance(target, Classes) or (out.dim() > 1 and target.C <= out.shape[1] > 1),
        f"{target} needs as many outputs, got outputs of shape {tuple(out.shape)}: widen the module's last layer",
    )


def _owner(federation: Federation, place: int) -> str:
    """The device that holds a sample."""
    return federation.ids[int(np.searchsorted(federation.bounds[:, 0], place, side="right")) - 1]
