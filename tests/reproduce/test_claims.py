"""Claims on made-up cells: each predicate can hold and can fail."""

from typing import Any

import pytest

from dittofl.reproduce.claims import CLAIMS, Claim
from dittofl.reproduce.column import Column
from dittofl.reproduce.compared import compared
from dittofl.reproduce.grid import BEST, RULE, Grid, bench, of_cells
from dittofl.reproduce.predicates import BASELINES, PERSONAL
from dittofl.reproduce.tidy import Row

CLEAN, A1, A3 = Column(), Column("A1", 0.5), Column("A3", 0.5)
LAMBDAS = ("Ditto, lambda=0.1", "Ditto, lambda=1", "Ditto, lambda=2")


def grid(dataset: str, above: float = 0.1, spread: float = 0.05, **other: float) -> Grid:
    """Baselines at .5 with std .1; Ditto by so much above them with its own spread."""
    at = {}
    for where in bench(dataset).columns:
        for method in (*BASELINES, *PERSONAL, "fair", "MOCHA"):
            at[dataset, method, where] = (0.5, 0.1)
        for method in (RULE, BEST, *LAMBDAS, "Ditto + clipping"):
            at[dataset, method, where] = (0.5 + above, spread)
        for i, method in enumerate(("fair", "TERM, t=2", "TERM, t=5")):
            at[dataset, method, where] = (0.4 - 0.1 * i, 0.1)
    for name, value in other.items():
        for where in bench(dataset).columns:
            at[dataset, name.replace("_", " "), where] = (value, spread)
    return Grid(at)


def named(name: str) -> Claim:
    return next(claim for claim in CLAIMS if claim.name.startswith(name))


@pytest.mark.parametrize(
    ("name", "dataset", "good", "bad"),
    [
        ("most accurate", "Vehicle", {"above": 0.1}, {"above": -0.1}),
        ("most of all", "Vehicle", {"above": 0.1}, {"above": -0.1}),
        ("about 6 points", "Vehicle", {"above": 0.1}, {"above": -0.1}),
        ("fairer than global", "Vehicle", {"spread": 0.05}, {"spread": 0.2, "above": -0.3}),
        ("variance", "Vehicle", {"spread": 0.05}, {"spread": 0.2}),
        ("fair methods", "Vehicle", {}, {"global": 0.3}),
        ("robust methods", "Vehicle", {"above": 0.1}, {"spread": 0.2}),
        ("competitive", "FEMNIST", {"above": 0.0}, {"above": -0.02}),
        ("a robust w", "FEMNIST", {}, {"Ditto_+_clipping": 0.4}),
        ("each device", "Vehicle", {}, {RULE: 0.5}),
        ("MOCHA", "Vehicle", {"MOCHA": 0.7}, {"MOCHA": 0.3}),
    ],
)
def test_a_claim_can_hold_and_can_fail(name: str, dataset: str, good: dict[str, float], bad: dict[str, float]) -> None:
    claim = named(name)
    assert claim.on(grid(dataset, **good), dataset).holds is True
    assert claim.on(grid(dataset, **bad), dataset).holds is False


@pytest.mark.parametrize(("small", "holds"), [("Ditto, lambda=0.1", True), ("Ditto, lambda=2", False)])
def test_the_best_lambda_under_attack(small: str, holds: bool) -> None:
    cells = dict(grid("Vehicle").values)
    cells["Vehicle", "Ditto, lambda=2", CLEAN] = (0.9, 0.1)
    cells["Vehicle", small, A3] = (0.9, 0.1)
    assert named("strong attacks").on(Grid(cells), "Vehicle").holds is holds


def test_a_claim_without_its_cells_is_not_decidable() -> None:
    cells = {key: value for key, value in grid("Vehicle").values.items() if key[1] != "Krum"}
    verdict = named("most accurate").on(Grid(cells), "Vehicle")
    assert verdict.holds is None
    assert "Krum" in verdict.told


def test_a_robust_w_without_an_attack_decides_nothing() -> None:
    cells = {key: value for key, value in grid("Vehicle").values.items() if key[2] == CLEAN}
    assert named("a robust w").on(Grid(cells), "Vehicle").holds is None


def test_a_cell_of_more_seeds_stands_before_a_figures() -> None:
    """Figure 4 shows Table 7's cells; made of one seed later, it decides nothing that three seeds did."""
    known: dict[str, Any] = {"dataset": "Vehicle", "method": "global", "attack": "A1", "ratio": 0.5}
    table = [Row(table="table7", seed=i, weighted_mean=0.6 + 0.1 * i, std=0.1, **known) for i in range(3)]
    figure = Row(table="figure4", seed=0, weighted_mean=0.6, std=0.1, **known)
    assert of_cells(compared([*table, figure])).mean("Vehicle", "global", A1) == pytest.approx(0.7)


def test_a_model_that_diverged_is_not_said_to_be_missing() -> None:
    verdict = named("most accurate").on(grid("Vehicle", Krum=float("nan")), "Vehicle")
    assert (verdict.holds, verdict.told) == (None, "not decidable here: Krum at A1 20% diverged")


@pytest.mark.parametrize("spread", [float("nan"), 0.0])
def test_a_claim_on_spread_needs_one(spread: float) -> None:
    cells = {key: (value, spread) for key, (value, _) in grid("Vehicle").values.items()}
    assert named("variance").on(Grid(cells), "Vehicle").holds is None


def test_equal_accuracies_are_equal_after_six_digits() -> None:
    """Of 46 test rows 40, 41 and 40, or 41, 40 and 40: the same mean, in six digits or in another order."""
    known: dict[str, Any] = {"table": "table7", "dataset": "Vehicle", "attack": "A1", "ratio": 0.5, "std": 0.1}
    rows = [Row(method="a", seed=i, weighted_mean=float(f"{n / 46:.6g}"), **known) for i, n in enumerate((40, 41, 40))]
    rows += [Row(method="b", seed=i, weighted_mean=n / 46, **known) for i, n in enumerate((41, 40, 40))]
    grid = of_cells(compared(rows))
    assert grid.mean("Vehicle", "a", A1) == grid.mean("Vehicle", "b", A1)
