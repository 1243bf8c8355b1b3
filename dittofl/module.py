"""Which modules can be trained as flat rows; every other is refused with advice, before training starts."""

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from dittofl.dropout import Watch
from dittofl.errors import InputError, require, short
from dittofl.inputs import Inputs, each, parts

UNSEEDED = (
    "the module's forward pass draws random numbers that cannot be seeded for each device: use nn.Dropout, or augment "
    "by the task's transform"
)


def call(module: nn.Module, x: Inputs, named: dict[str, Tensor] | None = None) -> Tensor:
    """The module's outputs, with other parameters where they are given, as a pure function that can be mapped.

    A tuple is fed as positional arguments, a dict as keyword arguments.
    """
    args, kwargs = ((), x) if isinstance(x, dict) else (x if isinstance(x, tuple) else (x,), {})
    out: Tensor = module(*args, **kwargs) if named is None else functional_call(module, named, args, kwargs)
    return out


UNSTEADY = (
    "the module's outputs for the same samples differ from pass to pass, by random numbers or a state that no seed of "
    "ours reaches: use nn.Dropout, augment by the task's transform, or make it stateless"
)


class Seen(NamedTuple):
    """What a forward pass in training mode showed."""

    out: Tensor
    drops: bool  # dropout masks are drawn
    writes: bool  # its inputs are changed in place
    elements: int  # that it makes


def admit(module: Any, x: Inputs, seed: int) -> tuple[nn.Module, Seen]:
    """A copy of the module that can be trained as rows, and what was seen of it on samples x."""
    got = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
    require(isinstance(module, nn.Module), f"the model must be an nn.Module, an instance, got {got}")
    require(
        not isinstance(module, torch.jit.ScriptModule | nn.DataParallel) and not hasattr(module, "_orig_mod"),
        f"{type(module).__name__} wraps the model: give the plain nn.Module, the engine maps and compiles it itself",
    )
    _refuse_layers(module)
    try:
        module = copy.deepcopy(module)
    except Exception as error:
        raise InputError(f"the module cannot be copied ({short(error)}): give one that copy.deepcopy can") from error
    _refuse_parameters(module)
    seen = _watched(module, x, seed)
    _refuse_layers(module)  # lazy ones have become what they are
    _refuse_parameters(module)
    out = seen.out
    require(isinstance(out, Tensor), f"the module must return one tensor, got {type(out).__name__}: wrap it to do so")
    count = len(parts(x)[0])
    require(
        out.dim() > 0 and len(out) == count,
        f"the module must return one output per sample, [{count}, …], got shape {tuple(out.shape)}",
    )
    require(out.is_floating_point(), f"the module must return real numbers, got {out.dtype}")
    require(
        bool(out.isfinite().all()),
        "the module's outputs on the first samples are not finite: check its weights and the data's scale",
    )
    return module, seen


def _watched(module: nn.Module, x: Inputs, seed: int) -> Seen:
    """Forward passes in training mode. The first gives lazy modules their parameters, by a seed of ours."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed % 2**63)
        if any(_lazy(parameter) for parameter in module.parameters()):
            _tried(module, x)
        # The version counts writes, even of the same values.
        before = {name: (buffer, buffer._version) for name, buffer in module.named_buffers()}
        state = global_state()
        fed = each(x, torch.clone)
        with Watch() as watch:
            out = _tried(module.train(), fed)
        writes = any(not torch.equal(a, b) for a, b in zip(parts(x), parts(fed), strict=True))
        for name, buffer in module.named_buffers():
            require(
                name not in before or (before[name][0] is buffer and before[name][1] == buffer._version),
                f"the module's forward pass changes its buffer {name!r}, which no device could own: make it stateless",
            )
        with Watch() as switched_off:
            still = _tried(module.eval(), each(x, torch.clone))
        with Watch():
            again = [_tried(module.train(training), each(x, torch.clone)) for training in (True, False)]
        require(global_state() == state and not switched_off.drops, UNSEEDED)
        require(all(map(_alike, (out, still), again)), UNSTEADY)
    return Seen(out.detach() if isinstance(out, Tensor) else out, watch.drops, writes, watch.elements)


def _alike(a: object, b: object) -> bool:
    """Whether two outputs are the same but for rounding; what is no tensor of real numbers is refused elsewhere."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.shape != b.shape or not a.is_floating_point():
        return True
    scale = float(a.abs().nan_to_num(0, 0, 0).amax()) if a.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-5, atol=1e-5 * scale, equal_nan=True)


def _tried(module: nn.Module, x: Inputs) -> Tensor:
    try:
        return call(module, x)
    except Exception as error:
        shapes = ", ".join(f"{tuple(part.shape)} {part.dtype}" for part in parts(x))
        tokens = any(not part.is_floating_point() for part in parts(x))
        advice = "give what its forward takes; uint8 counts as images, tokens are int64"
        advice = "integers are tokens: give those it knows, or features as floats" if tokens else advice
        raise InputError(f"the module fails on samples of shape {shapes}: {short(error)}: {advice}") from error


def global_state() -> tuple[object, ...]:
    """Where the generators stand that no device owns."""
    numpy: Any = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), numpy[1].tobytes(), numpy[2], random.getstate()


def _lazy(tensor: object) -> bool:
    return isinstance(tensor, UninitializedParameter | UninitializedBuffer)


def _refuse_layers(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        where = f"{name or 'the module'} ({type(layer).__name__})"
        require(
            not (isinstance(layer, _NormBase) and layer.track_running_stats),
            f"{where} keeps running statistics, which mix devices: use nn.GroupNorm, or track_running_stats=False",
        )
        require(
            not (isinstance(layer, nn.RNNBase | nn.MultiheadAttention) and layer.dropout > 0),
            f"{where} draws dropout masks where they cannot be seeded: set its dropout=0 and put nn.Dropout behind it",
        )
        require(
            not isinstance(layer, nn.Embedding | nn.EmbeddingBag) or layer.max_norm is None,
            f"{where} rescales its own weight, which solvers alone may move: leave out max_norm, or use a penalty",
        )
        require(
            not getattr(layer, "sparse", False),
            f"{where} gives sparse gradients, which no row can hold: set sparse=False",
        )


def trained(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that make a row: tied ones once, frozen ones not."""
    return ((name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad)


def _refuse_parameters(module: nn.Module) -> None:
    rows = {name: parameter for name, parameter in trained(module) if not _lazy(parameter)}
    if not rows:
        lazy = any(map(_lazy, module.parameters()))
        require(lazy, "the module has no parameter to train: set requires_grad=True on at least one")
        return
    first, dtype = next((name, parameter.dtype) for name, parameter in rows.items())
    for name, parameter in rows.items():
        require(
            parameter.dtype in (torch.float32, torch.float64),
            f"parameter {name!r} is {parameter.dtype}: rows are float32 or float64, call module.float() first",
        )
        require(
            parameter.dtype == dtype, f"parameter {name!r} is {parameter.dtype} but {first!r} is {dtype}: use one dtype"
        )
        require(not parameter.is_meta, f"parameter {name!r} is on the meta device: give the module its weights")
        require(bool(parameter.isfinite().all()), f"parameter {name!r} holds NaN or Inf: give finite initial weights")
