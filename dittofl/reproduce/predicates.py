"""What the paper's claims come to: predicates over the cells of a data set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from dittofl.reproduce.column import Column, column
from dittofl.reproduce.grid import BEST, RULE, Grid, MissingError, bench

BASELINES = ("global", "median", "Krum", "multi-Krum", "clipping", "k-norm", "k-loss", "FedMGDA+")
DEFENCES = BASELINES[1:]
PERSONAL = ("local", "finetuning", "L2SGD", "EWC", "SKL", "Per-FedAvg", "mapper", "APFL")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a claim holds on a data set, and by which numbers; `holds` is None where cells are missing."""

    holds: bool | None
    told: str

    @property
    def said(self) -> str:
        """In words."""
        return self.told if self.holds is None else f"{'holds' if self.holds else 'does not hold'}: {self.told}"


def attacked(dataset: str) -> tuple[Column, ...]:
    """The columns with an attack."""
    return bench(dataset).columns[1:]


def baselines(grid: Grid, dataset: str) -> tuple[str, ...]:
    """The robust baselines that the paper runs on a data set; all of them are needed to decide."""
    left_out = {"FEMNIST (skewed)": ("FedMGDA+",), "StackOverflow": ("multi-Krum",)}.get(dataset, ())
    return tuple(name for name in BASELINES if name not in left_out)


def most_accurate(grid: Grid, dataset: str) -> Verdict:
    """In how many columns with an attack the rule's Ditto is at least as accurate as every baseline."""
    return _wins(grid, dataset, attacked(dataset))


def most_accurate_when_many(grid: Grid, dataset: str) -> Verdict:
    """The same where each attack has the most malicious devices."""
    last = {where.attack: where for where in attacked(dataset)}
    return _wins(grid, dataset, tuple(last.values()))


def _wins(grid: Grid, dataset: str, columns: Sequence[Column]) -> Verdict:
    names = baselines(grid, dataset)
    won = [
        where for where in columns
        if grid.mean(dataset, RULE, where) >= max(grid.mean(dataset, name, where) for name in names)
    ]  # fmt: skip
    return Verdict(holds=2 * len(won) > len(columns), told=f"most accurate in {len(won)} of {len(columns)} columns")


def gain(grid: Grid, dataset: str) -> tuple[str, float]:
    """The baseline of highest mean over the columns with an attack, and what the rule's Ditto has above it."""
    its = {name: _average(grid, dataset, name) for name in baselines(grid, dataset)}
    name = max(its, key=lambda one: its[one])
    return name, _average(grid, dataset, RULE) - its[name]


def _average(grid: Grid, dataset: str, method: str) -> float:
    return mean(grid.mean(dataset, method, where) for where in attacked(dataset))


def more_accurate_on_average(grid: Grid, dataset: str) -> Verdict:
    name, points = gain(grid, dataset)
    return Verdict(holds=points > 0, told=f"{100 * points:+.1f} points against {name}, the best on average")


def fairer_or_more_accurate(grid: Grid, dataset: str) -> Verdict:
    """Less spread than the global model, or more accurate than TERM, in every column."""
    columns = bench(dataset).columns
    met = [
        where for where in columns
        if grid.std(dataset, RULE, where) < grid.std(dataset, "global", where)
        or grid.mean(dataset, RULE, where) > grid.mean(dataset, "fair", where)
    ]  # fmt: skip
    return Verdict(holds=len(met) == len(columns), told=f"in {len(met)} of {len(columns)} columns")


def against_fair(grid: Grid, dataset: str) -> tuple[float, float]:
    """Relative change of variance, and of accuracy in points, from TERM to the rule's Ditto on clean data."""
    clean = Column()
    ours, fair = (grid.std(dataset, name, clean) ** 2 for name in (RULE, "fair"))
    if fair == 0:
        raise MissingError("the spread of fair at clean is 0 and a change relative to it is missing")
    variance = ours / fair - 1
    return variance, grid.mean(dataset, RULE, clean) - grid.mean(dataset, "fair", clean)


def fairer_than_fair(grid: Grid, dataset: str) -> Verdict:
    variance, points = against_fair(grid, dataset)
    return Verdict(holds=variance < 0 < points, told=f"variance {100 * variance:+.0f} %, {100 * points:+.1f} points")


def fair_is_fragile(grid: Grid, dataset: str) -> Verdict:
    """Under label poisoning TERM is below the global model, and the lower the larger t, on average."""
    poisoned = [where for where in bench(dataset).columns if where.attack == "A1"]
    names = ("global", "fair", "TERM, t=2", "TERM, t=5")
    its = [mean(grid.mean(dataset, name, where) for where in poisoned) for name in names]
    told = ", ".join(f"{name} {value:.3f}" for name, value in zip(names, its, strict=True))
    return Verdict(holds=its == sorted(its, reverse=True), told=told)


def robust_is_not_fair(grid: Grid, dataset: str) -> Verdict:
    """At A1 50 %: a defence is more accurate than global only with more spread; Ditto is ahead in both."""
    where = column("A1 50%")
    w, spread = grid.mean(dataset, "global", where), grid.std(dataset, "global", where)
    both = [
        name for name in (*DEFENCES[:-1], RULE)
        if grid.mean(dataset, name, where) > w and grid.std(dataset, name, where) < spread
    ]  # fmt: skip
    told = f"more accurate and fairer than global: {', '.join(both) or 'none'}"
    return Verdict(holds=both == [RULE], told=told)


def competitive(grid: Grid, dataset: str) -> Verdict:
    """Ditto at its best λ within a point of the best personalisation method, or above it; clean and at A1 50 %."""
    columns = (Column(), column("A1 50%"))
    gaps = [
        grid.mean(dataset, BEST, where) - max(grid.mean(dataset, name, where) for name in PERSONAL)
        for where in columns
    ]  # fmt: skip
    told = ", ".join(f"{100 * gap:+.1f} points ({w.name})" for gap, w in zip(gaps, columns, strict=True))
    return Verdict(holds=min(gaps) >= -0.01, told=told)


def augmented(*defences: str) -> Callable[[Grid, str], Verdict]:
    """Ditto beside a robust w is at least as accurate as Ditto in most of the columns with an attack."""

    def decide(grid: Grid, dataset: str) -> Verdict:
        there = [name for name in defences if f"Ditto + {name}" in grid.methods(dataset)]
        if not there:
            raise MissingError(f"{' or '.join(f'Ditto + {name}' for name in defences)} is missing")
        known = [w for w in attacked(dataset) if all((dataset, f"Ditto + {n}", w) in grid.values for n in there)]
        if not known:
            raise MissingError("an attack on Ditto beside a robust w is missing")
        gaps = {
            name: [grid.mean(dataset, f"Ditto + {name}", w) - grid.mean(dataset, BEST, w) for w in known]
            for name in there
        }
        won = {name: sum(gap >= 0 for gap in its) for name, its in gaps.items()}
        told = ", ".join(f"+ {name}: {n} of {len(known)} columns" for name, n in won.items())
        return Verdict(holds=any(2 * n > len(known) for n in won.values()), told=told)

    return decide


def rule_is_good(grid: Grid, dataset: str) -> Verdict:
    """The rule's Ditto within two points of the best fixed λ on average over all columns."""
    gaps = [grid.mean(dataset, RULE, where) - grid.mean(dataset, BEST, where) for where in bench(dataset).columns]
    told = f"{100 * mean(gaps):+.1f} points on average, {100 * min(gaps):+.1f} at worst"
    return Verdict(holds=mean(gaps) >= -0.02, told=told)


def smaller_when_strong(grid: Grid, dataset: str) -> Verdict:
    """The best fixed λ (on test data) is smaller under the strongest replacement than on clean data."""
    lambdas, ends = bench(dataset).fixed, (Column(), bench(dataset).columns[-1])
    best = [max(lambdas, key=lambda lam: grid.mean(dataset, f"Ditto, lambda={lam:g}", where)) for where in ends]
    return Verdict(holds=best[1] < best[0], told=f"λ = {best[0]:g} clean, {best[1]:g} at {ends[1].name}")


def related_is_robust(grid: Grid, dataset: str) -> Verdict:
    """MOCHA is more accurate on average under attack, and less spread, than most baselines."""
    names, own = baselines(grid, dataset), _average(grid, dataset, "MOCHA")
    above = sum(own > _average(grid, dataset, name) for name in names)
    spread = {name: mean(grid.std(dataset, name, where) for where in attacked(dataset)) for name in (*names, "MOCHA")}
    below = sum(spread["MOCHA"] < spread[name] for name in names)
    told = f"more accurate than {above} of {len(names)} baselines, less spread than {below}"
    return Verdict(holds=2 * min(above, below) > len(names), told=told)
