"""Attacks: on the data before training, and on what is sent."""

from dittofl.attack.attack import A1, A2, A3, Attack
from dittofl.attack.updates import Gaussian, Replace

__all__ = ["A1", "A2", "A3", "Attack", "Gaussian", "Replace"]
