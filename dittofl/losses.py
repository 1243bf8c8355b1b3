"""Per-sample losses: any torch loss with its reduction switched off, or the user's own function."""

import copy
import fnmatch
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dittofl.errors import cut, nonnegative, require, short
from dittofl.target import Binary, Classes, Real, Signs, Target

Loss = Callable[[Tensor, Tensor], Tensor]


def hinge(out: Tensor, y: Tensor) -> Tensor:
    """max(0, 1 − y·out) for y ∈ {−1, +1}: the loss of a linear SVM (its norm is a penalty of the task).

    >>> hinge(torch.tensor([2.0, 0.5]), torch.tensor([1.0, -1.0])).tolist()
    [0.0, 1.5]
    """
    return F.relu(1 - y * out)


def half_square(out: Tensor, y: Tensor) -> Tensor:
    """½ (out − y)², whose mean over n samples is (1/2n) ‖·‖²: the loss of the paper's theory.

    >>> half_square(torch.tensor([3.0]), torch.tensor([1.0])).tolist()
    [2.0]
    """
    return 0.5 * (out - y) ** 2


@dataclass(frozen=True, kw_only=True)
class SquaredNorm:
    """r(w) = c Σ w_i² over the parameters that match a pattern: what a task may add to F_k as its penalty.

    >>> SquaredNorm(scale=0.5, of=("weight",))({"weight": torch.tensor([1.0, 2.0]), "bias": torch.ones(1)})
    tensor(2.5000)
    """

    scale: float
    of: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        nonnegative("SquaredNorm", "scale", self.scale)
        require(
            isinstance(self.of, tuple) and self.of and all(isinstance(pattern, str) for pattern in self.of),
            f"SquaredNorm needs of=('pattern', …), names of parameters, got of={short(self.of)}",
        )

    def __call__(self, named: Mapping[str, Tensor]) -> Tensor:
        chosen = [name for name in named if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.of)]
        require(chosen, f"SquaredNorm: no parameter matches {self.of}: there are {cut(', '.join(named))}")
        return self.scale * torch.stack([named[name].square().sum() for name in chosen]).sum()


SETTLED: dict[tuple[Any, ...], Target] = {
    (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss, nn.PoissonNLLLoss, nn.GaussianNLLLoss, nn.KLDivLoss): Real(),
    (half_square, F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.poisson_nll_loss, F.kl_div): Real(),
    (nn.BCELoss, F.binary_cross_entropy): Binary(threshold=0.5),
    (nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits, nn.MultiLabelSoftMarginLoss): Binary(),
    (hinge, nn.SoftMarginLoss, F.soft_margin_loss): Signs(),
}


def per_sample(loss: Loss) -> Loss:
    """The loss of every sample, [B], from a loss that would average them."""
    require(
        callable(loss) and not isinstance(loss, type),
        f"loss must be a torch loss, such as nn.CrossEntropyLoss(), or a function of outputs and y, got {short(loss)}",
    )
    if isinstance(loss, nn.Module):
        learnt = [name for name, parameter in loss.named_parameters() if parameter.requires_grad]
        require(
            not learnt,
            f"the loss has parameters of its own, {short(learnt)}, which no row holds and nothing trains: move them "
            "into the module, or set requires_grad=False",
        )
        loss = copy.deepcopy(loss)
        if hasattr(loss, "reduction"):
            loss.reduction = "none"  # type: ignore[assignment]
        return loss
    return partial(cast(Any, loss), reduction="none") if "reduction" in _parameters(loss) else loss


def aligned(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, 1] against y [B] lose the 1, lest the loss broadcast to [B, B]; y follows the outputs' dtype
    unless it holds class numbers."""
    if out.dim() == y.dim() + 1 and out.shape[-1] == 1:
        out = out.squeeze(-1)
    return (out, y) if out.dim() > y.dim() or y.dtype == out.dtype else (out, y.to(out.dtype))


def infer(loss: Loss, out: Tensor, y: Tensor) -> Target:
    """What y means, from the loss where that settles it, else from all the labels."""
    loss = getattr(loss, "func", loss)  # what `per_sample` wrapped
    for kinds, target in SETTLED.items():
        if any(loss is kind or (isinstance(kind, type) and isinstance(loss, kind)) for kind in kinds):
            return target
    if not y.is_floating_point() and out.dim() == y.dim() + 1 and out.shape[1] > 1:
        return Classes(out.shape[1])
    if isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss | nn.MultiMarginLoss):
        # Class probabilities as y are neither right nor wrong.
        return Real() if y.shape[1:] == out.shape[1:] else Classes(out.shape[1] if out.dim() > 1 else 1)
    for target in (Signs(), Binary()):
        if bool(target.legal(y).all()):
            return target
    return Real()


def _parameters(function: Loss) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # builtins without a signature
        return frozenset()


def checked(losses: Tensor, count: int) -> Tensor:
    """The losses of an objective that a solver asks for, refused where they are not [B]."""
    require(
        isinstance(losses, Tensor) and losses.shape == (count,),
        f"an objective must give one value per sample, [{count}], got "
        + (f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else short(losses)),
    )
    return losses
