"""Aggregators in a run: what reaches them, what they remember, and what is recorded of their guarantee."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dittofl
from dittofl import (
    AFL,
    IFCA,
    Attack,
    Bucketing,
    Bulyan,
    CentredClip,
    Clip,
    Clusters,
    Federated,
    GeometricMedian,
    InputError,
    KLoss,
    KNorm,
    Krum,
    Median,
    MultiKrum,
    NearestNeighbourMixing,
    Report,
    Send,
    Stateless,
    Tilt,
    TrimmedMean,
    federate,
)
from dittofl.experiment.construct import Names
from dittofl.experiment.names import sections
from dittofl.federated import Saved
from tests.problems import ENGINES, TASK, everything, federation, method, normal, run, same

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


@engines
def test_an_aggregator_is_told_which_devices_report(engine: Any) -> None:
    seen: list[Tensor] = []

    def watched(report: Report) -> Tensor:
        assert report.place is not None
        seen.append(report.place)
        return report.delta.mean(0)

    attack = Attack(devices=(1,), poisoned=False, update=Send(value=float("nan")))
    result = run(TASK, federation(), method(aggregate=watched), cohort=3, attack=attack, engine=engine)
    drawn = [cohort[cohort != 1].tolist() for cohort, *_ in result.history]
    assert [its.tolist() for its in seen[1:]] == drawn  # the first is the rehearsal
    assert any(len(its) == 2 for its in drawn)


@pytest.mark.parametrize(
    ("rule", "outside"),
    [
        (Krum(f=1), [False, False, True]),
        (MultiKrum(f=1, then=Tilt(t=1)), [False, False, True]),
        (KNorm(f=1, then=Krum(f=1)), [True, True, True]),
        (Clip(then=Krum(ratio=0.2)), [False, False, False]),
        (TrimmedMean(f=2), [False, False, True]),
        (Clip(then=Clip(then=TrimmedMean(f=2))), [False, False, True]),
        (Bulyan(f=1), [True, True, True]),
        (NearestNeighbourMixing(f=2, then=Krum(f=1)), [False, False, True]),
        (Bucketing(size=2, then=TrimmedMean(f=1)), [False, False, True]),
        (Median(), [False, False, False]),
        (lambda report: report.delta.mean(0), [False, False, False]),
    ],
    ids=str,
)
def test_rounds_outside_the_guarantee_are_told(rule: Any, outside: list[bool]) -> None:
    """m ≥ 2f + 3 of five; in the last round one report is dropped."""
    attack = Attack(devices=(1,), poisoned=False, start=2, update=Send(value=float("inf")))
    result = run(TASK, federation(), method(aggregate=rule), rounds=3, attack=attack)
    assert [not drawn.guaranteed for drawn in result.history] == outside
    assert result.w.isfinite().all()


def test_a_group_of_reports_has_a_guarantee_of_its_own() -> None:
    how = method(local=IFCA(lr=0.2, steps=2), server=Clusters(groups=2), aggregate=Krum(f=1), personal={})
    result = run(TASK, federation(), how, rounds=2)
    assert not any(drawn.guaranteed for drawn in result.history)  # none of two groups of five can have five but one


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        (Krum(f=5), 6),
        (MultiKrum(f=7), 8),
        (KNorm(f=5), 6),
        (KLoss(f=9), 10),
        (TrimmedMean(f=3), 7),
        (Bulyan(f=2), 9),
        (NearestNeighbourMixing(f=3), 7),
        (Bucketing(size=5, then=Krum(f=1)), 6),
        (Clip(then=KNorm(f=2, then=TrimmedMean(f=2))), 7),
    ],
    ids=str,
)
def test_a_cohort_that_is_too_small_from_the_start_is_refused(rule: Any, least: int) -> None:
    name = type(rule).__name__
    with pytest.raises(InputError, match=rf"{name}\(.* needs at least {least} reports, the cohort is 5: lower f"):
        run(TASK, federation(), method(aggregate=rule), rounds=1)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("f", [0, 1, 2, 50])
def test_what_is_left_of_a_cohort_is_always_aggregated(m: int, f: int) -> None:
    """Senders of NaN can leave fewer reports than f at any time."""
    given = Report(normal(m, 4, seed=m), torch.ones(m), torch.ones(m))
    kinds: list[Any] = [Krum, MultiKrum, KNorm, KLoss, TrimmedMean, NearestNeighbourMixing, Bulyan]
    rules: list[Any] = [kind(f=f) for kind in kinds]
    for rule in [*rules, *(Clip(then=its) for its in rules), GeometricMedian(), CentredClip(), Bucketing(size=2)]:
        for report in (
            given,
            given._replace(delta=given.delta[:1].repeat(m, 1)),
            given._replace(delta=0 * given.delta),
        ):
            delta, _ = rule(report, rule.init(given.delta[0]))
            low, high = report.delta.amin(0) - 1e-12, report.delta.amax(0) + 1e-12
            assert bool(((delta >= low.clamp(max=0)) & (delta <= high.clamp(min=0))).all()), rule


def test_buckets_are_drawn_anew_by_round_seed_and_place() -> None:
    given = Report(torch.eye(12, dtype=torch.float64), torch.ones(12), place=torch.arange(12))

    def buckets(rule: Bucketing, report: Report, rounds: int) -> list[list[list[int]]]:
        seen: list[Report] = []

        def watched(report: Report) -> Tensor:
            seen.append(report)
            return report.delta[0]

        watching, state = replace(rule, then=Stateless(watched)), rule.init(report.delta[0])
        for _ in range(rounds):
            state = watching(report, state)[1]
        return [sorted(torch.nonzero(row).flatten().tolist() for row in its.delta) for its in seen]

    drawn = buckets(Bucketing(size=4), given, 3)
    assert all(len(its) == 3 and sorted(k for part in its for k in part) == list(range(12)) for its in drawn)
    assert len({str(its) for its in drawn}) == 3
    assert buckets(Bucketing(size=4, seed=1), given, 3) != drawn


def test_ties_go_to_the_earliest_row() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])  # all scores, norms and losses alike
    given = Report(rows, torch.ones(4), torch.ones(4))
    for shift in (0.0, 0.1, 50.0):
        moved = given._replace(delta=rows.double() + shift)  # 0.1 is rounded
        assert torch.equal(Krum(f=1)(moved, ())[0], moved.delta[0])
    assert torch.equal(KLoss(f=2)(given, ())[0], rows[2])
    assert torch.equal(KNorm(f=1)(given, ())[0], rows[:3].mean(0))
    assert torch.equal(MultiKrum(f=2)(given, ())[0], rows[:2].mean(0))


REMEMBERING = [
    AFL(lr=0.3),
    Bucketing(size=2, then=CentredClip()),
    CentredClip(),
    CentredClip(by=AFL(lr=0.3)),
    Clip(then=MultiKrum(f=1, then=AFL(lr=0.3))),
]


@pytest.mark.parametrize("rule", REMEMBERING, ids=str)
def test_a_run_goes_on_with_what_its_aggregator_remembers(rule: Any) -> None:
    how = method(aggregate=rule)
    whole = run(TASK, federation(), how, rounds=6, cohort=4)
    half = run(TASK, federation(), how, rounds=3, cohort=4)
    again = saved(half)
    *_, resumed = federate(TASK, federation(), how, rounds=6, cohort=4, engine=ENGINES["loop"], resume=again)
    assert same(everything(whole), everything(resumed))
    for ours, theirs in zip(whole.state().values(), resumed.state().values(), strict=True):
        assert torch.equal(ours, theirs)


def saved(result: Federated) -> Saved:
    everyone = np.arange(result.federation.K)
    rows = {name: [(everyone, store.get(everyone).clone())] for name, store in result.rows.items()}
    return Saved(result.t, {name: its.clone() for name, its in result.state().items()}, rows)


@pytest.mark.parametrize(
    "defence",
    [Clip(norm=1e9), MultiKrum(f=0), KNorm(f=0), Clip(norm=1e9, then=KNorm(f=0, then=MultiKrum(f=0)))],
    ids=str,
)
def test_what_an_objective_remembers_passes_through_defences(defence: Any) -> None:
    def inside(rule: Any) -> Any:
        deeper = inside(rule.then) if hasattr(rule.then, "then") else AFL(lr=0.3)
        return type(rule)(**{**vars(rule), "then": deeper})

    plain, chained = (
        run(TASK, federation(), method(aggregate=rule), cohort=4) for rule in (AFL(lr=0.3), inside(defence))
    )
    assert torch.allclose(plain.w, chained.w, atol=1e-12, rtol=0)
    assert torch.allclose(plain.aggregator_state, chained.aggregator_state, atol=1e-12, rtol=0)


def test_a_rule_of_ones_own_gets_what_a_defence_leaves() -> None:
    seen: list[Report] = []

    def watched(report: Report) -> Tensor:
        seen.append(report)
        return report.delta.sum(0)

    given = Report(torch.tensor([[1.0], [3.0], [100.0]]), torch.tensor([4, 5, 6]), torch.tensor([0.1, 0.2, 0.3]))
    delta, _ = KNorm(f=1, then=Clip(norm=2.0, then=Stateless(watched)))(given, ())
    assert delta.item() == 3
    assert seen[0].delta.tolist() == [[1.0], [2.0]]
    assert seen[0].size.tolist() == [4, 5]
    assert seen[0].loss is not None
    assert seen[0].place is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Krum(), "either f= or ratio="),
        (lambda: Krum(f=1, ratio=0.1), "either f= or ratio="),
        (lambda: KNorm(f=-1), "f ≥ 0"),
        (lambda: KLoss(f=1.5), "f ≥ 0"),  # type: ignore[arg-type]
        (lambda: TrimmedMean(ratio=1.0), "ratio < 1"),
        (lambda: MultiKrum(f=1, keep=0), "keep ≥ 1"),
        (lambda: Clip(norm=-1.0), "norm"),
        (lambda: Clip(then=lambda report: report.delta[0]), r"then= .*Stateless"),  # type: ignore[arg-type, return-value]
        (lambda: Median(by=Krum(f=1)), "fair objective"),  # type: ignore[arg-type]
        (lambda: Tilt(t=float("inf")), "finite t"),
        (lambda: AFL(lr=-1.0), "lr"),
        (lambda: dittofl.QFFL(q=-1.0, lr=0.1), "q"),
        (lambda: dittofl.MGDA(eps=1.5), "eps ≤ 1"),
        (lambda: GeometricMedian(nu=0.0), "nu > 0"),
        (lambda: CentredClip(steps=0), "steps ≥ 1"),
    ],
)
def test_mistakes_are_told_when_a_rule_is_made(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as told:
        make()
    assert "\n" not in str(told.value)


def test_a_spec_nests_defences_and_objectives() -> None:
    table = {
        "kind": "Clip",
        "then": {"kind": "MultiKrum", "f": 2, "then": {"kind": "Median", "by": {"kind": "Tilt", "t": 1.0}}},
    }
    names = Names(Path())
    rule = names.built(names.filled(table, "method.aggregate"), "method.aggregate")
    assert rule == Clip(then=MultiKrum(f=2, then=Median(by=Tilt(t=1.0))))


def test_objectives_and_defences_are_listed_apart() -> None:
    listed = sections()
    assert {"Mean", "Tilt", "QFFL", "AFL", "MGDA"} == set(listed["objectives"])
    assert {"Krum", "Median", "Clip"} < set(listed["defences"])
    assert not set(listed["objectives"]) & set(listed["defences"])
