"""A cohort's reports on the server: which are sound, and what the aggregator makes of them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from dittofl.aggregate.chain import vouched
from dittofl.errors import InputError, blamed, require, short
from dittofl.inputs import aligned
from dittofl.types import Aggregator, Grouping, Receiving, Report, Server


def sound(report: Report) -> tuple[Report, int]:
    """The reports whose every number is finite, by gathering, and how many are not."""
    fields = [field.reshape(len(report.delta), -1) for field in report if field is not None]
    # A sum can overflow, but cannot be finite where an entry is not: one cheap pass where all is well.
    if bool(torch.stack([field.sum(1).isfinite().all() for field in fields]).all()):
        return report, 0
    good = torch.stack([field.isfinite().all(1) for field in fields]).all(0)
    return report.rows(torch.nonzero(good).flatten()), len(good) - int(good.sum())


def still(m: int, w: Tensor, *, losses: bool, extra: Tensor | None) -> Report:
    """What m devices would send that did not move; `extra` is what one of them sends beside Δ."""
    size = torch.ones(m, dtype=torch.int64, device=w.device)
    beside = None if extra is None else extra.new_zeros(m, *extra.shape)
    return Report(
        w.new_zeros(m, len(w)), size, size.to(w) if losses else None, beside, torch.arange(m, device=w.device)
    )


def aggregated(aggregator: Aggregator, report: Report, state: Any) -> tuple[Tensor, Any]:
    """δ in the dtype of the reports and the next state, refused where δ is not a row."""
    with blamed("the aggregator"):
        answer = aggregator(report, state)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise InputError(
            f"the aggregator must return (δ, state), got {short(answer)}: a function of a report needs no state"
        )
    delta, P = answer[0], report.delta.shape[1]
    if not isinstance(delta, Tensor) or delta.shape != (P,):
        raise InputError(f"the aggregator must give one row, [{P}], got {_shown(delta)}")
    return delta.to(report.delta), answer[1]


def begun(aggregator: Aggregator, server: Server, w0: Tensor) -> Any:
    """What the server remembers for the aggregator before round 0; a state for each group where it keeps groups."""
    if isinstance(server, Grouping):
        return tuple(aggregator.init(w0) for _ in range(server.groups))
    return aggregator.init(w0)


def kept_of(who: str, state: Any) -> dict[str, Tensor]:
    """A state's tensors and numbers by name, as a checkpoint holds them; None needs no place there.

    >>> kept_of("server", (torch.ones(1), None, 2))
    {'server.0': tensor([1.]), 'server.2': tensor(2)}
    """
    leaves = {f"{who}.{i}": leaf for i, leaf in enumerate(pytree.tree_leaves(state)) if leaf is not None}
    for leaf in leaves.values():
        sound = isinstance(leaf, Tensor | int | float)
        require(sound, f"the {who}'s state holds {short(leaf)}, which no checkpoint can: keep tensors, numbers or None")
    # Python's floats have more digits than torch's default has.
    return {name: torch.tensor(its, dtype=torch.float64) if isinstance(its, float) else torch.as_tensor(its)
            for name, its in leaves.items()}  # fmt: skip


def restored(who: str, state: Any, found: Mapping[str, Tensor]) -> Any:
    """A state of the same structure, from what was kept of it."""
    leaves, structure = pytree.tree_flatten(state)
    there = [None if leaf is None else found[f"{who}.{i}"] for i, leaf in enumerate(leaves)]
    back = [its if leaf is None or isinstance(leaf, Tensor) else type(leaf)(its.item())  # type: ignore[union-attr]
            for leaf, its in zip(leaves, there, strict=True)]  # fmt: skip
    return pytree.tree_unflatten(back, structure)


def combined(aggregator: Aggregator, server: Server, report: Report, state: Any) -> tuple[Tensor, Any]:
    """δ and the next state; where the server keeps groups δ is [groups, P], and 0 for one without a report."""
    if isinstance(server, Receiving):
        report = server.receive(report)
    if not isinstance(server, Grouping):
        return aggregated(aggregator, report, state)
    group, delta, states = (
        server.group(report),
        report.delta.new_zeros(server.groups, report.delta.shape[1]),
        list(state),
    )
    for j in group.unique().tolist():
        delta[j], states[j] = aggregated(aggregator, report.rows(torch.nonzero(group == j).flatten()), states[j])
    return delta, tuple(states)


def guaranteed(aggregator: Aggregator, server: Server, report: Report) -> bool:
    """Whether what is proven of the aggregator holds for as many reports, those of each group where there are any."""
    group = server.group(report) if isinstance(server, Grouping) else torch.zeros(len(report.delta))
    return all(vouched(aggregator, m) for m in group.unique(return_counts=True)[1].tolist())


def stepped(server: Server, w: Tensor, delta: Tensor, report: Report, state: Any) -> tuple[Tensor, Any]:
    """w^{t+1} and the server's next state, refused where w^{t+1} is not a row."""
    with blamed("the server's step"):
        answer = server.step(w, delta, report, state)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise InputError(f"the server's step must return (w, state), got {short(answer)}: return both")
    if not isinstance(answer[0], Tensor) or answer[0].shape != w.shape:
        raise InputError(f"the server's step must give one row, [{len(w)}], got {_shown(answer[0])}")
    return aligned(answer[0].to(w)), answer[1]


def _shown(row: object) -> str:
    return f"shape {tuple(row.shape)}" if isinstance(row, Tensor) else f"{type(row).__name__} {short(row)}"
