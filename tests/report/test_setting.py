"""What runs do is told in plain words, of our pieces and of the user's."""

from dittofl.report import Result, conditions
from dittofl.report.conditions import Condition
from dittofl.report.setting import setting, told
from tests.report.made import made

SPEC = {
    "rounds": 1200, "data": {"kind": "digits", "devices": 25, "split": {"train": 0.5, "test": 0.5}}, "cohort": 3,
    "method": {
        "batch": 16, "local": {"kind": "SGD", "lr": 0.1, "steps": 1, "through": []},
        "aggregate": {"kind": "task:trimmed", "cut": 2},
    },
}  # fmt: skip


def of(**changes: object) -> Condition:
    (found,) = conditions([made({"global": [0.5] * 7}, spec=SPEC | changes, malicious=[2, 5])])
    return found


def test_who_trains_and_who_attacks() -> None:
    trained, attacked = setting(of())
    assert trained == (
        "digits (split = train 0.5 / test 0.5) on 7 devices, 3 of them in each of 1,200 rounds. w by SGD (lr = 0.1) on "
        "minibatches of 16, aggregated by task:trimmed (cut = 2)."
    )
    assert attacked == "No attack: every device is honest."


def test_an_attack_is_explained() -> None:
    _, said = setting(of(attack={"kind": "A1", "ratio": 0.3}))
    assert said.startswith("Attack: A1 (ratio = 0.3), 2 of the devices malicious. Label poisoning: ")
    _, said = setting(of(attack={"kind": "task:EVIL"}))
    assert said == "Attack: task:EVIL, 2 of the devices malicious."


def test_all_devices_and_all_samples() -> None:
    trained, _ = setting(of(cohort=7, method=SPEC["method"] | {"batch": "none"}))  # type: ignore[operator]
    assert "all of them in each" in trained
    assert "on all samples at once" in trained


def test_pieces_within_pieces() -> None:
    attack = {"kind": "Attack", "count": 1, "update": [{"kind": "SignFlip", "factor": 2.0}, {"kind": "ALIE"}]}
    assert told(attack) == "Attack (count = 1, update = [SignFlip (factor = 2.0), ALIE])"


def test_real_runs_are_told(results: dict[str, Result]) -> None:
    trained, attacked = setting(conditions([results["A1-2"]])[0])
    data = "task:classes (devices = 7, n = 30) on 7 devices"
    assert trained.startswith(f"{data}, 3 of them in each of 6 rounds. w by SGD (lr = 0.1)")
    assert "aggregated by Mean." in trained
    assert "2 of the devices malicious" in attacked
