"""Pooled samples dealt out to devices: everyone's exactly once, by the seed, and as each rule says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dittofl import Federation, InputError, Split
from dittofl.cli import answer
from dittofl.datasets import digits, partition, partitioned
from dittofl.datasets.partition import ByClass, ByColumn, Dirichlet, Partitioner, PowerLaw
from dittofl.experiment.names import sections
from dittofl.experiment.setup import build
from dittofl.experiment.spec import load
from tests.problems import integers, normal

X, Y = normal(600, 3, seed=0), integers(6, 600, seed=1)
RULES: dict[str, Partitioner] = {
    "Dirichlet": Dirichlet(alpha=0.5, devices=12),
    "ByClass": ByClass(classes=2, devices=12),
    "PowerLaw": PowerLaw(exponent=1.2, devices=12),
    "ByColumn": ByColumn(column=1),
}
SITED = torch.stack([X[:, 0], integers(12, 600, seed=2).double(), X[:, 2]], 1)  # which makes 12 devices for ByColumn
rules = pytest.mark.parametrize("name", RULES)


def sizes(rule: Partitioner, y: Tensor = Y, seed: int = 0) -> np.ndarray[Any, Any]:
    """Samples of each class on each device, [K, C]."""
    dealt = rule(X, y, seed)
    return np.array([np.bincount(y[torch.as_tensor(its)], minlength=int(y.max()) + 1) for its in dealt.values()])


def test_every_rule_is_tried_and_can_be_named_in_a_spec() -> None:
    assert set(RULES) == set(partition.__all__) == set(sections()["partitioners"])


@rules
def test_every_sample_goes_to_one_device_by_the_seed(name: str) -> None:
    rule = RULES[name]
    one, again, other = (rule(SITED, Y, seed) for seed in (0, 0, 1))
    assert len(one) == 12
    assert sorted(np.concatenate(list(one.values())).tolist()) == list(range(600))
    assert all(np.array_equal(one[id], again[id]) for id in one)
    assert (name == "ByColumn") == all(np.array_equal(one[id], other[id]) for id in one)


@rules
def test_a_federation_of_it_holds_the_pooled_samples(name: str) -> None:
    halves = Split(train=0.5, validation=0, test=0.5)
    data = partitioned(of=(SITED, Y), by=RULES[name], split=halves, seed=3)
    kept = SITED if name != "ByColumn" else SITED[:, [0, 2]]

    def rows(x: Any, y: Tensor) -> list[list[float]]:
        return sorted(torch.cat([x, y[:, None]], 1).tolist())

    assert rows(data.x, data.y) == rows(kept, Y)
    dealt = RULES[name](SITED, Y, 3)
    for id, samples in dealt.items():
        x, y = (torch.cat(both) for both in zip(data.part(id, "train"), data.part(id, "test"), strict=True))
        assert rows(x, y) == rows(kept[samples], Y[samples])
        assert data.part(id, "test")[1].numel() == (len(samples) + 1) // 2


@given(st.integers(1, 6), st.integers(6, 40), st.integers(0, 99))
def test_by_class_deals_to_devices_of_so_many_classes(classes: int, devices: int, seed: int) -> None:
    held = sizes(ByClass(classes=classes, devices=devices), seed=seed)
    assert ((held > 0).sum(1) == classes).all()
    holders = (held > 0).sum(0)
    assert holders.max() - holders.min() <= 1
    for one in held.T:  # in equal parts
        assert one[one > 0].max() - one[one > 0].min() <= 1


def test_dirichlet_at_its_ends() -> None:
    alike = sizes(Dirichlet(alpha=1e6, devices=10))
    assert abs(alike / alike.sum(0) - 0.1).max() < 0.02
    apart = sizes(Dirichlet(alpha=1e-6, devices=3), y=integers(30, 600, seed=4))
    assert ((apart / apart.sum(0)).max(0) == 1).all()  # a class lies on one device


def test_the_variance_of_dirichlet_s_shares() -> None:
    """Var p_ck = (1/K)(1 − 1/K) / (Kα + 1), averaged over 200 seeds, six classes and five devices."""
    K, alpha = 5, 0.7
    shares = np.stack(
        [(held := sizes(Dirichlet(alpha=alpha, devices=K), seed=seed)) / held.sum(0) for seed in range(200)]
    )
    expected = (1 / K) * (1 - 1 / K) / (K * alpha + 1)
    found = ((shares - 1 / K) ** 2).mean(axis=(1, 2))
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found)) + 1e-3  # counts are whole numbers


@given(st.floats(0, 3), st.integers(1, 50))
def test_power_law(exponent: float, devices: int) -> None:
    n = np.array([len(its) for its in PowerLaw(exponent=exponent, devices=devices)(X, Y, 0).values()])
    shares = np.arange(1, devices + 1) ** -exponent
    assert n.sum() == 600
    assert (abs(n - 2 - shares / shares.sum() * (600 - 2 * devices)) < 1).all()


def test_by_column_of_a_dict_and_of_other_values() -> None:
    site, x = integers(3, 40, seed=0), normal(40, 2, seed=1)
    data = partitioned(of=({"x": x, "site": site}, integers(2, 40, seed=2)), by=ByColumn(column="site"))
    assert data.ids == ("0", "1", "2")
    assert list(data.x) == ["x"]
    values = torch.tensor([0.5, -1.0, 0.5, -1.0])
    assert list(ByColumn(column=0)(values[:, None], Y[:4], 0)) == ["-1", "0.5"]


def test_a_federation_is_pooled_and_a_data_set_of_torch_too() -> None:
    whole = digits(devices=10)
    data = partitioned(of=whole, by=PowerLaw(exponent=0, devices=7))
    assert sorted(data.y.tolist()) == sorted(whole.y.tolist())
    dataset = torch.utils.data.TensorDataset(X, Y)
    by = ByClass(classes=2, devices=6)
    assert partitioned(of=dataset, by=by).fingerprint == partitioned(of=(X, Y), by=by).fingerprint


def test_a_rule_of_one_s_own() -> None:
    data = partitioned(
        of=(X, Y), by=lambda x, y, seed: {"low": np.flatnonzero(x[:, 0] < 0), "high": [seed, 1, 2]}, seed=7
    )
    assert data.ids == ("low", "high")
    assert sorted(
        torch.cat([data.part("high", p)[0] for p in ("train", "validation", "test")])[:, 0].tolist()
    ) == sorted(X[[7, 1, 2], 0].tolist())


FLOATS = (X, normal(600, seed=5))
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "unlucky": ((X, Y), Dirichlet(alpha=1e-3, devices=40), "in each of 100 draws .* raise alpha, or lower devices"),
    "too many devices": ((X, Y), Dirichlet(alpha=1.0, devices=301), "needs 602 samples, got 600"),
    "too many for a law": ((X, Y), PowerLaw(exponent=1.0, devices=301), "needs 602 samples, got 600"),
    "no classes": (FLOATS, Dirichlet(alpha=1.0, devices=3), "needs classes, one whole number a sample"),
    "no classes either": (FLOATS, ByClass(classes=1, devices=3), "needs classes, one whole number a sample"),
    "more classes than there are": ((X, Y), ByClass(classes=7, devices=12), "got C = 6 classes"),
    "classes without a device": ((X, Y), ByClass(classes=1, devices=5), "got C = 6 classes"),
    "a sample alone": ((X[:7], torch.arange(7)), ByClass(classes=1, devices=7), "'device 0' 1 of the 2 samples"),
    "a column beyond": ((X, Y), ByColumn(column=3), "has no such column, got x of shape"),
    "a column by name": ((X, Y), ByColumn(column="site"), "has no such column"),
    "a member that is not there": (({"a": X, "b": X}, Y), ByColumn(column="site"), r"got x \['a', 'b'\]"),
    "a member of many columns": (({"a": X, "b": X}, Y), ByColumn(column="a"), "expected one number a sample"),
    "a value alone": ((X, Y), ByColumn(column=0), "of the 2 samples that a device needs"),
    "no rule": ((X, Y), "Dirichlet", "by must be a rule"),
    "a class": ((X, Y), Dirichlet, "by must be a rule"),
    "a failing rule": ((X, Y), lambda x, y, seed: {"a": 1 / 0}, "the rule fails on x, y and the seed"),
    "a rule of another kind": ((X, Y), lambda x, y: {}, "the rule fails"),
    "samples beyond": ((X, Y), lambda x, y, seed: {"a": [0, 600]}, r"expected numbers of samples, 0 … 599"),
    "samples before": ((X, Y), lambda x, y, seed: {"a": [0, -1]}, r"expected numbers of samples"),
    "half samples": ((X, Y), lambda x, y, seed: {"a": [0.5, 1.0]}, r"expected numbers of samples"),
    "no data": (None, PowerLaw(exponent=1, devices=2), "the pooled data is of type NoneType"),
    "unequal lengths": ((X, Y[:5]), PowerLaw(exponent=1, devices=2), "the pooled data"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_told_in_one_sentence(case: str) -> None:
    of, by, sentence = REFUSED[case]
    with pytest.raises(InputError, match=sentence):
        partitioned(of=of, by=by)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (Dirichlet, {"alpha": 0, "devices": 3}), (Dirichlet, {"alpha": 1, "devices": 0}),
        (Dirichlet, {"alpha": 1, "devices": 3, "least": 1}), (ByClass, {"classes": 0, "devices": 3}),
        (ByClass, {"classes": 1, "devices": 0}), (PowerLaw, {"exponent": -1, "devices": 3}),
        (PowerLaw, {"exponent": 1, "devices": 0}),
    ],
)  # fmt: skip
def test_parameters_out_of_range(rule: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{rule.__name__} needs"):
        rule(**wrong)


def test_a_federation_without_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """Train, validation and test parts are pooled alike."""
    parts = {"a": (X[:300], Y[:300])}, {"a": (X[300:], Y[300:])}
    whole = Federation.from_parts(train=parts[0], test=parts[1])
    by = Dirichlet(alpha=0.5, devices=5)
    assert partitioned(of=whole, by=by).fingerprint == partitioned(of=(X, Y), by=by).fingerprint


def test_a_spec_names_data_and_rule(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text("""
        rounds = 2
        cohort = 3
        model = { kind = "mlp", inputs = 64, outputs = 10 }
        method = { batch = 8, local = { kind = "SGD", lr = 0.1 } }
        [data]
        kind = "partitioned"
        of = { kind = "digits", devices = 10 }
        by = { kind = "Dirichlet", alpha = 0.3, devices = 20 }
    """)
    out = ["--out", str(tmp_path / "runs"), "--quiet"]
    assert answer(["run", str(spec), *out]) == 0
    assert answer(["run", str(spec), *out, "--seeds", "1", "--set", "data.by.kind=Dirichlett"]) == 2


def test_a_spec_names_samples_and_a_rule_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def samples():\n    return torch.arange(40.0)[:, None], torch.arange(40) % 2\n"
        "def halves(x, y, seed):\n    return {'low': range(20), 'high': range(20, 40)}\n"
    )
    (tmp_path / "spec.toml").write_text("""
        rounds = 1
        model = { kind = "linear", inputs = 1, outputs = 2 }
        method = { local = { kind = "SGD", lr = 0.1 } }
        data = { kind = "partitioned", of = "mine:samples", by = "mine:halves" }
    """)
    data = build(load(str(tmp_path / "spec.toml"))).federation
    assert {id: float(data.x[a:b].sum()) for id, (a, *_, b) in zip(data.ids, data.bounds, strict=True)} == {
        "low": sum(range(20)),
        "high": sum(range(20, 40)),
    }
