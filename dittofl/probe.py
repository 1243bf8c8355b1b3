"""What a module does that only shows when it is run: on one sample alone, on many, with other parameters."""

from operator import itemgetter

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dittofl.dropout import Watch
from dittofl.errors import require
from dittofl.inputs import Inputs, each
from dittofl.module import call, trained

MODES = (True, False)  # training and evaluation, in which modules may differ


def mixes(module: nn.Module, x: Inputs) -> bool:
    """Whether an output depends on the other samples of its batch (batch norm with batch statistics does)."""
    if fails_alone(module, x) or any(isinstance(layer, _BatchNorm) for layer in module.modules()):
        return True
    named = _moved(module, 0.1)  # away from zeros, where nothing depends on anything
    for training in MODES:
        together = _run(module, x, named, training=training)
        alone = torch.cat(
            [_run(module, each(x, itemgetter(slice(b, b + 1))), named, training=training) for b in range(len(together))]
        )
        if not torch.allclose(together, alone, rtol=1e-3, atol=1e-3 * float(together.abs().max())):
            return True
    return False


def fails_alone(module: nn.Module, x: Inputs) -> bool:
    """Whether the module refuses a batch of one, as batch statistics do where a channel has one value."""
    for training in MODES:
        try:
            out = _run(module, each(x, itemgetter(slice(0, 1))), None, training=training)
        except Exception:
            return True
        require(
            out.dim() > 0 and len(out) == 1,
            f"the module must return one output per sample, [1, …] of a batch of one, got shape {tuple(out.shape)}: "
            "name the dimension, .squeeze(-1), where it calls .squeeze()",
        )
    return False


def refuse_writes(module: nn.Module, x: Inputs) -> None:
    """Refuses a forward pass that changes parameters: only a solver's step may move a row.

    Parameters far away show a clamp or a renormalisation that leaves the first weights as they are.
    """
    kept = {name: (parameter, parameter.detach().clone()) for name, parameter in module.named_parameters()}
    for training in MODES:
        for scale in (0.0, 1e3):
            named = _moved(module, scale)
            before = {name: parameter.clone() for name, parameter in named.items()}
            try:
                _run(module, x, named, training=training)
            except Exception:
                if not scale:
                    raise
            changed = [
                *(name for name, value in before.items() if not torch.equal(named[name], value)),
                *(name for name, (parameter, value) in kept.items() if not torch.equal(parameter, value)),
            ]
            require(
                not changed,
                f"the module's forward pass changes its parameter {changed and changed[0]!r}, which solvers alone may "
                "move: constrain a copy of it in forward, or use a penalty",
            )


def _moved(module: nn.Module, scale: float) -> dict[str, Tensor]:
    """The trained parameters at another place."""
    draws = torch.Generator().manual_seed(0)
    return {
        name: parameter.detach() + scale * torch.randn(parameter.shape, generator=draws, dtype=parameter.dtype)
        for name, parameter in trained(module)
    }


def _run(module: nn.Module, x: Inputs, named: dict[str, Tensor] | None, *, training: bool) -> Tensor:
    """Outputs with dropout switched off."""
    with torch.no_grad(), Watch():
        return call(module.train(training), each(x, torch.clone), named)
