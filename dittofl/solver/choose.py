"""Each device's choice among its own personal rows, on its own validation data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import finite, flag, require, short, whole
from dittofl.optimiser import Chain, Rate
from dittofl.solver.ditto import Ditto
from dittofl.types import Steps

LAMBDAS = {False: (0.1, 1.0, 2.0), True: (0.05, 0.1, 0.2)}  # Li et al. 2021, appendix "Tuning λ"; True: strong attacks
FEW = {False: 1.0, True: 0.1}  # for devices with too few validation samples


@dataclass(frozen=True, kw_only=True)
class Choose:
    """k ↦ argmax over `among` of the validation accuracy of device k's own row, ties by the lower validation loss.

    Li et al. 2021, experiments: a device with fewer than `enough` validation samples takes the row `few`. The paper
    leaves 4 and 5 samples open; both count as enough here. Without an accuracy (regression) the loss decides.

    >>> Choose(among=("a", "b"), few="b").enough
    4
    """

    among: tuple[str, ...]
    few: str
    enough: int = 4

    def __post_init__(self) -> None:
        proper = isinstance(self.among, tuple) and all(isinstance(name, str) for name in self.among)
        require(
            proper and len(self.among) == len(set(self.among)) >= 1,
            f"Choose needs among=('name', …), the distinct personal rows to choose from, got {short(self.among)}",
        )
        require(self.few in self.among, f"Choose needs few= to be one of {list(self.among)}, got {self.few!r}")
        whole("Choose", "enough", self.enough, 1)

    def pick(
        self, n: NDArray[np.int64], accuracy: NDArray[np.float64] | None, loss: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The chosen index into `among` for each device; accuracy and loss are [candidates, K] on validation data."""
        accuracy = -loss if accuracy is None else accuracy
        # lexsort's last key leads, NaN (of a model that diverged) sorts last, and a tie goes to the earlier candidate.
        best = np.lexsort((loss, -accuracy), axis=0)[0]
        return np.where(n < self.enough, self.among.index(self.few), best)


@dataclass(frozen=True, kw_only=True)
class LambdaRule:
    """λ_k = argmax over {.1, 1, 2}, or {.05, .1, .2} under a strong attack, of device k's validation accuracy.

    Li et al. 2021, "Tuning λ", before it is known how strong the attack is: rows of `Ditto` and `Choose` among them. A
    device with too little validation data takes 1, or .1 under a strong attack, which is any A3, or one with more than
    half of the devices malicious. `strong` and `lambdas` override that; where that λ is not among `lambdas`, such a
    device takes the middle one (of an even number the upper).

    >>> LambdaRule(lr=0.1).rows(strong=True)[1].few
    'lam=0.1'
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    proximal: bool = False
    strong: bool | None = None
    lambdas: tuple[float, ...] | None = None

    def rows(self, *, strong: bool) -> tuple[dict[str, Ditto], Choose]:
        """The personal rows to train and how each device chooses among them."""
        return lambda_rule(
            strong=strong if self.strong is None else self.strong, lr=self.lr, steps=self.steps,
            through=self.through, proximal=self.proximal, lambdas=self.lambdas,
        )  # fmt: skip


def lambda_rule(
    *, strong: bool, lr: Rate, steps: Steps = 1, through: Chain = (), proximal: bool = False,
    lambdas: Sequence[float] | None = None,
) -> tuple[dict[str, Ditto], Choose]:  # fmt: skip
    """The paper's rule: the personal rows to train and how each device chooses among them.

    A strong attack is any A3, or one with more than half of the devices malicious. A device with too little validation
    data takes λ = 1 (strong: .1), or the middle one of `lambdas` without it.

    >>> personal, rule = lambda_rule(strong=False, lr=0.1)
    >>> sorted(personal), rule.few
    (['lam=0.1', 'lam=1', 'lam=2'], 'lam=1')
    """
    flag("lambda_rule", "strong", strong)
    lambdas = LAMBDAS[strong] if lambdas is None else lambdas
    require(
        isinstance(lambdas, list | tuple)
        and all(map(finite, lambdas))
        and len({f"{lam:g}" for lam in lambdas}) == len(lambdas) >= 1,
        f"lambda_rule needs lambdas=(…,), distinct numbers to choose from, got lambdas={short(lambdas)}",
    )
    rows = {f"lam={lam:g}": Ditto(lam=lam, lr=lr, steps=steps, through=through, proximal=proximal) for lam in lambdas}
    few = FEW[strong] if FEW[strong] in lambdas else sorted(lambdas)[len(lambdas) // 2]
    return rows, Choose(among=tuple(rows), few=f"lam={few:g}")
