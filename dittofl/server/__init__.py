"""Servers: what is done with the aggregated update."""

from dittofl.server.add import Add

__all__ = ["Add"]
