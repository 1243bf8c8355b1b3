"""One HTML file over all runs: no network, no script, light and dark, narrow and wide."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from typing import Any

import tomli_w
from jinja2 import Environment, StrictUndefined

from dittofl.errors import cut
from dittofl.experiment.files import place, write
from dittofl.method import GLOBAL
from dittofl.report import charts, series
from dittofl.report.conditions import Condition, conditions, lead_metric, lead_model, lower_is_better
from dittofl.report.interval import number
from dittofl.report.results import Result
from dittofl.report.setting import setting, told
from dittofl.report.tables import overview
from dittofl.report.verdict import headline, verdict

OPEN = 6  # with more conditions each is folded
IDS = 100  # malicious devices named at most


@dataclass(frozen=True, kw_only=True)
class Part:
    """What the page says of one condition."""

    title: str
    setting: tuple[str, str]
    attack: str
    verdict: str
    lead: str
    glance: str
    curves: dict[str, str]
    histograms: dict[str, str]
    scatter: str
    worst: list[series.Worst]
    chosen: dict[str, list[tuple[str, str, float]]]
    what: str  # is chosen
    drawn: str | None
    seeds: str
    spec: str


def page(results: Sequence[Result], metric: str | None = None) -> str:
    """The page as text."""
    found = conditions(results)
    metric = lead_metric(found, metric)
    places = series.order(found)
    ends = series.reached(found, metric)
    first, *rest = headline(found, metric)
    template = resources.files("dittofl.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number}
    return environment.from_string(template).render(
        headline=first, more=rest, facts=_facts(results, found), metric=metric, lower=lower_is_better(found, metric),
        parts=[_part(c, metric, places, ends) for c in found], unfolded=len(found) <= OPEN,
        table=overview(found, metric),
        legend=[(model, charts.style(place), charts.symbol(place)) for model, place in places.items()],
        leads={c.title: lead_model([c], metric)[0] for c in found}, runs=[_run(run) for run in results],
        style={model: charts.style(place) for model, place in places.items()},
    )  # fmt: skip


def save(results: Sequence[Result], path: Any, metric: str | None = None) -> None:
    """The page in a file, whole or not at all."""
    place(path)
    write(path, page(results, metric).encode())


def _part(condition: Condition, metric: str, places: dict[str, int], ends: tuple[float, float]) -> Part:
    lead, _ = lead_model([condition], metric)
    rows = [row for name in condition.choices for row, _, _ in charts.chosen(condition, name)]
    last = condition.runs[0]
    return Part(
        title=condition.title, setting=setting(condition), lead=lead or GLOBAL,
        attack=told(last.spec["attack"]) if "attack" in last.spec else "no attack",
        verdict="" if lead is None else verdict(condition, lead, metric),
        glance=charts.glance(condition, metric, places, ends),
        curves=charts.curves(condition, metric, places), histograms=charts.histograms(condition, metric, places),
        scatter=charts.scatter(condition, metric, places),
        worst=series.worst(condition, lead or GLOBAL, metric),
        what="λ chosen" if all(row.startswith("lam=") for row in rows) else "chosen",
        chosen={name: charts.chosen(condition, name) for name in condition.choices}, drawn=charts.drawn(condition),
        seeds=", ".join(str(run.seed) for run in condition.runs),
        spec=tomli_w.dumps({key: value for key, value in last.spec.items() if key != "seed"}),
    )  # fmt: skip


def _facts(results: Sequence[Result], found: Sequence[Condition]) -> str:
    """How much there is, in a line."""
    devices = sorted({len(run.devices.ids) for run in results})
    rounds = sorted({int(run.summary["rounds"]) for run in results})
    seconds = sum(float(run.summary["seconds"]) for run in results)
    said = [
        _count(len(results), "run"), _count(len(found), "condition"), f"{_ends(devices)} devices",
        f"{_ends(rounds)} rounds", f"trained for {timedelta(seconds=round(seconds))} in all",
    ]  # fmt: skip
    return " · ".join(said)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _ends(numbers: Sequence[int]) -> str:
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def _run(run: Result) -> dict[str, Any]:
    """Where a run's numbers are from."""
    facts, summary = run.facts, run.summary
    malicious = [cut(str(device), 60) for device in facts["malicious"]]
    more = f" and {len(malicious) - IDS} more, see run.json" if len(malicious) > IDS else ""
    unseen, dropped, outside = (
        int(summary.get(key, 0)) for key in ("never_visited", "dropped_reports", "rounds_outside_guarantee")
    )
    told = {
        "folder": str(run.folder), "identity of the spec": facts["identity"],
        "fingerprint of the data": facts["fingerprint"], "seed": run.seed,
        "scored on": f"{run.part} data, after round {summary['rounds']}",
        "malicious": (", ".join(malicious[:IDS]) + more) or "none",
        "never visited": _count(unseen, "device"), "reports dropped": _count(dropped, "report"),
        "aggregation outside its guarantee": _count(outside, "round"),
        "time": f"{float(summary['seconds']):.1f} s",
    }  # fmt: skip
    versions = [f"{key} {facts[key]}" for key in ("dittofl", "torch", "python") if facts.get(key)]
    told["versions"] = ", ".join(versions) + "; all packages in run.json"
    kept = ("git", "command", "platform", "device", "precision", "deterministic", "threads")
    rest = {key: facts[key] for key in kept if facts.get(key) not in (None, "")}
    rest = {key: " ".join(map(str, its)) if isinstance(its, list) else its for key, its in rest.items()}
    return {
        "title": f"{run.name}, seed {run.seed}",
        "facts": {key: cut(str(its), 10_000) for key, its in (told | rest).items()},
    }
