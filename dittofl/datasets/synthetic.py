"""Synthetic(α, β): classification whose models and inputs differ between devices by as much as one says."""

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl.errors import nonnegative, whole
from dittofl.federation import PAPER, Federation, Split
from dittofl.seeds import Purpose, generator

FEATURES, CLASSES = 60, 10
Array = NDArray[np.float64]


def synthetic(
    *, alpha: float = 1.0, beta: float = 1.0, devices: int = 30, split: Split = PAPER, seed: int = 0
) -> Federation:
    """y = argmax(W_k x + b_k), W_k and b_k ~ N(u_k, 1), u_k ~ N(0, α); x ~ N(v_k, Σ), v_k ~ N(B_k, 1), B_k ~ N(0, β).

    W_k is [10, 60], Σ diagonal with Σ_jj = j^−1.2, and n_k = ⌊exp N(4, 4)⌋ + 50 (Li et al. 2020, FedProx, Section 5.1).
    N(m, s) has variance s; that paper's program takes α and β, which are 0, ½ or 1 there, as standard deviations.
    β sets how much inputs differ. α, meant for the models, changes no label, as u_k moves the scores of all classes
    alike: models differ by their own N(0, 1) at any α. A device's samples depend on the seed and its number alone.

    >>> synthetic(alpha=0.5, beta=0.5, devices=3).K
    3
    """
    nonnegative("synthetic", "alpha", alpha)
    nonnegative("synthetic", "beta", beta)
    whole("synthetic", "devices", devices, 1)
    data = {f"device {k}": _device(alpha, beta, generator(seed, Purpose.SAMPLES, k)) for k in range(devices)}
    return Federation.of(data, split=split, seed=seed)


def _device(alpha: float, beta: float, draws: torch.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    def normal(*shape: int) -> Array:
        return np.asarray(torch.randn(shape, generator=draws, dtype=torch.float64).numpy())

    n = int(np.exp(4 + 2 * normal(1)[0])) + 50
    u, b = np.sqrt([alpha, beta]) * normal(2)
    W, bias = u + normal(CLASSES, FEATURES), u + normal(CLASSES)
    v = b + normal(FEATURES)
    x = v + normal(n, FEATURES) * np.arange(1, FEATURES + 1) ** -0.6
    return x.astype(np.float32), (x @ W.T + bias).argmax(1)
