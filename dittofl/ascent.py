"""Rounds of dual ascent on linear SVMs, on the devices and on the server.

With z_i = y_i x_i, u = w_k + (q_k/λ) Δb_k and q_k = Σ_l |Σ_kl| a device maximises its part of the dual in α_i alone:

    α_i ← clip(α_i + (1 − z_iᵀ u) n_k λ / (q_k ‖z_i‖²), 0, 1)

As tr(ΔBᵀ Σ ΔB) ≤ Σ_k q_k ‖Δb_k‖², the sum of all devices' steps never lowers D (Smith et al. 2017, σ′).
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl.attack import Attack
from dittofl.federation import Federation
from dittofl.seeds import Purpose, keys
from dittofl.types import Ints, Report

if TYPE_CHECKING:
    from dittofl.mocha import Mocha

Matrix = NDArray[np.float64]


class Ascent:
    """α, B and Σ of a fit."""

    def __init__(self, how: "Mocha", federation: Federation, samples: Matrix, attack: Attack | None, seed: int) -> None:
        self.how, self.federation, self.attack, self.seed = how, federation, attack, seed
        self.malicious = np.zeros(federation.K, np.bool_) if attack is None else attack.malicious(federation.K, seed)
        self.z = [samples[a:b] for a, b in federation.bounds[:, :2]]
        self.squares = [(z**2).sum(1) for z in self.z]
        self.alpha = [np.zeros(len(z)) for z in self.z]
        self.B = np.zeros((federation.K, samples.shape[1]))
        self.relation = np.eye(federation.K) / federation.K
        self.rounds, self.gaps = 0, list[float]()

    @property
    def W(self) -> Matrix:
        return self.relation @ self.B / self.how.lam

    def gap(self) -> float:
        """(P − D) / K, 0 at the optimum for this Σ."""
        W = self.W
        hinges = [np.maximum(0, 1 - z @ w).mean() for z, w in zip(self.z, W, strict=True)]
        duals = [alpha.mean() for alpha in self.alpha]
        return float((np.sum(hinges) - np.sum(duals) + (self.B * W).sum()) / len(W))

    def ascend(self) -> None:
        """Rounds until the gap is closed, or as many as allowed."""
        forged = self.attack is not None and self.attack.update is not None and self.malicious.any()
        for _ in range(self.how.inner):
            self.gaps.append(self.gap())
            if self.gaps[-1] <= self.how.gap and not forged:
                return
            W, curvature = self.W, np.abs(self.relation).sum(1) / self.how.lam
            delta = np.stack([self._device(k, w, c) for k, (w, c) in enumerate(zip(W, curvature, strict=True))])
            self.B += self._received(delta)
            self.rounds += 1

    def relate(self) -> None:
        """Σ ← (W Wᵀ)^½ / tr (W Wᵀ)^½; it stays where all models are 0."""
        values, vectors = np.linalg.eigh(self.W @ self.W.T)
        root = np.sqrt(np.maximum(values, 0))
        if root.sum() > 0:
            self.relation = (vectors * (root / root.sum())) @ vectors.T

    def _device(self, k: int, w: Matrix, curvature: float) -> Matrix:
        """Δb_k of one round on device k."""
        z, square, alpha, n = self.z[k], self.squares[k], self.alpha[k], len(self.z[k])
        before, u = alpha.copy(), w.copy()
        for i in self._order(k, n):
            if (steep := curvature * square[i]) > 0:
                old = alpha[i]
                alpha[i] = min(max(old + (1 - z[i] @ u) * n / steep, 0.0), 1.0)
                u += (alpha[i] - old) * curvature / n * z[i]
        change: Matrix = (alpha - before) @ z / n
        return change

    def _order(self, k: int, n: int) -> Ints:
        """The samples that device k visits in this round."""
        drawn = keys(self.seed, Purpose.DUAL, self.federation.tags[k], self.rounds, np.arange(n))
        return np.argsort(drawn)[: max(1, int(self.how.share * n))]

    def _received(self, delta: Matrix) -> Matrix:
        """What the server gets, after the attack; a row that is not finite counts for nothing."""
        if self.attack is None:
            return delta
        size = torch.from_numpy(self.federation.sizes("train"))
        report = self.attack.rewrite(
            Report(torch.from_numpy(delta), size), torch.from_numpy(self.malicious), self.federation.tags, self.rounds,
            self.seed,
        )  # fmt: skip
        sent: Matrix = report.delta.numpy()
        return np.where(np.isfinite(sent).all(1, keepdims=True), sent, 0.0)
