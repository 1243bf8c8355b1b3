"""Counter-based randomness: every draw is a pure function of (seed, purpose, counters).

    h₀ = mix(seed),   h_{i+1} = mix(h_i ⊕ mix(cᵢ + γ))        for c = purpose, then the counters

`mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), γ its increment. It is exact 64-bit integer
arithmetic, so no draw depends on engine, chunking, platform or on what was drawn before, and the global
generators of numpy and torch are never touched.
"""

import hashlib
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.uint64]

GAMMA = 0x9E3779B97F4A7C15
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS = (30, 27, 31)


class Purpose(IntEnum):
    """What a draw is for: one independent stream each."""

    ROUND = 1  # minibatches of a round, shared by w_k and every v_k
    FURTHER = 2  # minibatches that personal solvers take beyond the round's
    COHORT = 3
    MALICIOUS = 4
    LABELS = 5
    NOISE = 6
    SPLIT = 7
    DROPOUT = 8
    AUGMENT = 9
    CENTRES = 12  # the first models of clusters
    DUAL = 13  # coordinates of dual ascent
    PARTITION = 14  # which device gets which samples
    SAMPLES = 15  # of made data
    BUCKETS = 16  # reports averaged before a defence


def mix(z: Keys) -> Keys:
    """The finaliser of SplitMix64: a bijection of the 64-bit integers, wrapping by design."""
    z = (z ^ (z >> np.uint64(SHIFTS[0]))) * np.uint64(FACTORS[0])
    z = (z ^ (z >> np.uint64(SHIFTS[1]))) * np.uint64(FACTORS[1])
    return z ^ (z >> np.uint64(SHIFTS[2]))


def keys(seed: int, purpose: Purpose, *counters: ArrayLike) -> Keys:
    """One 64-bit key for every element of the broadcast counters.

    >>> keys(0, Purpose.NOISE, [7, 8]).shape
    (2,)
    >>> bool(keys(0, Purpose.NOISE, [7, 8])[1] == keys(0, Purpose.NOISE, 8)[0])
    True
    """
    h = mix(np.array([seed % 2**64], dtype=np.uint64))
    for counter in (int(purpose), *counters):
        h = extend(h, counter)
    return h


def extend(h: Keys, counter: ArrayLike) -> Keys:
    """Keys with one more counter: `extend(keys(s, p, a), b) == keys(s, p, a, b)`."""
    # At least 1-d, as numpy warns where a scalar wraps.
    return mix(h ^ mix(np.atleast_1d(counter).astype(np.uint64) + np.uint64(GAMMA)))


def uniforms(drawn: Keys) -> NDArray[np.float64]:
    """Keys as numbers of the open interval (0, 1), 53 bits each."""
    return ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def generator(seed: int, purpose: Purpose, *counters: ArrayLike, device: str | torch.device = "cpu") -> torch.Generator:
    """A torch generator of its own for these counters, to be used once."""
    # 63 bits, as torch reads the seed as a signed number.
    return torch.Generator(device).manual_seed(int(keys(seed, purpose, *counters)[0] >> np.uint64(1)))


def tag(device_id: object) -> int:
    """The 64-bit name of a device in the streams of its own: those depend on its id, not on its place in a list."""
    return int.from_bytes(hashlib.blake2b(str(device_id).encode(), digest_size=8).digest(), "little")
