"""What the authors' program drew, replayed by numpy's legacy generator: malicious devices and cohorts.

Both matter: two of Vehicle's devices hold half of its samples, and under attack w is another after every round.
"""

from dataclasses import dataclass

import numpy as np

from dittofl.types import Ints

MALICIOUS, ROUND = 1234567, 4  # what its seeds begin with


def malicious(K: int, count: int) -> tuple[int, ...]:
    """The first `count` of K devices in the order that the authors' seed 0 puts them.

    >>> malicious(23, 4)
    (1, 4, 8, 15)
    """
    order = np.random.RandomState(MALICIOUS).permutation(K)
    return tuple(sorted(order[:count].tolist()))


@dataclass(frozen=True)
class Replayed:
    """m devices, one after the other with probability ∝ n_k, drawn anew in round t from the seed t + 4.

    A seed of the run other than 0, which the authors' draw does not know, takes other draws.

    >>> Replayed()(0, 2, np.array([1, 10**9, 1]), seed=0).tolist()
    [1, 2]
    """

    def __call__(self, t: int, m: int, sizes: Ints, seed: int) -> Ints:
        state = np.random.RandomState(t + ROUND if seed == 0 else [t + ROUND, seed])
        drawn: Ints = state.choice(len(sizes), m, replace=False, p=sizes / sizes.sum())
        return drawn
