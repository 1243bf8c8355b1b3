"""What the documents show is run."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

from dittofl import Federated
from dittofl.theory import Orthogonal

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


def test_the_lambda_that_is_expected_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(blocks("docs/lambda.md")[0], names)
    run = names["run"]
    assert isinstance(run, Federated)
    found = float(capsys.readouterr().out.splitlines()[0])
    assert abs(found / (0.8**2 / (60 * 0.1**2)) - 1) < 0.25
    w, v = (run.evaluate().summary(model, "loss").mean for model in ("global", "ditto"))
    assert v < w
    exact = Orthogonal(sigma=0.8, tau=0.1, n=60, d=5, beta=60.0, K=200)
    assert v < 1.2 * exact.least_error
    assert exact.least_error < min(exact.error(0.0), exact.error(float("inf"))) / 1.2


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured; a script that lags behind the library fails here, not on the day it is wanted."""
    monkeypatch.syspath_prepend(str(script.parent))
    runpy.run_path(str(script), run_name="imported")
