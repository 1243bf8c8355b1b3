"""Convolutional networks."""

from torch import nn


def fashion_cnn() -> nn.Module:
    """The CNN of Li et al. 2021 for Fashion-MNIST: 3,274,634 parameters, Glorot-uniform kernels, zero biases.

    >>> sum(parameter.numel() for parameter in fashion_cnn().parameters())
    3274634
    """
    return glorot(
        nn.Sequential(
            nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10),
        )
    )  # fmt: skip


def glorot(net: nn.Module) -> nn.Module:
    """The initialisation of the authors' programs: U(±√(6 / (fan in + fan out))) for kernels, 0 for biases."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return net
