"""Claims that fail here while the paper's own numbers meet them are explained, and nothing else is."""

from pathlib import Path

import pytest

from dittofl import InputError
from dittofl.reproduce import unmet
from dittofl.reproduce.compared import Compared, compared
from dittofl.reproduce.decided import verdicts
from dittofl.reproduce.tidy import Row

CLAIM = "strong attacks want a small λ"
ENTRY = unmet.Unmet(claims=(CLAIM,), dataset="Vehicle", who="the data", why="few test rows")


def cells(*best: float) -> list[Compared]:
    """λ of Vehicle's Table 7 on clean data and at A3 50 %, with that λ the best one."""
    wheres = (("clean", 0.0), ("A3", 0.5))
    rows = [
        Row(
            table="table7", dataset="Vehicle", method=f"Ditto, lambda={lam:g}", attack=attack, ratio=ratio, seed=0,
            weighted_mean=0.9 if lam == its else 0.5, mean=0.9, std=0.1,
        )
        for (attack, ratio), its in zip(wheres, best, strict=True) for lam in (0.1, 1.0, 2.0)
    ]  # fmt: skip
    return compared(rows)


def test_a_claim_that_holds_needs_no_explanation_and_may_have_none() -> None:
    holding = cells(2.0, 0.1)
    assert unmet.check(holding, ()) == []
    assert unmet.check(holding, (ENTRY,)) == [f"{CLAIM!r} on Vehicle explains no claim that fails"]


def test_one_that_fails_must_be_explained() -> None:
    failing = cells(0.1, 2.0)
    assert unmet.check(failing, ()) == [f"the claim {CLAIM!r} does not hold on Vehicle and is not explained"]
    assert unmet.check(failing, (ENTRY,)) == []
    assert list(unmet.told(failing, (ENTRY,))) == [f"- **The data**: few test rows (Vehicle: {CLAIM})"]


def test_one_that_the_papers_numbers_deny_needs_none() -> None:
    """On StackOverflow λ = .05 is best in both columns of the paper's own table."""
    rows = [
        Row(
            table="table12", dataset="StackOverflow", method=f"Ditto, lambda={lam:g}", attack=attack, ratio=ratio,
            seed=0, weighted_mean=lam, mean=lam, std=0.1,
        )
        for attack, ratio in (("clean", 0.0), ("A3", 0.5)) for lam in (0.05, 0.1, 0.3)
    ]  # fmt: skip
    denied = compared(rows)
    mine = {name: its.holds for claim, name, its, _ in verdicts(denied) if claim.name == CLAIM}
    assert mine["StackOverflow"] is False
    assert unmet.check(denied, ()) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[unmet]", "is no file of explanations"),
        ("unmet = 3", r"expected entries \[\[unmet\]\]"),
        ('[[unmet]]\nclaims = ["x"]', r"claims, dataset, who, why"),
        (
            '[[unmet]]\nclaims = ["x"]\ndataset = "Vehicle"\nwho = "nobody"\nwhy = "so"',
            "who must be one of ours.*'nobody'",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "explanations.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        unmet.read(path)
