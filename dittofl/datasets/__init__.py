"""Data sets: functions of a seed and parameters that return a `Federation`."""

from dittofl.datasets.digits import digits
from dittofl.datasets.fashion import fashion
from dittofl.datasets.femnist import femnist
from dittofl.datasets.vehicle import vehicle

__all__ = ["digits", "fashion", "femnist", "vehicle"]
