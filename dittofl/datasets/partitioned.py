"""Any labelled data, dealt out to devices by a rule."""

from typing import Any

import torch

from dittofl.datasets.partition import LEAST, ByColumn, Partitioner
from dittofl.errors import an_instance, blamed, require, short
from dittofl.federation import PAPER, Federation, Split
from dittofl.inputs import Inputs, each
from dittofl.intake import join, piece


def partitioned(*, of: Any, by: Partitioner, split: Split = PAPER, seed: int = 0) -> Federation:
    """The pooled samples of any data, dealt out to devices by a rule, then split on each device.

    `of` is a federation, whose devices and parts are forgotten, a pair (x, y), or a torch dataset; `by` is `Dirichlet`,
    `ByClass`, `PowerLaw`, `ByColumn`, or a function of x, y and a seed that gives {id: samples}.

    >>> from dittofl.datasets.partition import Dirichlet
    >>> x, y = torch.randn(200, 4), torch.arange(200) % 5
    >>> partitioned(of=(x, y), by=Dirichlet(alpha=0.3, devices=10)).K
    10
    """
    x, y = (of.x, of.y) if isinstance(of, Federation) else _pooled(of)
    require(an_instance(by, Partitioner), f"by must be a rule such as Dirichlet(alpha=…, devices=…), got {short(by)}")
    with blamed("the rule", "x, y and the seed"):
        dealt = {id: torch.as_tensor(samples) for id, samples in by(x, y, seed).items()}
    for id, samples in dealt.items():
        numbers = samples.dim() == 1 and bool(((samples >= 0) & (samples < len(y))).all())
        numbers = numbers and (not samples.is_floating_point() or not len(samples))
        require(numbers, f"{short(by)} gives {id!r} {short(samples)}, expected numbers of samples, 0 … {len(y) - 1}")
        few = f"{short(by)} gives {id!r} {len(samples)} of the {LEAST} samples that a device needs"
        require(len(samples) >= LEAST, f"{few}: choose fewer devices, or another rule")
    if isinstance(by, ByColumn):
        _, x = by.apart(x)

    def mine(samples: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
        return each(x, lambda part: part[samples]), y[samples]

    return Federation.of(((id, mine(samples)) for id, samples in dealt.items()), split=split, seed=seed)


def _pooled(of: Any) -> tuple[Inputs, torch.Tensor]:
    one = piece("the pooled data", of)
    return join([one], [slice(None)])
