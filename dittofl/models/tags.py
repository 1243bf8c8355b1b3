"""Logistic regression on bags of words, which are never made dense."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dittofl.errors import whole


class Bag(nn.Module):
    """(ids [n, L], weights [n, L]) ↦ Σ_l weights_l W[ids_l] + b: x Wᵀ + b of the sparse x that ids and weights list.

    An id equal to the number of words is no word: sentences are padded with it.
    """

    def __init__(self, words: int, tags: int) -> None:
        nn.Module.__init__(self)
        # A row a word, so that a sentence reads and its gradient writes whole rows.
        self.weight = nn.Parameter(torch.empty(words, tags))
        self.bias = nn.Parameter(torch.empty(tags))
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -(words**-0.5), words**-0.5)

    def forward(self, ids: Tensor, weights: Tensor) -> Tensor:
        padded = ids == len(self.weight)
        rows = F.embedding(ids.masked_fill(padded, 0), self.weight)
        scores: Tensor = (weights.masked_fill(padded, 0).unsqueeze(-2) @ rows).squeeze(-2) + self.bias
        return scores


def tag_regression(*, words: int = 10_000, tags: int = 500) -> nn.Module:
    """softmax(x Wᵀ + b) over tags from sparse x, for StackOverflow, begun like `nn.Linear`: P = 5,000,500.

    x is (ids [n, L], weights [n, L]), as the authors' program reads it word frequencies; see `Bag`.

    >>> model = tag_regression(words=3, tags=2)
    >>> model(torch.tensor([[0, 2, 3]]), torch.tensor([[0.5, 0.5, 1.0]])).shape
    torch.Size([1, 2])
    """
    whole("tag_regression", "words", words, 1)
    whole("tag_regression", "tags", tags, 2)
    return Bag(words, tags)
