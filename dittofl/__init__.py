"""Personalised, fair and robust federated learning around Ditto (Li, Hu, Beirami, Smith, ICML 2021)."""

from dittofl.aggregate import (
    AFL,
    MGDA,
    QFFL,
    Bucketing,
    Bulyan,
    CentredClip,
    Clip,
    GeometricMedian,
    KLoss,
    KNorm,
    Krum,
    Mean,
    Median,
    MultiKrum,
    NearestNeighbourMixing,
    Stateless,
    Tilt,
    TrimmedMean,
    mean,
)
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
from dittofl.server import Add, Clusters, Control, FedAdagrad, FedAdam, FedAvgM, FedYogi, Share, Votes
from dittofl.solver import (
    APFL,
    EWC,
    IFCA,
    L2SGD,
    RSA,
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
    Scaffold,
    finetune,
    lambda_rule,
)
from dittofl.target import Binary, Classes, Real, Signs
from dittofl.task import Metric, Task
from dittofl.types import Ask, Down, Epochs, On, Report, Sent
from dittofl.variances import estimate

__version__ = "0.1.0"

__all__ = [
    "A1", "A2", "A3", "AFL", "ALIE", "APFL", "EWC", "IFCA", "IPM", "L2SGD", "MGDA", "QFFL", "RSA", "SGD", "SKL",
    "Adam", "Add", "Along", "Ask", "Attack", "Auto", "Backdoor", "Binary", "Bucketing", "Bulyan", "BySize",
    "CentredClip", "Choose", "Classes", "Clip", "ClipNorm", "Clusters", "Control", "Cosine", "Decay", "Ditto",
    "Down", "EdgeCase", "Epochs", "Evaluation", "FangKrum", "FangTrimmedMean", "Features", "FedAdagrad", "FedAdam",
    "FedAvgM", "FedYogi", "Federated", "Federation", "Forge", "Gaussian", "Geometric", "GeometricMedian", "Greedy",
    "InputError", "Inverse", "KLoss", "KNorm", "Krum", "Local", "Loop", "Mapper", "Mean", "Median", "Method",
    "Metric", "MinMax", "MinSum", "Mirror", "Mocha", "ModelReplacement", "Momentum", "MultiKrum",
    "NearestNeighbourMixing", "On", "Optimal", "PFedMe", "Partial", "Patch", "PerFedAvg", "Prox", "Real", "Relabel",
    "Related", "Replace", "Report", "Scaffold", "Send", "Sent", "Share", "SignFlip", "Signs", "Split", "Stateless",
    "Summary", "Task", "Tilt", "TrimmedMean", "Uniform", "Vmap", "Votes", "estimate", "federate", "finetune",
    "hinge", "lambda_rule", "mean", "personalise",
]  # fmt: skip
