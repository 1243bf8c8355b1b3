"""What the runs of a condition do, in plain words, from their spec."""

import inspect
from collections.abc import Mapping
from typing import Any

from dittofl.experiment.names import known
from dittofl.experiment.signature import KIND, described
from dittofl.report.conditions import Condition


def setting(condition: Condition) -> tuple[str, str]:
    """Who trains what and how, then who attacks."""
    run = condition.runs[0]
    spec, K = run.spec, len(run.devices.ids)
    method, cohort = spec["method"], spec.get("cohort")
    drawn = "all of them" if cohort in (None, K) else f"{cohort} of them"
    size = method.get("batch", "none")
    batch = "all samples at once" if size == "none" else f"minibatches of {size}"
    trained = (
        f"{told(spec['data'])} on {K:,} devices, {drawn} in each of {spec['rounds']:,} rounds. w by "
        f"{told(method['local'])} on {batch}, aggregated by {told(method['aggregate'])}."
    )
    attack = spec.get("attack")
    if attack is None:
        return trained, "No attack: every device is honest."
    bad = sorted({int(its.devices.malicious.sum()) for its in condition.runs})
    count = " to ".join(str(one) for one in dict.fromkeys((bad[0], bad[-1])))
    return trained, f"Attack: {told(attack)}, {count} of the devices malicious. {meaning(attack)}".rstrip()


def told(value: Any) -> str:
    """A piece in few words, without what is as it would be anyway: SGD (lr = 0.1).

    >>> told({"kind": "SGD", "lr": 0.1, "steps": 1}), told({"kind": "Mean"})
    ('SGD (lr = 0.1)', 'Mean')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(told, value))}]"
    if not isinstance(value, Mapping):
        return str(value)
    if KIND not in value:
        return " / ".join(f"{name} {told(one)}" for name, one in value.items())
    usual = _defaults(str(value[KIND]))
    rest = [f"{name} = {told(one)}" for name, one in value.items() if name != KIND and usual.get(name, KIND) != one]
    return f"{value[KIND]} ({', '.join(rest)})" if rest else str(value[KIND])


def meaning(table: Mapping[str, Any]) -> str:
    """The first sentence of what we say of a piece."""
    kind = known().get(str(table.get(KIND)))
    return "" if kind is None else (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _defaults(name: str) -> dict[str, Any]:
    kind = known().get(name)
    its = {} if kind is None else inspect.signature(kind).parameters
    return {one.name: described(one.default) for one in its.values() if one.default is not one.empty}
