"""Personalised, fair and robust federated learning around Ditto (Li, Hu, Beirami, Smith, ICML 2021)."""

from dittofl.aggregate import Mean, mean
from dittofl.attack import (
    A1,
    A2,
    A3,
    ALIE,
    IPM,
    Along,
    Attack,
    Backdoor,
    EdgeCase,
    FangKrum,
    FangTrimmedMean,
    Features,
    Forge,
    Gaussian,
    MinMax,
    MinSum,
    Mirror,
    ModelReplacement,
    Patch,
    Relabel,
    Replace,
    Send,
    SignFlip,
)
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
    "ALIE",
    "APFL",
    "EWC",
    "IFCA",
    "IPM",
    "L2SGD",
    "SGD",
    "SKL",
    "Adam",
    "Add",
    "Along",
    "Ask",
    "Attack",
    "Auto",
    "Backdoor",
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
    "EdgeCase",
    "Epochs",
    "Evaluation",
    "FangKrum",
    "FangTrimmedMean",
    "Features",
    "Federated",
    "Federation",
    "Forge",
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
    "MinMax",
    "MinSum",
    "Mirror",
    "Mocha",
    "ModelReplacement",
    "Momentum",
    "On",
    "Optimal",
    "PFedMe",
    "Partial",
    "Patch",
    "PerFedAvg",
    "Prox",
    "Real",
    "Relabel",
    "Related",
    "Replace",
    "Report",
    "Send",
    "Sent",
    "Share",
    "SignFlip",
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
