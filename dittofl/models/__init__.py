"""Models to begin with, and the paper's own: small modules under names that specs know."""

from dittofl.models.cnn import celeba_cnn, fashion_cnn, femnist_cnn
from dittofl.models.dense import linear, mlp
from dittofl.models.tags import tag_regression

__all__ = ["celeba_cnn", "fashion_cnn", "femnist_cnn", "linear", "mlp", "tag_regression"]
