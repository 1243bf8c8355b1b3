"""What the figures that are no cells say of the paper's claims."""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path

from dittofl.method import GLOBAL
from dittofl.reproduce.family import JOINT
from dittofl.reproduce.tidy import foreign

PANELS = {
    "as published": "; none of them is below τ_a = .1, so malicious devices are no farther from θ than benign ones",
    "adversarial": ", with τ_a = 1 in place of .1",
}
Records = Sequence[Mapping[str, str]]


def figures_say(figures: Mapping[str, Records]) -> Iterator[str]:
    """A sentence for each of Figures 2, 3 and 7 that is there."""
    told = {"figure2": figure2, "figure3": figure3, "figure7": figure7}
    said: list[str] = []
    for name, its in figures.items():
        with foreign(Path(f"{name}.csv")):
            said += told[name](its) if its else ()
    if said:
        yield "".join(f"- {sentence}\n" for sentence in said)


def _panels(records: Records, key: str) -> dict[str, list[Mapping[str, str]]]:
    found: dict[str, list[Mapping[str, str]]] = {}
    for one in records:
        found.setdefault(one[key], []).append(one)
    return found


def figure2(records: Records) -> Iterator[str]:
    """λ* has the least error of all λ shown."""
    for panel, its in _panels(records, "panel").items():
        best = min(its, key=lambda one: float(one["simulated_error"]))
        star = next(one for one in its if int(one["is_lam_star"]))
        exact = min(its, key=lambda one: float(one["error"]))
        holds = exact is star
        yield (
            f"Figure 2, {panel}: λ* = {float(star['lam']):.3g} {'has' if holds else 'does not have'} the least exact "
            f"error ({float(star['error']):.5f}); in simulation it has {float(star['simulated_error']):.5f}, the least "
            f"is {float(best['simulated_error']):.5f} at λ = {float(best['lam']):.3g}."
        )


def figure3(records: Records) -> Iterator[str]:
    """Ditto at λ* is below local and global at every relatedness."""
    for panel, its in _panels(records, "panel").items():
        points = _panels(its, "tau")
        won = 0
        for three in points.values():
            star = min(float(one["error"]) for one in three if int(one["is_lam_star"]))
            least = min(float(one["error"]) for one in three)
            won += isclose(star, least, rel_tol=1e-9)
        at = f"{won} of {len(points)} τ{PANELS.get(panel, '')}"
        yield f"Figure 3, {panel}: Ditto at λ* has the least error of the three at {at}."


def figure7(records: Records) -> Iterator[str]:
    """Ditto solved jointly against its best fine-tuning."""
    for data, its in _panels(records, "dataset").items():
        runs = _panels(its, "seed")
        mean = {
            name: sum(float(one["accuracy"]) for one in its if picked(one)) / len(runs)
            for name, picked in (
                (GLOBAL, lambda one: one["model"] == GLOBAL),
                (JOINT, lambda one: one["model"] == JOINT),
                ("best", lambda one: int(one["chosen_with_hindsight"])),
            )
        }  # fmt: skip
        verdict = "holds" if mean[JOINT] > mean["best"] > mean[GLOBAL] else "does not hold"
        yield (
            f"Figure 7, {data}, A3 20 %: joint {mean[JOINT]:.3f}, fine-tuned with the best stop by hindsight "
            f"{mean['best']:.3f}, global {mean[GLOBAL]:.3f}; that joint is best and fine-tuning second {verdict}."
        )
