"""MOCHA: linear SVMs of all devices, and how they are related, by dual ascent.

    min over W, Σ   Σ_k (1/n_k) Σ_i max(0, 1 − y_ki w_kᵀ x_ki) + λ/2 tr(Wᵀ Σ⁻¹ W),   tr Σ = 1

Smith et al. 2017. With α in [0, 1] for every sample and b_k = (1/n_k) Σ_i α_ki y_ki x_ki the dual is

    D(α) = Σ_k (1/n_k) Σ_i α_ki − 1/(2λ) tr(Bᵀ Σ B),    W = Σ B / λ

so that a device ascends on its own α, sends Δb_k and gets w_k. It is no solver of a row's gradient, but shares
federations, attacks (which rewrite the Δb_k of malicious devices) and metrics.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dittofl.ascent import Ascent, Matrix
from dittofl.attack import Attack
from dittofl.errors import an_instance, as_seed, finite, flag, nonnegative, positive, require, short, whole
from dittofl.evaluate import Evaluation
from dittofl.federation import Federation, Part, place
from dittofl.measure import Scores
from dittofl.target import Signs


@dataclass(frozen=True, eq=False)
class Related:
    """What `Mocha.fit` found."""

    W: Matrix  # [K, d], a linear SVM for each device
    relation: Matrix  # Σ, [K, K]
    gaps: tuple[float, ...]  # (P − D) / K before every round of ascent, and at the ends of the ascents
    rounds: int
    federation: Federation
    margins: Matrix  # y x of all samples [N, d], y as devices hold it
    malicious: NDArray[np.bool_]

    def evaluate(self, *parts: Part) -> Evaluation:
        """Accuracy and hinge loss of every device's own model, called `mocha`, on these parts (default: test)."""
        parts = parts or ("test",)
        sizes, K = {part: self.federation.sizes(part) for part in parts}, self.federation.K
        values = {("mocha", part): self._scores(part) for part in parts}
        return Evaluation(
            self.rounds, self.federation.ids, self.malicious, np.full(K, self.rounds), sizes, values, {},
            frozenset({"loss"}),
        )  # fmt: skip

    def _scores(self, part: Part) -> Scores:
        first = place(part)
        spans = zip(self.federation.bounds[:, first : first + 2], self.W, strict=True)
        margins = [self.margins[a:b] @ w for (a, b), w in spans]
        return {
            "accuracy": np.array([np.mean(m > 0) if len(m) else np.nan for m in margins]),
            "loss": np.array([np.maximum(0, 1 - m).mean() if len(m) else np.nan for m in margins]),
        }


@dataclass(frozen=True, kw_only=True)
class Mocha:
    """W ← Σ B / λ by rounds of dual ascent, `outer` times, from Σ = I/K; between them Σ ← (W Wᵀ)^½ / tr (W Wᵀ)^½.

    In a round every device visits a `share` of its samples once. The ascent ends after `inner` rounds, or where the
    duality gap (P − D)/K ≤ `gap`; that rule is off where an attack rewrites updates, as the server's B is then no
    device's α. With `learn=False` Σ stays I/K: independent SVMs, (1/n_k) Σ hinge + λK/2 ‖w_k‖². `bias` is a constant
    feature, regularised like the others; MOCHA's authors have none, but the models that it is compared with do.

    >>> data = {k: ([[1.0], [-2.0]], [1, -1]) for k in "ab"}
    >>> Mocha(lam=0.1).fit(Federation.from_parts(train=data, test=data)).evaluate().summary("mocha").mean
    1.0
    """

    lam: float
    outer: int = 10
    inner: int = 100
    share: float = 0.5
    gap: float = 1e-4
    learn: bool = True
    bias: bool = True

    def __post_init__(self) -> None:
        positive("Mocha", "lam", self.lam)
        whole("Mocha", "outer", self.outer, 1)
        whole("Mocha", "inner", self.inner, 1)
        nonnegative("Mocha", "gap", self.gap)
        proper = finite(self.share) and 0 < self.share <= 1
        require(proper, f"Mocha needs 0 < share ≤ 1, got share={short(self.share)}")
        flag("Mocha", "learn", self.learn)
        flag("Mocha", "bias", self.bias)

    def fit(self, federation: Federation, *, attack: Attack | None = None, seed: int = 0) -> Related:
        """Trains on the federation's train parts; all devices take part in every round."""
        require(
            attack is None or an_instance(attack, Attack),
            f"attack must be one such as A1(ratio=.2), got {short(attack)}",
        )
        require(
            attack is None or attack.backdoor is None, "Mocha plants no backdoor: use an attack on labels or updates"
        )
        x, seed = self._features(federation), as_seed(seed)
        who = np.zeros(federation.K, np.bool_) if attack is None else attack.malicious(federation.K, seed)
        y = federation.y if attack is None else attack.labels(federation, who, Signs(), seed)
        margins = y.reshape(-1, 1).double().numpy() * x
        run = Ascent(self, federation, margins, attack, seed)
        run.ascend()
        for _ in range(self.outer - 1 if self.learn else 0):
            run.relate()
            run.ascend()
        gaps = (*run.gaps, run.gap())
        return Related(run.W, run.relation, gaps, run.rounds, federation, margins, who)

    def _features(self, federation: Federation) -> Matrix:
        require(isinstance(federation, Federation), f"Mocha fits a Federation, got {short(federation)}")
        x, y = federation.x, federation.y
        require(
            isinstance(x, Tensor) and x.dim() == 2,
            f"Mocha needs x [N, d], features as numbers, got {tuple(x.shape) if isinstance(x, Tensor) else type(x)}",
        )
        require(
            y.numel() == len(y) and bool(Signs().legal(y).all()),
            "Mocha needs y in {−1, +1}, one a sample: give it two classes as signs",
        )
        features: Matrix = x.double().numpy()  # type: ignore[union-attr]
        return np.column_stack([features, np.ones(len(features))]) if self.bias else features
