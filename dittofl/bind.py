"""From a task and a federation to F_k on rows, after every check that they allow before training."""

import numpy as np
import torch
from torch import Tensor, nn

from dittofl.errors import InputError, an_instance, blamed, require
from dittofl.federation import PARTS, Federation
from dittofl.inputs import Inputs, each, parts
from dittofl.layout import Layout
from dittofl.losses import Loss, aligned, infer
from dittofl.module import admit, trained
from dittofl.objective import Objective, prepared
from dittofl.probe import fails_alone, mixes, refuse_writes
from dittofl.target import Classes, Target
from dittofl.task import Task
from dittofl.trial import extremes, try_gradient, try_loss, try_penalty, try_transform

FIRST = 4  # samples that module and functions are tried on


def bind(task: Task, federation: Federation, seed: int = 0) -> Objective:
    """F_k on rows, after every check that data and module allow before training."""
    parameters = task.module.parameters() if an_instance(task.module, nn.Module) else ()
    dtype = next((p.dtype for p in parameters if p.is_floating_point()), torch.float32)
    x, y = each(federation.x, lambda part: prepared(part[:FIRST].clone(), dtype)), federation.y[:FIRST]
    module, seen = admit(task.module, x, seed)
    refuse_writes(module, x)
    out = seen.out
    target = task.target or infer(task.loss, out, federation.y)
    _check_labels(federation, target, task.loss, out)
    try_loss(task.loss, out, y)
    rows = dict(trained(module))
    objective = Objective(
        task=task,
        module=module,
        layout=Layout(tuple(rows), tuple(tuple(parameter.shape) for parameter in rows.values())),
        w0=torch.cat([parameter.detach().reshape(-1) for parameter in rows.values()]),
        target=target,
        drops=seen.drops,
        writes=seen.writes,
        mixes=mixes(module, x),
        lonely=fails_alone(module, x),
        inputs=(inputs := sum(part[0].numel() for part in parts(x))),
        activations=max(1, inputs + -(-seen.elements // len(out))),
        width=out[0].numel(),
        accurate=target.right(*aligned(out, y)) is not None,
    )
    rehearse(objective, federation, x, y)
    return objective


def rehearse(objective: Objective, federation: Federation, x: Inputs, y: Tensor) -> None:
    """Refuses what would fail in training: functions of the user's, tokens out of range, batches of one."""
    row = objective.w0.clone().requires_grad_()
    with torch.enable_grad():
        try_gradient(objective.losses(objective.forward(row, x), y).mean())
    if objective.task.penalty is not None:
        try_penalty(objective.task.penalty, objective.layout.named(row))
    if objective.task.transform is not None:
        try_transform(objective.task.transform, x)
    if objective.lonely:
        _check_batches_of_one(federation)
        return
    for place, sample in extremes(federation.x):
        with blamed(f"the module on a sample of device {_owner(federation, place)!r}"), torch.no_grad():
            objective.forward(objective.w0, each(sample, lambda part: prepared(part, objective.w0.dtype)))


def _check_batches_of_one(federation: Federation) -> None:
    for part in PARTS:
        lonely = np.flatnonzero(federation.sizes(part) == 1)
        if len(lonely):
            raise InputError(
                f"device {federation.ids[lonely[0]]!r} has 1 {part} sample, of which the module can take no batch "
                "statistics: give it more samples, or use nn.GroupNorm"
            )


def check_batch(objective: Objective, batch: int | None) -> None:
    """Refuses minibatches of one for a module that cannot take them."""
    require(
        batch != 1 or not objective.lonely,
        "batch=1 leaves the module no batch to take statistics of: enlarge batch, or use nn.GroupNorm",
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
