"""What beats what, in plain words, from the numbers."""

from collections.abc import Sequence

from dittofl.method import GLOBAL
from dittofl.report.compare import Difference, Model, difference
from dittofl.report.conditions import Condition, lead_model, lower_is_better
from dittofl.report.interval import number, percent

SAME = "no clear difference"


def headline(found: Sequence[Condition], metric: str) -> tuple[str, ...]:
    """The sentences that the page begins with."""
    lead, picked = lead_model(found, metric)
    if lead is None:
        return (_alone(found, metric),)
    rows = against_global(found, lead, metric)
    wins, losses = ([row for row in rows if row.sign == s] for s in (1, -1))
    said = [_first(lead, rows, wins, losses, metric), _spread(found, lead, metric)]
    if picked:
        said.append(f"{lead} is the personal model with the best mean here, picked by these very results.")
    return tuple(said)


def against_global(found: Sequence[Condition], lead: str, metric: str) -> list[Difference]:
    """A model against the global one of the same condition."""
    lower = lower_is_better(found, metric)
    return [
        difference(Model(condition=c, name=lead), Model(condition=c, name=GLOBAL), metric, lower)
        for c in found if lead in c.models and lead != GLOBAL
    ]  # fmt: skip


def verdict(condition: Condition, lead: str, metric: str) -> str:
    """One condition in a sentence or two: the lead against the global model, then against the others."""
    row = against_global([condition], lead, metric)[0]
    mine, other = (condition.score(name, metric, "mean").mean for name in (lead, GLOBAL))
    if mine != mine or other != other:
        gone = " and ".join(name for name, its in ((lead, mine), (GLOBAL, other)) if its != its)
        return f"{gone} diverged on at least one device, so there is nothing to compare."
    how = {1: "clearly better than", -1: "clearly worse than", 0: "not clearly different from"}[row.sign]
    gap = f"a difference of {number(row.mean.mean, signed=True)}"
    said = f"{lead} is {how} global: {number(mine)} against {number(other)}, {gap}"
    if row.mean.half == row.mean.half:
        ends = f"{number(row.mean.low, signed=True)} to {number(row.mean.high, signed=True)}"
        said += f" (95 % interval {ends} over {row.over})"
    shares = f"It is better on {percent(row.better)} of the devices and worse on {percent(row.worse)}."
    return " ".join([f"{said}.", shares, *_others(condition, lead, metric)])


def _others(condition: Condition, lead: str, metric: str) -> list[str]:
    """How the lead stands against every other personal model."""
    lower = lower_is_better([condition], metric)
    found: dict[int, list[str]] = {1: [], -1: [], 0: []}
    for name in condition.models:
        if name not in (lead, GLOBAL):
            pair = [Model(condition=condition, name=its) for its in (lead, name)]
            found[difference(pair[0], pair[1], metric, lower).sign].append(name)
    words = {1: "It beats", -1: "It is beaten by", 0: "There is no clear difference from"}
    return [f"{words[sign]} {_list(names)}." for sign, names in found.items() if names]


def _first(
    lead: str, rows: Sequence[Difference], wins: Sequence[Difference], losses: Sequence[Difference], metric: str
) -> str:
    if len(rows) == 1:
        return _single(lead, rows[0], metric)
    gaps = [row.mean.mean for row in (wins or losses or rows)]
    reach = f"{metric} {number(min(gaps), signed=True)} to {number(max(gaps), signed=True)}"
    if len(wins) == len(rows):
        return f"{lead} beats the global model in all {len(rows)} conditions: {reach} on average over benign devices."
    if len(losses) == len(rows):
        return f"The global model beats {lead} in all {len(rows)} conditions: {lead} has {reach} on average."
    said = []
    if wins:
        said.append(f"{lead} beats the global model in {_where(wins)}: {reach} on average over benign devices.")
    if losses:
        said.append(f"The global model beats {lead} in {_where(losses)}.")
    if rest := [row for row in rows if row.sign == 0]:
        said.append(f"There is {SAME} between {lead} and the global model in {_where(rest)}.")
    return " ".join(said)


def _single(lead: str, row: Difference, metric: str) -> str:
    gap = f"{metric} {number(row.mean.mean, signed=True)} on average over benign devices"
    if row.mean.mean != row.mean.mean:
        return f"{lead} and the global model cannot be compared: at least one of them diverged."
    if row.sign:
        first, second = (lead, "the global model") if row.sign > 0 else ("The global model", lead)
        return f"{first} beats {second}: {lead} has {gap}."
    return f"There is {SAME} between {lead} and the global model: {lead} has {gap}, within its 95 % interval."


def _spread(found: Sequence[Condition], lead: str, metric: str) -> str:
    """Whether the worst tenth is better off and the devices more alike."""
    lower = lower_is_better(found, metric)
    n = len(found)

    def count(statistic: str, low: bool) -> int:
        pairs = [(c.score(lead, metric, statistic).mean, c.score(GLOBAL, metric, statistic).mean) for c in found]
        return sum(x < y if low else x > y for x, y in pairs)

    worst, std = count("worst10", lower), count("std", True)
    if n == 1:
        better, smaller = "better" if worst else "no better", "smaller" if std else "no smaller"
        return f"Its worst tenth of devices is {better}, its spread over devices {smaller}."
    return f"Its worst tenth of devices is better in {worst} of {n}, its spread over devices smaller in {std} of {n}."


def _alone(found: Sequence[Condition], metric: str) -> str:
    """Without a personal model there is nothing to beat."""
    said = [
        f"{number(c.score(GLOBAL, metric, 'mean').mean)}" + (f" in {c.title}" if len(found) > 1 else "") for c in found
    ]
    personal = any(len(c.models) > 1 for c in found)
    why = "No personal model is in every run" if personal else "Only a global model was trained"
    return f"{why}: its {metric} on average over benign devices is {_list(said)}."


def _where(rows: Sequence[Difference]) -> str:
    titles = [row.model.condition.title for row in rows]
    return _list(titles) if len(titles) <= 4 else f"{len(titles)} conditions"


def _list(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
