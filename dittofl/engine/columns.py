"""Convolutions with weights of their own for each model, as one batched matrix product.

    y[o, (b, h, w)] = Σ_{c,i,j} W[o, (c, i, j)] · x̄[c, (b, s h + d i, s w + d j)],    x̄ the padded input

`vmap` over weights turns a convolution into a grouped one, which cuDNN runs group after group (on an H200, 50 models of
the authors' Fashion CNN: 8 ms a step, against about 1 ms as columns). The columns are written as shifted copies, so
that a compiler fuses their backward pass into a gather without atomics. Run uncompiled they would be slower than what
they replace.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LARGEST = 49  # kernel positions up to which slices are written out


class Columns(nn.Module):
    """A 2-d convolution that holds the parameters of another and computes the same."""

    def __init__(self, conv: nn.Conv2d) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = conv.weight, conv.bias
        self.stride, self.dilation, self.kernel = conv.stride, conv.dilation, conv.kernel_size
        # (left, right, top, bottom), also for padding="same".
        self.padding = tuple(conv._reversed_padding_repeated_twice)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        (left, right, top, bottom), (s, z), (d, e) = self.padding, self.stride, self.dilation
        tall, broad = x.shape[2:]
        high = (top + tall + bottom - d * (self.kernel[0] - 1) - 1) // s + 1
        wide = (left + broad + right - e * (self.kernel[1] - 1) - 1) // z + 1

        def seen(i: int, j: int) -> Tensor:
            """What position (i, j) of the kernel sees: x shifted, cut and filled up with zeros at once."""
            down, across = i * d - top, j * e - left
            ends = down + s * (high - 1) + 1 - tall, across + z * (wide - 1) + 1 - broad
            return F.pad(x, (-across, ends[1], -down, ends[0]))[:, :, ::s, ::z]

        columns = torch.stack([seen(i, j) for i in range(self.kernel[0]) for j in range(self.kernel[1])], 1)
        y = self.weight.flatten(1) @ columns.reshape(self.weight[0].numel(), -1)
        y = y.view(-1, x.shape[1], high, wide).transpose(0, 1)
        return y if self.bias is None else y + self.bias[:, None, None]


def fits(layer: nn.Module) -> bool:
    """Whether a layer is a convolution that columns replace."""
    return (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and layer.kernel_size[0] * layer.kernel_size[1] <= LARGEST
    )


def columned(module: nn.Module) -> nn.Module:
    """A module with the same parameters whose convolutions are columns.

    >>> conv = nn.Conv2d(2, 3, 3, stride=2, padding=1)
    >>> x = torch.randn(4, 2, 7, 7, generator=torch.Generator().manual_seed(0))
    >>> torch.allclose(columned(conv)(x), conv(x), atol=1e-5)
    True
    """
    if fits(module):
        return Columns(module)  # type: ignore[arg-type]
    module = copy.copy(module)
    module._modules = {name: child if child is None else columned(child) for name, child in module._modules.items()}
    return module
