"""Linear models and perceptrons."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from dittofl.errors import require, short, whole


def linear(*, inputs: int, outputs: int = 1, bias: bool = True, zero: bool = False) -> nn.Module:
    """x ↦ W x + b: logistic and linear regression, support vector machines.

    With `zero` it starts at 0, as the paper's linear SVM does.

    >>> linear(inputs=3, zero=True).weight.abs().sum().item()
    0.0
    """
    whole("linear", "inputs", inputs, 1)
    whole("linear", "outputs", outputs, 1)
    module = nn.Linear(inputs, outputs, bias)
    if zero:
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
    return module


def mlp(*, inputs: int, outputs: int, hidden: Sequence[int] = (64,)) -> nn.Module:
    """x ↦ W_L relu(… relu(W_1 x + b_1) …) + b_L, on inputs flattened to `inputs` numbers.

    >>> mlp(inputs=4, outputs=2, hidden=(3,))[1]
    Linear(in_features=4, out_features=3, bias=True)
    """
    require(
        isinstance(hidden, list | tuple), f"mlp needs hidden=[…], the widths of its layers, got hidden={short(hidden)}"
    )
    widths = [inputs, *hidden, outputs]
    for width in widths:
        whole("mlp", "each width", width, 1)
    layers: list[nn.Module] = [nn.Flatten()]
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
