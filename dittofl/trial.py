"""What users give as functions, tried on a few samples before training starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from dittofl.errors import blamed, finite, require, short
from dittofl.inputs import Inputs, each, parts
from dittofl.losses import Loss, aligned
from dittofl.module import global_state
from dittofl.target import by_sample


@contextmanager
def seeded(what: str) -> Iterator[None]:
    """Refuses what draws from a global generator within, and leaves those as they were."""
    with torch.random.fork_rng():
        before = global_state()
        yield
        drawn = global_state() != before
    require(not drawn, f"{what} draws from a global generator, which no seed of ours reaches: use the one it is given")


def try_loss(loss: Loss, out: Tensor, y: Tensor) -> None:
    """The loss must give one finite number a sample, that of this sample alone."""
    out, y = aligned(out, y)
    name = getattr(loss, "func", loss)
    require(
        not (isinstance(name, nn.CrossEntropyLoss | nn.NLLLoss) and y.is_floating_point() and y.dim() < out.dim()),
        f"y is {y.dtype}, but cross-entropy needs class numbers: give y as integers 0 to C−1",
    )
    require(
        not (isinstance(name, nn.CrossEntropyLoss | nn.NLLLoss) and y.dim() == out.dim() == 2 and y.shape[1] == 1),
        f"y has shape {tuple(y.shape)}, but cross-entropy needs one class number a sample: flatten it, y.reshape(-1)",
    )
    shapes = f"outputs {tuple(out.shape)} {out.dtype} and y {tuple(y.shape)} {y.dtype}"
    with seeded("the loss"), blamed("the loss", shapes):
        value: Any = loss(out, y)
    elementwise = getattr(value, "shape", None) == y.shape and (out.shape == y.shape or out.dim() > y.dim())
    got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else short(value)
    apart = isinstance(value, Tensor) and value.dim() > 1 and out.shape != y.shape
    advice = "give y the shape of the outputs" if apart else "do not average over samples, reduction='none'"
    require(
        isinstance(value, Tensor) and (value.shape == (len(out),) or elementwise),
        f"the loss must give one value per sample, [{len(out)}], of {shapes}, got {got}: {advice}",
    )
    require(value.is_floating_point(), f"the loss must give real numbers with a gradient, got {value.dtype}")
    require(
        bool(value.isfinite().any() and not value.isnan().any()),
        f"the loss is not finite on the first samples, got {short(value.tolist())}: check it and the data's scale",
    )
    with blamed("the loss on a single sample"):
        alone = [loss(out[b : b + 1], y[b : b + 1]) for b in range(len(out))]
    require(
        torch.allclose(torch.cat([by_sample(one) for one in alone]), by_sample(value), rtol=1e-3, atol=1e-5),
        "the loss of a sample depends on the others of its batch, whose size differs between devices: make it the "
        "loss of each sample alone",
    )


def try_penalty(penalty: Any, named: dict[str, Tensor]) -> None:
    """A penalty must be one finite number, as a tensor that can be differentiated."""
    with blamed("the penalty"):
        value = penalty(named)
    number = isinstance(value, Tensor) and value.dim() == 0
    got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) and value.dim() else short(value)
    require(
        finite(float(value.detach()) if number else value),
        f"the penalty must be one finite number, a 0-d tensor made of the parameters, got {got}",
    )


def try_transform(transform: Any, x: Inputs) -> None:
    """A transform must keep number, shape and dtype of the samples."""
    with seeded("the transform"), blamed("the transform, called with samples and a generator,"):
        new, again = (transform(each(x, torch.clone), torch.Generator().manual_seed(0)) for _ in range(2))
    same = type(new) is type(x) and all(isinstance(part, Tensor) for part in parts(new))
    require(same, f"the transform must give what it got, {type(x).__name__}, got {type(new).__name__}")
    for a, b in zip(parts(x), parts(new), strict=True):
        require(
            a.shape == b.shape and a.dtype == b.dtype,
            f"the transform must keep the samples' number, shape and dtype, {tuple(a.shape)} {a.dtype}, got "
            f"{tuple(b.shape)} {b.dtype}",
        )
    repeated = all(torch.equal(a, b) for a, b in zip(parts(new), parts(again), strict=True))
    require(repeated, "the transform gives other samples for an equal generator: draw from the one it is given alone")


def try_gradient(value: Tensor) -> None:
    """F_k must depend on the row."""
    require(
        value.requires_grad,
        "the loss does not depend on the module's parameters by a gradient: leave out detach, argmax and rounding",
    )


def extremes(x: Inputs) -> list[tuple[int, Inputs]]:
    """The samples with the smallest and the largest number of each column of integer inputs, and where they are."""
    found: list[int] = []
    for part in parts(x):
        if not part.is_floating_point() and part.dtype != torch.uint8 and part.numel():
            flat = part.reshape(len(part), -1)
            found += [*flat.argmin(0).tolist(), *flat.argmax(0).tolist()]
    return [(place, each(x, itemgetter(slice(place, place + 1)))) for place in sorted(set(found))]
