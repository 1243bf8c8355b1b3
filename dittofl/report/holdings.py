"""Which classes the devices of a federation hold, and how much of them."""

import numpy as np

from dittofl.federation import PARTS, Federation
from dittofl.types import Ints

MANY = 2000  # distinct whole numbers beyond which y counts something, and names no class


def classes(federation: Federation) -> Ints:
    """The classes in order; none where y is real or holds several numbers a sample.

    >>> from dittofl.datasets import digits
    >>> classes(digits()).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if federation.y.is_floating_point() or federation.y.dim() != 1:
        return np.zeros(0, dtype=np.int64)
    found = np.unique(federation.y.numpy())
    return found if len(found) <= MANY else found[:0]


def holdings(federation: Federation, among: Ints) -> Ints:
    """How many samples of each class every device has in each part, [K, 3, C]."""
    slot = np.repeat(np.arange(3 * federation.K), np.diff(federation.bounds, axis=1).ravel())
    place = np.searchsorted(among, federation.y.numpy())
    n = np.bincount(slot * len(among) + place, minlength=3 * federation.K * len(among))
    return n.reshape(federation.K, len(PARTS), len(among))
