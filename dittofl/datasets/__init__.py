"""Data sets: functions of a seed and parameters that return a `Federation`."""

from dittofl.datasets.celeba import celeba
from dittofl.datasets.digits import digits
from dittofl.datasets.fashion import fashion, fashion_images
from dittofl.datasets.femnist import femnist
from dittofl.datasets.femnist_skewed import femnist_skewed
from dittofl.datasets.partitioned import partitioned
from dittofl.datasets.quadratic import linear_regression, point_estimation
from dittofl.datasets.stackoverflow import stackoverflow
from dittofl.datasets.synthetic import synthetic
from dittofl.datasets.vehicle import vehicle

__all__ = [
    "celeba",
    "digits",
    "fashion",
    "fashion_images",
    "femnist",
    "femnist_skewed",
    "linear_regression",
    "partitioned",
    "point_estimation",
    "stackoverflow",
    "synthetic",
    "vehicle",
]
