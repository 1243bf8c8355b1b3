"""Which modules can be trained as flat rows; every other is refused with advice, before training starts."""

import copy
from collections.abc import Iterator
from operator import itemgetter

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.parameter import UninitializedParameter

from dittofl.dropout import Watch
from dittofl.errors import InputError, require
from dittofl.inputs import Inputs, each, parts


def call(module: nn.Module, x: Inputs, named: dict[str, Tensor] | None = None) -> Tensor:
    """The module's outputs, with other parameters where they are given, as a pure function that can be mapped.

    A tuple is fed as positional arguments, a dict as keyword arguments.
    """
    args, kwargs = ((), x) if isinstance(x, dict) else (x if isinstance(x, tuple) else (x,), {})
    out: Tensor = module(*args, **kwargs) if named is None else functional_call(module, named, args, kwargs)
    return out


def admit(module: nn.Module, x: Inputs, seed: int) -> tuple[nn.Module, Watch, Tensor]:
    """A copy of the module that can be trained as rows, what was seen of it on samples x, and its outputs there."""
    require(isinstance(module, nn.Module), f"the model must be a torch.nn.Module, got {type(module).__name__}")
    require(
        not isinstance(module, torch.jit.ScriptModule | nn.DataParallel) and not hasattr(module, "_orig_mod"),
        f"{type(module).__name__} wraps the model: give the plain nn.Module, the engine maps and compiles it itself",
    )
    try:
        module = copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            f"the module cannot be copied ({_first_line(error)}): give one that copy.deepcopy can"
        ) from error
    _refuse_layers(module)
    watch, out = _watched(module, x, seed)
    _refuse_parameters(module)
    require(
        isinstance(out, Tensor),
        f"the module must return one tensor, got {type(out).__name__}: wrap it in one that does",
    )
    count = len(parts(x)[0])
    require(
        out.dim() > 0 and len(out) == count,
        f"the module must return one output per sample, [{count}, …], got shape {tuple(out.shape)}",
    )
    require(
        bool(out.isfinite().all()),
        "the module's outputs on the first samples are not finite: check its weights and the data's scale",
    )
    return module, watch, out


def _watched(module: nn.Module, x: Inputs, seed: int) -> tuple[Watch, Tensor]:
    """One forward pass in training mode. It also gives lazy modules their parameters, by a seed of ours."""
    before = {name: buffer.clone() for name, buffer in module.named_buffers() if not _lazy(buffer)}
    watch = Watch()
    try:
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(seed % 2**63)
            if any(_lazy(parameter) for parameter in module.parameters()):
                call(module, x)
            state = torch.get_rng_state()
            with watch:
                out = call(module.train(), x)
                out = out.detach() if isinstance(out, Tensor) else out
            drawn = not torch.equal(state, torch.get_rng_state())
    except Exception as error:
        shapes = ", ".join(f"{tuple(part.shape)} {part.dtype}" for part in parts(x))
        raise InputError(f"the module fails on samples of shape {shapes}: {_first_line(error)}") from error
    require(
        not drawn,
        "the module's forward pass draws random numbers that cannot be seeded for each device: set the dropout inside "
        "recurrent and attention layers to 0, use nn.Dropout, or augment by the task's transform",
    )
    for name, buffer in module.named_buffers():
        require(
            name not in before or torch.equal(before[name], buffer),
            f"the module's forward pass changes its buffer {name!r}, which no device could own: make it stateless",
        )
    return watch, out


def _lazy(tensor: object) -> bool:
    return isinstance(tensor, UninitializedParameter | nn.parameter.UninitializedBuffer)


def _refuse_layers(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        where = f"{name or 'the module'} ({type(layer).__name__})"
        require(
            not (isinstance(layer, _NormBase) and layer.track_running_stats),
            f"{where} keeps running statistics, which mix devices: use nn.GroupNorm, or track_running_stats=False",
        )
        require(
            not getattr(layer, "sparse", False),
            f"{where} gives sparse gradients, which no row can hold: set sparse=False",
        )


def trained(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that make a row: tied ones once, frozen ones not."""
    return ((name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad)


def _refuse_parameters(module: nn.Module) -> None:
    rows = dict(trained(module))
    require(rows, "the module has no parameter to train: set requires_grad=True on at least one")
    first, dtype = next((name, parameter.dtype) for name, parameter in rows.items())
    for name, parameter in rows.items():
        require(
            parameter.dtype in (torch.float32, torch.float64),
            f"parameter {name!r} is {parameter.dtype}: rows are float32 or float64, call module.float() first",
        )
        require(
            parameter.dtype == dtype, f"parameter {name!r} is {parameter.dtype} but {first!r} is {dtype}: use one dtype"
        )
        require(bool(parameter.isfinite().all()), f"parameter {name!r} holds NaN or Inf: give finite initial weights")


def mixes(module: nn.Module, x: Inputs) -> bool:
    """Whether an output depends on the other samples of its batch (batch norm with batch statistics does)."""
    if fails_alone(module, x) or any(isinstance(layer, _BatchNorm) for layer in module.modules()):
        return True
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():  # away from zeros, where nothing depends on anything
        named = {
            name: parameter + 0.1 * torch.randn(parameter.shape, generator=draws, dtype=parameter.dtype)
            for name, parameter in trained(module)
        }
        together = call(module.eval(), x, named)
        alone = torch.cat([call(module, each(x, itemgetter(slice(b, b + 1))), named) for b in range(len(together))])
    return not torch.allclose(together, alone, rtol=1e-3, atol=1e-3 * float(together.abs().max()))


def fails_alone(module: nn.Module, x: Inputs) -> bool:
    """Whether the module refuses a batch of one, as batch statistics do where a channel has one value."""
    try:
        with torch.no_grad():
            call(module.eval(), each(x, itemgetter(slice(0, 1))))
    except Exception:
        return True
    return False


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"
