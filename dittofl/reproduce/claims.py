"""The paper's claims about its experiments, decided data set by data set."""

from collections.abc import Callable
from dataclasses import dataclass

from dittofl.reproduce import predicates as its
from dittofl.reproduce.grid import OURS, Grid, MissingError
from dittofl.reproduce.predicates import Verdict


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says, where, and how it is decided."""

    name: str
    says: str
    where: str
    decide: Callable[[Grid, str], Verdict]
    datasets: tuple[str, ...]

    def on(self, grid: Grid, dataset: str) -> Verdict:
        """The verdict on a data set."""
        try:
            return self.decide(grid, dataset)
        except MissingError as error:
            where = "not decidable here" if grid.name == OURS else "not in its tables"
            return Verdict(holds=None, told=f"{where}: {error}")


FULL = ("Vehicle", "FEMNIST", "Fashion MNIST", "CelebA", "StackOverflow")
CLAIMS = (
    Claim(
        name="most accurate under most attacks", where="§5.1, Figure 4",
        says="Ditto with each device's own λ is more accurate than every robust baseline under most attacks",
        decide=its.most_accurate, datasets=FULL,
    ),
    Claim(
        name="most of all with many malicious devices", where="§5.1",
        says="the same in the columns where each attack has the most malicious devices",
        decide=its.most_accurate_when_many, datasets=FULL,
    ),
    Claim(
        name="about 6 points above the strongest baseline", where="§5.1, App. D.4",
        says="averaged over the attacks Ditto is above the baseline that is best on average",
        decide=its.more_accurate_on_average, datasets=FULL,
    ),
    Claim(
        name="fairer than global or more accurate than fair", where="Table 1",
        says="in every column Ditto has less spread than the global model, or is more accurate than TERM",
        decide=its.fairer_or_more_accurate, datasets=("Fashion MNIST", "FEMNIST", "Vehicle"),
    ),
    Claim(
        name="variance −10 %, accuracy +5 points against TERM", where="§5.2, App. D.4",
        says="on clean data Ditto has less variance and more accuracy than TERM", decide=its.fairer_than_fair,
        datasets=FULL,
    ),
    Claim(
        name="fair methods are fragile", where="§5.3, Figure 5",
        says="under label poisoning TERM is below the global model, and the more so the larger t",
        decide=its.fair_is_fragile, datasets=("Fashion MNIST", "Vehicle"),
    ),
    Claim(
        name="robust methods are not fair", where="§5.3, Figure 6",
        says="at A1 50 % no defence is both more accurate and fairer than the global model; Ditto is",
        decide=its.robust_is_not_fair, datasets=("Fashion MNIST", "Vehicle"),
    ),
    Claim(
        name="competitive personalisation", where="§5.4, Table 2",
        says="Ditto is within a point of the best other personalisation method, or above it", decide=its.competitive,
        datasets=("FEMNIST", "CelebA"),
    ),
    Claim(
        name="a robust w helps further", where="§5.4, Tables 3 and 6",
        says="Ditto beside a robust aggregation is at least as accurate as Ditto in most columns with an attack",
        decide=its.augmented("clipping", "multi-Krum"), datasets=("FEMNIST", "CelebA", "Fashion MNIST", "Vehicle"),
    ),
    Claim(
        name="each device's own λ works well", where="App. D.2, Table 5",
        says="λ chosen on each device is within two points of the best fixed λ on average", decide=its.rule_is_good,
        datasets=FULL,
    ),
    Claim(
        name="strong attacks want a small λ", where="App. D.2",
        says="the best fixed λ is smaller under the strongest replacement than on clean data",
        decide=its.smaller_when_strong, datasets=(*FULL, "FEMNIST (skewed)"),
    ),
    Claim(
        name="MOCHA is robust and fair", where="§5.4, Table 7",
        says="MOCHA is more accurate on average under attack, and less spread, than most baselines",
        decide=its.related_is_robust, datasets=("Vehicle",),
    ),
)  # fmt: skip
