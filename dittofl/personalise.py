"""A personal model for a device that was never in the federation."""

from typing import Any

import numpy as np
from torch import Tensor, nn

from dittofl.batches import Stream
from dittofl.bind import bind, check_batch
from dittofl.engine import Loop, Setting, Visit
from dittofl.engine.rows import MemoryRows
from dittofl.errors import an_instance, as_seed, is_whole, require, short
from dittofl.federation import Federation
from dittofl.optimiser import check_rates
from dittofl.task import Task
from dittofl.types import Down, Solver


def personalise(
    w: Tensor, data: Any, *, task: Task, solver: Solver, visits: int = 20, batch: int | None = 32, seed: int = 0
) -> nn.Module:
    """min_v F(v) + λ/2 ‖v − w‖² on a newcomer's (x, y), begun at v = w: the solver's steps, `visits` times, w fixed.

    All samples train. It needs only w, so that it runs on the newcomer's side.

    >>> import torch
    >>> from dittofl.solver import Ditto
    >>> task = Task(nn.Linear(1, 1, bias=False), nn.MSELoss())
    >>> ditto = Ditto(lam=1.0, lr=0.1)
    >>> v = personalise(torch.zeros(1), ([[1.0], [1.0]], [[1.0], [1.0]]), task=task, solver=ditto, visits=200)
    >>> round(v.weight.item(), 4)  # argmin (v − 1)² + ½ v²
    0.6667
    """
    require(is_whole(visits, 1), f"visits must be a whole number ≥ 1, got visits={short(visits)}")
    require(batch is None or is_whole(batch, 1), f"batch must be a whole number ≥ 1, or None, got batch={short(batch)}")
    require(isinstance(task, Task), f"task must be a Task, got {short(task)}: make one by Task(module, loss)")
    require(an_instance(solver, Solver), f"solver must be one that keeps a model, such as Ditto, got {short(solver)}")
    seed, federation = as_seed(seed), Federation.from_parts(train={"newcomer": data}, test={})
    objective = bind(task, federation, seed)
    check_batch(objective, batch)
    require(
        isinstance(w, Tensor) and w.shape == objective.w0.shape,
        f"w must be a row of {objective.layout.P} numbers, got {tuple(w.shape) if isinstance(w, Tensor) else w!r}",
    )
    setting = Setting(
        objective=objective,
        federation=federation,
        x=federation.x,
        y=federation.y,
        stream=Stream(federation, seed, batch),
    )
    engine, ids = Loop().bind(setting), np.zeros(1, dtype=np.int64)
    require(bool(w.isfinite().all()), "w holds NaN or Inf: give the row of a run that has not diverged")
    w = w.detach().to(objective.w0)
    rows = {"v": MemoryRows(1, solver.init(w))}
    require(rows["v"].first.numel(), f"{short(solver)} keeps no model for the newcomer: give one such as Ditto")
    for t in range(visits):
        check_rates({type(solver).__name__: solver}, t)
        down = Down(w, None, t, 0, objective.layout)
        engine.visit(Visit(ids, np.array([t]), {"v": solver}, rows, None, down))
    return objective.module_of(engine.models(solver, rows["v"], ids, Down(w, None, visits, 0, objective.layout))[0])
