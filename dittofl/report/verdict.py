"""What beats what, in plain words, from the numbers."""

from collections.abc import Sequence

from dittofl.method import GLOBAL
from dittofl.report.compare import Difference, Model, difference
from dittofl.report.conditions import Condition, lead_model, lower_is_better
from dittofl.report.interval import number, percent

_WINS, _LOSES = "{} beats the global model", "The global model beats {}"
_SAME = "There is no clear difference between {} and the global model"


def headline(found: Sequence[Condition], metric: str) -> tuple[str, ...]:
    """The sentences that the page begins with."""
    lead, picked = lead_model(found, metric)
    if lead is None:
        return (_alone(found, metric),)
    rows = against_global(found, lead, metric)
    said = [_first(lead, rows, metric), _spread(found, lead, metric)]
    if picked:
        said.append(f"{lead} is the personal model with the best mean here, picked by these very results.")
    return tuple(filter(None, said))


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
    if row.mean.mean != row.mean.mean:
        return f"{_diverged(lead, mine, other)}, so there is no difference to tell."
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


def _first(lead: str, rows: Sequence[Difference], metric: str) -> str:
    """Who beats whom, and by how much."""
    if len(rows) == 1:
        return _single(lead, rows[0], metric)
    sound = [row for row in rows if row.mean.mean == row.mean.mean]
    said = []
    for sign, words in ((1, _WINS), (-1, _LOSES), (0, _SAME)):
        if its := [row for row in sound if row.sign == sign]:
            gaps = [row.mean.mean for row in its]
            ends = dict.fromkeys(number(gap, signed=True) for gap in (min(gaps), max(gaps)))
            reach = f": {metric} {' to '.join(ends)} on average over benign devices"
            said.append(f"{words.format(lead)} {_where(its, len(rows))}{reach if sign > 0 else ''}.")
    if gone := [row for row in rows if row.mean.mean != row.mean.mean]:
        said.append(f"A model diverged {_where(gone, len(rows))}.")
    return " ".join(said)


def _single(lead: str, row: Difference, metric: str) -> str:
    if row.mean.mean != row.mean.mean:
        here = row.model.condition
        return f"{_diverged(lead, *(here.score(name, metric, 'mean').mean for name in (lead, GLOBAL)))}."
    gap = f"{metric} {number(row.mean.mean, signed=True)} on average over benign devices"
    if row.sign:
        first, second = (lead, "the global model") if row.sign > 0 else ("The global model", lead)
        return f"{first} beats {second}: {lead} has {gap}."
    why = ", and its 95 % interval holds 0" if row.mean.half == row.mean.half else ""
    return f"There is no clear difference between {lead} and the global model: {lead} has {gap}{why}."


def _diverged(lead: str, mine: float, other: float) -> str:
    gone = [name for name, its in ((lead, mine), ("the global model", other)) if its != its]
    left = f" and {lead}, with {number(mine)}, did not" if mine == mine else ""
    words = _list(gone or ["a model"])
    return f"{words if gone[:1] == [lead] else words.capitalize()} diverged on at least one device{left}"


def _spread(found: Sequence[Condition], lead: str, metric: str) -> str:
    """Whether the worst tenth is better off and the devices more alike."""
    lower = lower_is_better(found, metric)

    def gaps(statistic: str) -> list[float]:
        both = ([c.score(name, metric, statistic).mean for c in found] for name in (lead, GLOBAL))
        return [x - y for x, y in zip(*both, strict=True) if x - y == x - y]

    worst, std = (
        sum(gap < 0 if low else gap > 0 for gap in gaps(of)) for of, low in (("worst10", lower), ("std", True))
    )
    n = len(gaps("std"))
    if n == 0:
        return ""
    if len(found) == 1:
        better, smaller = "better" if worst else "no better", "smaller" if std else "no smaller"
        return f"The worst tenth of devices is {better} with {lead}, and the spread over devices {smaller}."
    better, smaller = (f"all {n}" if count == n else f"{count} of {n}" for count in (worst, std))
    said = f"With {lead} the worst tenth of devices is better in {better}"
    return f"{said}, and the spread over devices smaller in {smaller}."


def _alone(found: Sequence[Condition], metric: str) -> str:
    """Without a personal model in every run there is no one pair to tell of: the best of all, and the global models."""
    scores = {(c.title, name): c.score(name, metric, "mean").mean for c in found for name in c.models}
    sound = {key: mean for key, mean in scores.items() if mean == mean}
    if not sound:
        return f"Every model diverged: its {metric} is not a number on some benign device."
    best = (min if lower_is_better(found, metric) else max)(sound, key=lambda key: sound[key])
    where = f" in {best[0]}" if len(found) > 1 else ""
    if best[1] == GLOBAL and all(len(c.models) == 1 for c in found):
        said = f"Only global models were trained: {metric} {number(sound[best])} on average over benign devices"
        return f"{said}{where and ' at best,' + where}."
    said = f"The best {metric} on average over benign devices is {number(sound[best])}, of {best[1]}{where}"
    globe = [mean for (_, name), mean in sound.items() if name == GLOBAL]
    if not globe or best[1] == GLOBAL:
        return f"{said}."
    ends = list(dict.fromkeys(map(number, (min(globe), max(globe)))))
    return f"{said}; the global models have {' to '.join(ends)}."


def _where(rows: Sequence[Difference], total: int) -> str:
    """In which conditions."""
    titles = [row.model.condition.title for row in rows]
    if len(titles) == total:
        return f"in {'both' if total == 2 else 'all ' + str(total)} conditions"
    return f"in {_list(titles)}" if len(titles) <= 3 else f"in {len(titles)} of {total} conditions"


def _list(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
