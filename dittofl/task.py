"""A task: a module and what it is trained for, as the user declares it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dittofl.errors import an_instance, flag, require, short
from dittofl.inputs import Inputs
from dittofl.losses import Loss, per_sample
from dittofl.target import Target

Penalty = Callable[[dict[str, Tensor]], Tensor]  # named parameters → a number added to F_k
Transform = Callable[[Inputs, torch.Generator], Inputs]  # augments a minibatch by draws of its generator


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A user's metric: (outputs [n, …], y [n, …]) of one device → one number, or one per sample to be averaged."""

    of: Callable[[Tensor, Tensor], Tensor | float]
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        flag("Metric", "lower_is_better", self.lower_is_better)


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
        object.__setattr__(self, "loss", per_sample(self.loss))
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
                isinstance(name, str) and name not in ("accuracy", "loss", "backdoor"),
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
