"""Aggregators: the cohort's matrix of updates to one.

A fair objective is a weighting, δ = Σ_k p_k c_k Δ_k. A defence bounds or drops rows and leaves the rest to `then`, or
puts a robust average in place of the weighted one, `by`. So any of them go together.
"""

from dittofl.aggregate.afl import AFL
from dittofl.aggregate.bulyan import Bulyan
from dittofl.aggregate.centred import CentredClip
from dittofl.aggregate.geometric import GeometricMedian
from dittofl.aggregate.kloss import KLoss
from dittofl.aggregate.krum import Krum, MultiKrum
from dittofl.aggregate.mean import Mean, Stateless, mean
from dittofl.aggregate.median import Median, TrimmedMean
from dittofl.aggregate.mgda import MGDA
from dittofl.aggregate.mixing import Bucketing, NearestNeighbourMixing
from dittofl.aggregate.norms import Clip, KNorm
from dittofl.aggregate.qffl import QFFL
from dittofl.aggregate.tilt import Tilt

__all__ = [
    "AFL",
    "MGDA",
    "QFFL",
    "Bucketing",
    "Bulyan",
    "CentredClip",
    "Clip",
    "GeometricMedian",
    "KLoss",
    "KNorm",
    "Krum",
    "Mean",
    "Median",
    "MultiKrum",
    "NearestNeighbourMixing",
    "Stateless",
    "Tilt",
    "TrimmedMean",
    "mean",
]
