"""A model and data of your own: change both, then `dittofl run spec.toml`."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Samples = tuple[NDArray[np.float64], NDArray[np.int64]]


class Net(nn.Module):
    """Any torch module: samples [n, 2] to scores [n, 2] of two classes."""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layers(x)
        return scores


def data(sites: int = 12, seed: int = 0) -> dict[str, Samples]:
    """{site: (x, y)}: here each site separates two classes along a direction of its own."""
    draws = np.random.default_rng(seed)
    its = {}
    for k in range(sites):
        x = draws.normal(size=(int(draws.integers(40, 120)), 2))
        angle = 2 * np.pi * k / sites / 3
        its[f"site {k}"] = x, (x @ [np.cos(angle), np.sin(angle)] > 0).astype(np.int64)
    return its
