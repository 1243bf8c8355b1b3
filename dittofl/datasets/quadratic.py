"""The two estimation problems of the paper's theory as federations: train them with the loss `half_square`."""

import numpy as np

from dittofl.errors import whole
from dittofl.federation import Federation
from dittofl.seeds import Purpose, keys
from dittofl.theory.instance import drawn
from dittofl.theory.orthogonal import Orthogonal
from dittofl.theory.regression import Regression


def point_estimation(
    *, devices: int = 8, n: int = 30, sigma: float = 0.8, tau: float = 0.1, seed: int = 0
) -> Federation:
    """y_{k,i} ~ N(w_k, σ²), i ≤ n, w_k ~ N(0, τ²), and x = 1: F_k(w) = ½ (w − ȳ_k)² + a constant.

    Li et al. 2021, Section 4; by default the setting of its Figure 2, where λ* is 2.13 (`dittofl.theory.Point`). The
    test loss of a model v is its error (v − w_k)². The model is linear(inputs=1, bias=False, zero=True).

    >>> point_estimation(devices=3, n=5).sizes("train").tolist()
    [5, 5, 5]
    """
    whole("point_estimation", "n", n, 1)
    return drawn(Regression(X=[np.ones((n, 1))] * devices, sigma=sigma, tau=tau), _rng(seed)).federation()


def linear_regression(
    *, devices: int = 8, n: int = 30, d: int = 5, sigma: float = 0.8, tau: float = 0.1, beta: float | None = None,
    seed: int = 0,
) -> Federation:  # fmt: skip
    """y_k = X_k w_k + z_k, z_k ~ N(0, σ² I), w_k ~ N(0, τ² I), and X_kᵀX_k = β I (default: n I).

    Li et al. 2021, appendix "Federated Linear Regression"; λ* is that of `dittofl.theory.Orthogonal`. The test loss of
    a model v is its error ‖v − w_k‖². The model is linear(inputs=d, bias=False, zero=True).

    >>> linear_regression(devices=3, n=5, d=2).sizes("train").tolist()
    [5, 5, 5]
    """
    rng, beta = _rng(seed), float(n) if beta is None else beta
    its = Orthogonal(sigma=sigma, n=n, d=d, beta=beta, tau=tau, K=devices)
    return drawn(its.with_inputs(rng), rng).federation()


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(int(keys(seed, Purpose.SAMPLES)[0]))
