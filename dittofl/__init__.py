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
from dittofl.optimiser import Adam, ClipNorm, Decay, Momentum
from dittofl.personalise import personalise
from dittofl.sampling import BySize, Uniform
from dittofl.schedule import Cosine, Geometric, Inverse
from dittofl.server import Add
from dittofl.solver import SGD, Choose, Ditto, Local, Prox, lambda_rule
from dittofl.target import Binary, Classes, Real, Signs
from dittofl.task import Metric, Task
from dittofl.types import Ask, Down, Epochs, On, Report, Sent

__version__ = "0.1.0"

__all__ = [
    "A1",
    "A2",
    "A3",
    "ALIE",
    "IPM",
    "SGD",
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
    "InputError",
    "Inverse",
    "Local",
    "Loop",
    "Mean",
    "Method",
    "Metric",
    "MinMax",
    "MinSum",
    "Mirror",
    "ModelReplacement",
    "Momentum",
    "On",
    "Patch",
    "Prox",
    "Real",
    "Relabel",
    "Replace",
    "Report",
    "Send",
    "Sent",
    "SignFlip",
    "Signs",
    "Split",
    "Summary",
    "Task",
    "Uniform",
    "Vmap",
    "federate",
    "hinge",
    "lambda_rule",
    "mean",
    "personalise",
]  # fmt: skip
