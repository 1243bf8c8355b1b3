"""The paper's convolutional networks. All of them begin as its programs do: Glorot-uniform kernels, zero biases."""

from collections.abc import Iterator

from torch import nn

from dittofl.errors import whole


def fashion_cnn() -> nn.Module:
    """conv 5×5×32 – conv 5×5×64 – 1024 – 10 of Li et al. 2021 for Fashion-MNIST, images [1, 28, 28]: P = 3,274,634.

    >>> sum(parameter.numel() for parameter in fashion_cnn().parameters())
    3274634
    """
    return glorot(nn.Sequential(*_pooled(1, 32), *_pooled(32, 64), *_dense(3136, 1024), nn.Linear(1024, 10)))


def femnist_cnn(*, classes: int = 62) -> nn.Module:
    """conv 5×5×16 – conv 5×5×32 – 128 – classes of Li et al. 2021 for FEMNIST, images [1, 28, 28]: P = 222,078.

    A quarter is dropped behind the convolutions and half behind the dense layer. The authors' program drops at
    evaluation too; here an evaluation draws nothing.

    >>> sum(parameter.numel() for parameter in femnist_cnn().parameters())
    222078
    """
    whole("femnist_cnn", "classes", classes, 2)
    body = (*_pooled(1, 16), *_pooled(16, 32), nn.Dropout(0.25))
    return glorot(nn.Sequential(*body, *_dense(1568, 128), nn.Dropout(0.5), nn.Linear(128, classes)))


def celeba_cnn() -> nn.Module:
    """Four times conv 3×3×32, batch norm, maxpool, relu, then 2 outputs, for CelebA, images [3, 84, 84]: P = 31,202.

    LEAF's network (Caldas et al. 2018) on raw pixels 0 … 255. Batch norm always takes the statistics of its batch, at
    evaluation those of the device's whole part, and keeps none.

    >>> sum(parameter.numel() for parameter in celeba_cnn().parameters())
    31202
    """
    layers: list[nn.Module] = []
    for channels in (3, 32, 32, 32):
        layers += [
            nn.Conv2d(channels, 32, 3, padding="same"),
            nn.BatchNorm2d(32, eps=1e-3, track_running_stats=False),  # TensorFlow's ε
            nn.MaxPool2d(2, ceil_mode=True),  # an odd side is padded at its end: 84 – 42 – 21 – 11 – 6
            nn.ReLU(),
        ]
    return glorot(nn.Sequential(*layers, nn.Flatten(), nn.Linear(1152, 2)))


def glorot(net: nn.Module) -> nn.Module:
    """The initialisation of the authors' programs: U(±√(6 / (fan in + fan out))) for kernels, 0 for biases."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return net


def _pooled(inputs: int, outputs: int) -> Iterator[nn.Module]:
    yield from (nn.Conv2d(inputs, outputs, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2))


def _dense(inputs: int, outputs: int) -> Iterator[nn.Module]:
    yield from (nn.Flatten(), nn.Linear(inputs, outputs), nn.ReLU())
