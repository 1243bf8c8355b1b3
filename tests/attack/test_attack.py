"""Who attacks when, with what, and what an attack can never do."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dittofl import (
    A1,
    A2,
    A3,
    ALIE,
    IPM,
    Add,
    Along,
    Attack,
    Backdoor,
    EdgeCase,
    FangKrum,
    FangTrimmedMean,
    Features,
    Federated,
    Federation,
    Forge,
    Gaussian,
    InputError,
    MinMax,
    MinSum,
    Mirror,
    ModelReplacement,
    Patch,
    Relabel,
    Replace,
    Report,
    Send,
    SignFlip,
    Task,
    federate,
)
from dittofl.attack.updates import Draw
from tests.problems import ENGINES, TASK, everything, federation, method, mlp, normal, run, same

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())

COLLUDING = [
    kind(omniscient=sees, **more)
    for sees in (True, False)
    for kind, more in (
        (ALIE, {}),
        (IPM, {}),
        (FangKrum, {}),
        (FangTrimmedMean, {}),
        (ModelReplacement, {}),
        *((kind, {"along": along}) for kind in (MinMax, MinSum) for along in Along),
    )
]
ALONE = [SignFlip(), Gaussian(), Replace(factor=3.0), Send(value=math.nan), Forge(loss=2.0, size=3)]
colluding = pytest.mark.parametrize("attack", COLLUDING, ids=str)
every = pytest.mark.parametrize("attack", [*COLLUDING, *ALONE], ids=str)


def draw(row: int) -> torch.Generator:
    return torch.Generator().manual_seed(row)


def cohort(m: int, malicious: int, P: int = 9) -> tuple[Report, Tensor]:
    return Report(normal(m, P, seed=m), torch.arange(1, m + 1), torch.ones(m)), torch.arange(m) < malicious


# Cohorts of all kinds


@every
@pytest.mark.parametrize("m", [1, 2, 6])
def test_nobody_malicious_nothing_changed(attack: Any, m: int) -> None:
    report, who = cohort(m, 0)
    for ours, honest in zip(attack(report, who, draw), report, strict=True):
        assert ours is honest or torch.equal(ours, honest)


@colluding
@pytest.mark.parametrize(("m", "malicious"), [(1, 1), (2, 1), (2, 2), (3, 1), (5, 1), (5, 4), (6, 6), (10, 2), (9, 1)])
def test_no_cohort_switches_an_attack_off(attack: Any, m: int, malicious: int) -> None:
    """One attacker, attackers only, and the sizes for which ALIE's quantile is 0 or below."""
    report, who = cohort(m, malicious)
    new = attack(report, who, draw).delta
    assert bool(new.isfinite().all())
    assert torch.equal(new[~who], report.delta[~who])
    if isinstance(attack, ModelReplacement) and malicious == m:
        assert torch.equal(new, report.delta.mean(0).expand(m, -1))  # X stands already
    else:
        assert bool((new[who] - report.delta[who]).norm(dim=1).min() > 1e-3)
        assert bool((new[who] - report.delta.mean(0)).norm(dim=1).min() > 1e-3)


@colluding
def test_attackers_who_do_not_see_benign_rows_do_not_depend_on_them(attack: Any) -> None:
    report, who = cohort(7, 3)
    other = report._replace(delta=torch.where(who[:, None], report.delta, normal(7, 9, seed=99)))
    one, two = (attack(given, who, draw).delta[who] for given in (report, other))
    assert torch.equal(one, two) != attack.omniscient


@colluding
def test_benign_rows_that_are_not_finite_do_not_stop_attackers(attack: Any) -> None:
    report, who = cohort(7, 3)
    report.delta[5, 2], report.delta[6, 0] = math.nan, math.inf
    new = attack(report, who, draw).delta
    assert bool(new[who].isfinite().all())
    assert new[~who].numpy().tobytes() == report.delta[~who].numpy().tobytes()


@colluding
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_rows_of_any_size_end_the_search(attack: Any, scale: float) -> None:
    report, who = cohort(7, 3)
    report = report._replace(delta=(scale * report.delta).float())
    assert torch.equal(attack(report, who, draw).delta[~who], report.delta[~who])


@every
def test_the_order_of_the_cohort_does_not_matter(attack: Any) -> None:
    report, who = cohort(7, 3)
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    new = attack(report, who, draw)
    permuted = attack(report.rows(order), who[order], lambda row: draw(int(order[row])))
    for ours, theirs in zip(new.rows(order), permuted, strict=True):
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)


# Runs


class Recorded:
    """Reports as the aggregator gets them."""

    def __init__(self) -> None:
        self.got: list[Report] = []

    def __call__(self, report: Report) -> Tensor:
        self.got.append(report)
        return report.delta.mean(0)


def recorded(
    attack: Attack | None, *, rounds: int = 4, cohort: int = 5, **options: Any
) -> tuple[list[Report], Federated]:
    rule = Recorded()
    result = run(TASK, federation(), method(aggregate=rule), rounds=rounds, cohort=cohort, attack=attack, **options)
    return rule.got[-rounds:], result  # before them, a trial call


def struck(attack: Attack, rounds: int) -> list[int]:
    """The rounds in which a report is not that of honest devices with the same data."""

    def told(report: Report, who: Tensor, draw: Draw) -> Report:
        seen.append(who)
        return report._replace(size=report.size + who * 10**6)

    seen: list[Tensor] = []
    reports, _ = recorded(Attack(count=2, update=told, start=attack.start, every=attack.every), rounds=rounds)
    assert all(int(who.sum()) == 2 for who in seen)
    return [t for t, report in enumerate(reports) if bool((report.size > 10**6).any())]


@pytest.mark.parametrize(
    ("start", "every", "rounds"),
    [(0, 1, [0, 1, 2, 3, 4, 5, 6]), (3, 1, [3, 4, 5, 6]), (0, 3, [0, 3, 6]), (2, 2, [2, 4, 6]), (9, 1, [])],
)
def test_a_schedule(start: int, every: int, rounds: list[int]) -> None:
    assert struck(Attack(count=2, start=start, every=every), 7) == rounds


def test_poisoned_labels_are_there_before_what_is_sent_is_attacked() -> None:
    later, labels = (recorded(attack, rounds=1)[0][0] for attack in (A3(count=2), A1(count=2)))
    waiting = recorded(Attack(count=2, update=Replace(), start=1), rounds=1)[0][0]
    assert torch.equal(waiting.delta, labels.delta)
    assert not torch.equal(waiting.delta, later.delta)


def test_several_updates_follow_one_another() -> None:
    both = Attack(count=2, update=(SignFlip(factor=2.0), Replace(factor=5.0), Forge(size=7)))
    one, honest = (recorded(attack, rounds=1)[0][0] for attack in (both, A1(count=2)))
    who = torch.from_numpy(both.malicious(5, 0)[recorded(both, rounds=1)[1].history[0].cohort])
    assert torch.equal(one.delta[who], -10 * honest.delta[who])
    assert torch.equal(one.delta[~who], honest.delta[~who])
    assert one.size[who].tolist() == [7, 7]


def test_each_of_several_draws_for_itself() -> None:
    twice = Attack(count=2, poisoned=False, update=(Gaussian(std=1.0), keep := Kept(), Gaussian(std=1.0)))
    (report,), result = recorded(twice, rounds=1)
    who = torch.from_numpy(result.malicious[result.history[0].cohort])
    first, second = keep.got[-1].delta[who], report.delta[who]
    assert not torch.isclose(first, second, atol=1e-3).any(1).all()
    assert not torch.equal(first, second)


class Kept(Recorded):
    """An attack that looks only."""

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:  # type: ignore[override]
        self.got.append(report)
        return report


@engines
@pytest.mark.parametrize("attack", [*COLLUDING[:6], COLLUDING[-1], *ALONE], ids=str)
def test_a_run_is_repeated_to_the_bit_and_honest_rows_are_honest(attack: Any, engine: Any) -> None:
    chosen = Attack(count=2, update=attack)
    (first, one), (again, other) = (recorded(chosen, rounds=2, engine=engine) for _ in range(2))
    assert same(everything(one), everything(other))
    honest = recorded(A1(count=2), rounds=1, engine=engine)[0][0]
    who = torch.from_numpy(one.malicious[one.history[0].cohort])
    benign = slice(None) if one.history[0].dropped else ~who
    assert torch.equal(first[0].delta[benign], honest.delta[~who])
    assert all(torch.equal(a.delta, b.delta) for a, b in zip(first, again, strict=True))


def test_draws_go_by_seed_round_and_device() -> None:
    attack = Attack(count=5, poisoned=False, update=FangTrimmedMean())
    (one, two), result = recorded(attack, rounds=2)
    who = result.history[0].cohort
    assert not torch.equal(one.delta[0], one.delta[1])
    assert not torch.equal(one.delta, two.delta)
    assert not torch.equal(recorded(attack, rounds=1, seed=1)[0][0].delta[0], one.delta[0])
    report, everyone = Report(one.delta, one.size), torch.ones(5, dtype=torch.bool)
    order = np.array([4, 2, 0, 1, 3])
    tags = result.federation.tags[who]
    straight = attack.rewrite(report, everyone, tags, 0, 0)
    turned = attack.rewrite(report.rows(torch.from_numpy(order)), everyone, tags[order], 0, 0)
    torch.testing.assert_close(straight.delta[torch.from_numpy(order)], turned.delta, rtol=1e-12, atol=1e-12)


@engines
@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_a_replacement_makes_w_the_attackers_model(engine: Any, eta: float) -> None:
    """One attacker, a server's step of η and everything known: w is what the attacker has trained, to rounding."""
    attack = Attack(count=1, poisoned=False, update=ModelReplacement(eta=eta, omniscient=True))
    options: dict[str, Any] = {"rounds": 1, "engine": engine}
    honest = Recorded()
    run(TASK, federation(), method(aggregate=honest), **options)
    result = run(TASK, federation(), method(server=Add(lr=eta)), attack=attack, **options)
    who = torch.from_numpy(result.malicious[result.history[0].cohort])
    torch.testing.assert_close(result.w, result.w0 + honest.got[-1].delta[who][0], rtol=1e-12, atol=1e-12)


@engines
def test_broken_senders_are_dropped_and_counted(engine: Any) -> None:
    for value, dropped in ((math.nan, 2), (math.inf, 2), (-math.inf, 2), (1e30, 0)):
        result = recorded(Attack(count=2, update=Send(value=value)), rounds=1, engine=engine)[1]
        assert result.history[0].dropped == dropped
        assert bool(result.w.isfinite().all())


@pytest.mark.parametrize("make", [A1, A2, A3, Attack])
def test_devices_may_be_named(make: Any) -> None:
    for seed in range(3):
        for devices in ((), (3,), (4, 0, 1)):
            assert np.flatnonzero(make(devices=devices).malicious(5, seed)).tolist() == sorted(devices)
    assert Attack(devices=(0, 1, 2)).is_strong(5) != Attack(devices=(0, 1)).is_strong(5)
    result = run(TASK, federation(), method(), rounds=1, attack=make(devices=(1, 4)))
    assert result.malicious.tolist() == [False, True, False, False, True]


def test_strong_attacks() -> None:
    for update in (Replace(), ModelReplacement(), (Forge(size=3), ModelReplacement()), (Replace(), Gaussian())):
        assert Attack(count=1, update=update).is_strong(10)
        assert not Attack(count=1, update=update, strong=False).is_strong(10)
    for update in (None, SignFlip(factor=100.0), ALIE(), (IPM(), Forge(size=3)), ()):
        assert not Attack(count=5, update=update).is_strong(10)
        assert Attack(count=6, update=update).is_strong(10)
        assert Attack(count=1, update=update, strong=True).is_strong(10)


def test_labels_are_poisoned_by_default_unless_a_backdoor_is_planted() -> None:
    door = Backdoor(trigger=Features(columns=(0,), value=2.0), target=1, share=0.1)
    data = federation()
    for attack, poisoned in (
        (Attack(count=5), True),
        (A2(count=5), True),
        (Attack(count=5, update=ALIE()), True),
        (Attack(count=5, backdoor=door), False),
        (Attack(count=5, backdoor=door, poisoned=True), True),
        (Attack(count=5, poisoned=False), False),
    ):
        y = next(federate(TASK, data, method(), rounds=1, attack=attack)).setting.y
        validation = np.concatenate([np.arange(b, c) for _, b, c, _ in data.bounds])
        assert torch.equal(y[validation], data.y[validation]) != poisoned


def test_a_targeted_relabelling_changes_its_class_alone() -> None:
    data = federation()
    attack = A1(count=5, relabel=Relabel(source=2, target=0))
    y = next(federate(TASK, data, method(), rounds=1, attack=attack)).setting.y
    for a, _, c, d in data.bounds:
        assert torch.equal(y[a:c], torch.where(data.y[a:c] == 2, 0, data.y[a:c]))
        assert torch.equal(y[c:d], data.y[c:d])
    mirrored = next(federate(TASK, data, method(), rounds=1, attack=A1(count=5, relabel=Mirror(C=3)))).setting.y
    assert all(torch.equal(mirrored[a:c], 2 - data.y[a:c]) for a, _, c, _ in data.bounds)
    assert bool((Relabel(target=1)(torch.tensor([0, 2]), np.zeros(2, dtype=np.uint64)) == 1).all())


# Mistakes

IMAGES = torch.zeros(4, 1, 5, 5)
DOOR = Features(columns=(0,), value=2.0)
MISTAKES: dict[str, tuple[Any, str]] = {
    "factor of a flip": (lambda: SignFlip(factor=0), r"SignFlip needs factor > 0.*factor=0"),
    "z of 0": (lambda: ALIE(z=0), r"ALIE needs .*z=0"),
    "z that is no number": (lambda: ALIE(z="max"), r"ALIE needs .*'max'"),
    "epsilon": (lambda: IPM(epsilon=-1), r"IPM needs epsilon > 0"),
    "threshold": (lambda: FangKrum(threshold=0), r"FangKrum needs threshold > 0"),
    "reach": (lambda: FangTrimmedMean(reach=1), r"FangTrimmedMean needs reach > 1"),
    "along": (lambda: MinMax(along="std"), r"MinMax needs along=Along\..*'std'"),
    "along of a sum": (lambda: MinSum(along=None), r"MinSum needs along=Along\..*None"),
    "n": (lambda: ModelReplacement(n=0), r"ModelReplacement needs n ≥ 1"),
    "eta": (lambda: ModelReplacement(eta=0), r"ModelReplacement needs eta > 0"),
    "value sent": (lambda: Send(value="nan"), r"Send needs value=.*'nan'"),
    "value of truth": (lambda: Send(value=True), r"Send needs value=.*True"),
    "nothing forged": (lambda: Forge(), r"Forge needs loss=, size= or extra="),
    "size forged": (lambda: Forge(size="many"), r"Forge needs size=.*'many'"),
    "devices and a ratio": (lambda: A3(ratio=0.1, devices=(1,)), r"one of .*ratio=0\.1 and devices=\(1,\)"),
    "devices twice": (lambda: A1(devices=(1, 1)), r"distinct places.*\(1, 1\)"),
    "devices in a list": (lambda: A2(devices=[1]), r"devices=\(0, …\).*\[1\]"),
    "devices beyond": (lambda: Attack(devices=(1, 5)).malicious(5, 0), r"devices \[5\], the federation has 0 to 4"),
    "start": (lambda: Attack(count=1, start=-1), r"start ≥ 0.*start=-1"),
    "every": (lambda: Attack(count=1, every=0), r"every ≥ 1.*every=0"),
    "one of several updates": (lambda: Attack(count=1, update=(ALIE(), "flip")), r"update=.*'flip'"),
    "a class among updates": (lambda: Attack(count=1, update=(ALIE,)), r"update=.*ALIE"),
    "backdoor of no kind": (lambda: Attack(count=1, backdoor=Patch(value=1.0)), r"backdoor=Backdoor.*Patch"),
    "backdoor class": (lambda: Attack(count=1, backdoor=Backdoor), r"backdoor=Backdoor"),
    "mirror": (lambda: Mirror(C=1), r"Mirror needs C ≥ 2"),
    "relabel to itself": (lambda: Relabel(source=1, target=1), r"source ≠ target"),
    "relabel to nothing": (lambda: Relabel(target=None), r"Relabel needs target"),
    "share 0": (lambda: Backdoor(trigger=DOOR, target=1, share=0), r"Backdoor needs 0 < share ≤ 1"),
    "share above 1": (lambda: Backdoor(trigger=DOOR, target=1, share=1.1), r"Backdoor needs 0 < share ≤ 1"),
    "target": (lambda: Backdoor(trigger=DOOR, target="cat"), r"Backdoor needs target=.*'cat'"),
    "trigger": (lambda: Backdoor(trigger=Patch, target=1), r"Backdoor needs trigger="),
    "edge samples": (lambda: EdgeCase(x=[1.0], held_out=IMAGES, target=1), r"EdgeCase needs x="),
    "no edge samples": (lambda: EdgeCase(x=IMAGES, held_out=IMAGES[:0], target=1), r"EdgeCase needs held_out="),
    "patch value": (lambda: Patch(value=math.nan), r"Patch needs a finite value"),
    "patch size": (lambda: Patch(value=1.0, size=0), r"Patch needs size ≥ 1"),
    "patch beyond": (lambda: Patch(value=1.0, row=3)(IMAGES), r"row=3.*images of 5"),
    "patch beyond the end": (lambda: Patch(value=1.0, column=-2)(IMAGES), r"column=-2.*images of 5"),
    "patch too large": (lambda: Patch(value=1.0, size=6)(IMAGES), r"6 pixels.*images of 5"),
    "patch on a table": (lambda: Patch(value=1.0)(torch.zeros(3, 4)), r"images.*\(3, 4\).*Features"),
    "patch on several": (lambda: Patch(value=1.0)((IMAGES, IMAGES)), r"2 members.*trigger="),
    "patch not of bytes": (lambda: Patch(value=0.5)(IMAGES.byte()), r"0\.5.*uint8.*scale"),
    "features beyond": (lambda: Features(columns=(4,), value=1.0)(torch.zeros(3, 4)), r"columns=\(4,\).*\(3, 4\)"),
    "features in a list": (lambda: Features(columns=[0], value=1.0), r"Features needs columns=\(0, …\)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_one_sentence(mistake: str) -> None:
    make, told = MISTAKES[mistake]
    with pytest.raises(InputError, match=told) as caught:
        make()
    assert "\n" not in str(caught.value)


def begun(backdoor: Any, task: Task = TASK, data: Federation | None = None, count: int = 5) -> Any:
    return federate(task, data or federation(), method(), rounds=1, attack=Attack(count=count, backdoor=backdoor))


LATER: dict[str, tuple[Any, str]] = {
    "target that is no class": (Backdoor(trigger=DOOR, target=3), r"target 3 .*Classes"),
    "target between classes": (Backdoor(trigger=DOOR, target=0.5), r"target 0\.5 .*Classes"),
    "trigger of another shape": (Backdoor(trigger=lambda x: x[:, :2], target=1), r"trigger.*\(\d+, 4\).*\(\d+, 2\)"),
    "trigger of another dtype": (Backdoor(trigger=lambda x: x.float(), target=1), r"trigger.*float64.*float32"),
    "trigger of nothing": (Backdoor(trigger=lambda x: None, target=1), r"trigger.*None"),
    "trigger that fails": (Backdoor(trigger=lambda x: x.nothing, target=1), r"trigger fails"),
    "edge samples of another shape": (
        EdgeCase(x=torch.zeros(2, 3), held_out=torch.zeros(2, 3), target=1),
        r"EdgeCase's (x|held_out).*\(\d+, 4\).*\(\d+, 3\)",
    ),
    "edge samples of another dtype": (
        EdgeCase(x=torch.zeros(2, 4), held_out=torch.zeros(2, 4), target=1),
        r"EdgeCase's (x|held_out).*float64.*float32",
    ),
}


@pytest.mark.parametrize("mistake", LATER)
@pytest.mark.parametrize("count", [0, 5])
def test_mistakes_of_a_backdoor_are_told_before_training(mistake: str, count: int) -> None:
    backdoor, told = LATER[mistake]
    with pytest.raises(InputError, match=told):
        begun(backdoor, count=count)


def test_a_backdoor_needs_classes() -> None:
    reals = Federation.of({k: (normal(10, 4, seed=k), normal(10, seed=k + 9)) for k in range(3)})
    with pytest.raises(InputError, match=r"target 1 .*Real"):
        begun(Backdoor(trigger=DOOR, target=1), Task(mlp(1), nn.MSELoss()), reals, count=1)
    with pytest.raises(InputError, match="backdoor"):
        Task(mlp(), nn.CrossEntropyLoss(), metrics={"backdoor": lambda out, y: 0.0})
