"""Models to begin with: small modules under names that specs know."""

from dittofl.models.cnn import fashion_cnn
from dittofl.models.dense import linear, mlp

__all__ = ["fashion_cnn", "linear", "mlp"]
