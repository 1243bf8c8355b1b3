"""What the documents show is run."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dittofl import Ditto, Federated, Federation, Loop, Method, Task, Vmap, federate
from dittofl.types import Report

ROOT = Path(__file__).parent.parent


def blocks(name: str) -> list[str]:
    """The Python blocks of a document."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


def test_the_readme_example_runs_and_is_as_short_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    example = blocks("README.md")[0]
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(example, names)
    code = [line for line in example.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(code) <= 20
    assert "ditto" in capsys.readouterr().out
    run = names["run"]
    assert isinstance(run, Federated)
    w, v = (run.evaluate().summary(model).mean for model in ("global", "ditto"))
    assert v > w + 0.1 > 0.45  # there is something to learn, and each device's own is better
    assert isinstance(names["v_3"], nn.Module)
    assert isinstance(names["newcomer"], nn.Module)


def sketches() -> list[type]:
    names: dict[str, object] = {}
    exec("from __future__ import annotations\n" + blocks("docs/design.md")[0], names)
    found = names["SKETCHES"]
    assert isinstance(found, tuple)
    return list(found)


class Control:
    """A server that sends a second row down and moves it by the mean of what came beside Δ (SCAFFOLD's c)."""

    def init(self, w0: Tensor, K: int) -> Tensor:
        return torch.zeros_like(w0)

    def down(self, state: Tensor) -> Tensor:
        return state

    def step(self, w: Tensor, delta: Tensor, report: Report, state: Tensor) -> tuple[Tensor, Tensor]:
        moves = report.extra is not None and report.extra.shape[1:] == w.shape
        return w + delta, state + report.extra.mean(0) if moves and report.extra is not None else state


@pytest.mark.parametrize("sketch", sketches(), ids=lambda one: one.__name__)
def test_every_method_of_the_design_runs_alike_on_both_engines(sketch: type) -> None:
    draws = torch.Generator().manual_seed(1)
    data = {
        f"site {k}": (torch.randn(n, 4, generator=draws, dtype=torch.float64), torch.arange(n) % 3)
        for k, n in enumerate((30, 9, 25, 14))
    }
    module = nn.Linear(4, 3).double()
    with torch.no_grad():
        module.weight.copy_(torch.randn(3, 4, generator=draws))
        module.bias.zero_()
    method = Method(local=sketch(), personal={"beside": sketch(), "ditto": Ditto(lam=1.0, lr=0.1)}, server=Control())
    ends = []
    for engine in (Loop(), Vmap(), Vmap(chunk=3, fuse=False)):
        *_, run = federate(Task(module, nn.CrossEntropyLoss()), Federation.of(data), method, rounds=3, engine=engine)
        ends.append(torch.cat([run.w, *(run.row("beside", device) for device in data)]))
    assert ends[0].isfinite().all()
    assert not torch.equal(run.row("beside", "site 0"), run.w0) or sketch.__name__ in ("PerFedAvg", "IFCA")
    for other in ends[1:]:
        assert (ends[0] - other).abs().max() <= 1e-10
