"""Servers: what is done with the aggregated update."""

from dittofl.server.add import Add
from dittofl.server.clusters import Clusters
from dittofl.server.share import Share

__all__ = ["Add", "Clusters", "Share"]
