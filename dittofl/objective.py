"""F_k(row) = mean of the losses + penalty: a task bound to the data, as the engines evaluate it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dittofl.inputs import Inputs, each
from dittofl.layout import Layout
from dittofl.losses import aligned, checked
from dittofl.module import call, trained
from dittofl.target import Target, by_sample
from dittofl.task import Task
from dittofl.types import Criterion

HELD = 2**26  # elements of activations that a forward pass over a whole part may hold


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
    lonely: bool  # the module fails on a batch of one
    inputs: int  # elements of a sample
    activations: int  # elements held per sample of a forward pass, the sample's among them
    width: int  # elements of one output
    accurate: bool  # the target knows which outputs are right

    @property
    def paddable(self) -> bool:
        """Whether a short minibatch may be filled up with samples of weight 0."""
        return not (self.drops or self.mixes)

    def piece(self, n: int) -> int:
        """How many of n samples one forward pass over a whole part takes."""
        return max(1, n if self.mixes else HELD // self.activations)

    def to(self, device: torch.device) -> "Objective":
        """The same objective with module and w⁰ on a device."""
        loss = self.task.loss
        if isinstance(loss, nn.Module):  # class weights
            loss = copy.deepcopy(loss).to(device)
        return replace(self, task=replace(self.task, loss=loss), module=self.module.to(device), w0=self.w0.to(device))

    def losses(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of every sample, [B]."""
        return by_sample(self.task.loss(*aligned(out, y)))

    def other(self, criterion: Criterion, out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
        """The losses [B] of another objective that a solver asks for."""
        return checked(criterion(out, y, anchor), len(out))

    def penalty(self, named: Callable[[], dict[str, Tensor]]) -> Tensor | float:
        """What F_k adds to the mean loss."""
        return 0.0 if self.task.penalty is None else self.task.penalty(named())

    def right(self, out: Tensor, y: Tensor) -> Tensor | None:
        """The share of each sample that is predicted right, where the target knows it."""
        return self.target.right(*aligned(out, y))

    def forward(self, row: Tensor, x: Inputs) -> Tensor:
        """The module's outputs with a row as its parameters, as a pure function that can be mapped."""
        return call(self.module, self.fed(x), self.layout.named(row))

    def fed(self, x: Inputs) -> Inputs:
        """What the module may be given: copies, where it would change them."""
        return each(x, torch.clone) if self.writes else x

    def module_of(self, row: Tensor) -> nn.Module:
        """A module of the user's own class that holds this row."""
        module = copy.deepcopy(self.module).eval()
        for (_, parameter), value in zip(trained(module), self.layout.split(row), strict=True):
            parameter.data = value.detach().clone()  # with the strides of a row: the engine's may be others
        return module


def prepared(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats and images (uint8) in the module's dtype; integers, which are tokens, as they are."""
    return x.to(dtype) if x.is_floating_point() or x.dtype == torch.uint8 else x
