"""Personalised, fair and robust federated learning around Ditto (Li, Hu, Beirami, Smith, ICML 2021)."""

from dittofl.aggregate import Mean, mean
from dittofl.attack import A1, A2, A3, Attack, Gaussian, Replace
from dittofl.engine import Auto, Loop, Vmap
from dittofl.errors import InputError
from dittofl.evaluate import Evaluation
from dittofl.federate import federate
from dittofl.federated import Federated
from dittofl.federation import Federation, Split
from dittofl.losses import hinge
from dittofl.method import Method
from dittofl.metrics import Summary
from dittofl.mocha import Mocha, Related
from dittofl.optimiser import Adam, ClipNorm, Decay, Momentum
from dittofl.personalise import personalise
from dittofl.sampling import BySize, Uniform
from dittofl.schedule import Cosine, Geometric, Inverse
from dittofl.server import Add, Clusters, Share
from dittofl.solver import (
    APFL,
    EWC,
    IFCA,
    L2SGD,
    SGD,
    SKL,
    Choose,
    Ditto,
    Greedy,
    Local,
    Mapper,
    Optimal,
    Partial,
    PerFedAvg,
    PFedMe,
    Prox,
    finetune,
    lambda_rule,
)
from dittofl.target import Binary, Classes, Real, Signs
from dittofl.task import Metric, Task
from dittofl.types import Ask, Down, Epochs, On, Report, Sent
from dittofl.variances import estimate

__version__ = "0.1.0"

__all__ = [
    "A1",
    "A2",
    "A3",
    "APFL",
    "EWC",
    "IFCA",
    "L2SGD",
    "SGD",
    "SKL",
    "Adam",
    "Add",
    "Ask",
    "Attack",
    "Auto",
    "Binary",
    "BySize",
    "Choose",
    "Classes",
    "ClipNorm",
    "Clusters",
    "Cosine",
    "Decay",
    "Ditto",
    "Down",
    "Epochs",
    "Evaluation",
    "Federated",
    "Federation",
    "Gaussian",
    "Geometric",
    "Greedy",
    "InputError",
    "Inverse",
    "Local",
    "Loop",
    "Mapper",
    "Mean",
    "Method",
    "Metric",
    "Mocha",
    "Momentum",
    "On",
    "Optimal",
    "PFedMe",
    "Partial",
    "PerFedAvg",
    "Prox",
    "Real",
    "Related",
    "Replace",
    "Report",
    "Sent",
    "Share",
    "Signs",
    "Split",
    "Summary",
    "Task",
    "Uniform",
    "Vmap",
    "estimate",
    "federate",
    "finetune",
    "hinge",
    "lambda_rule",
    "mean",
    "personalise",
]  # fmt: skip
