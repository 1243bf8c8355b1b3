"""Servers: what is done with the aggregated update."""

from dittofl.server.adaptive import FedAdagrad, FedAdam, FedYogi
from dittofl.server.add import Add
from dittofl.server.clusters import Clusters
from dittofl.server.control import Control
from dittofl.server.momentum import FedAvgM
from dittofl.server.share import Share
from dittofl.server.votes import Votes

__all__ = ["Add", "Clusters", "Control", "FedAdagrad", "FedAdam", "FedAvgM", "FedYogi", "Share", "Votes"]
