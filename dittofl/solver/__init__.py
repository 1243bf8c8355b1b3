"""Solvers: what one model does during a visit, on one device."""

from dittofl.solver.apfl import APFL
from dittofl.solver.choose import Choose, LambdaRule, lambda_rule
from dittofl.solver.ditto import Ditto
from dittofl.solver.ewc import EWC
from dittofl.solver.finetune import finetune
from dittofl.solver.greedy import Greedy
from dittofl.solver.ifca import IFCA
from dittofl.solver.l2sgd import L2SGD
from dittofl.solver.local import Local
from dittofl.solver.mapper import Mapper
from dittofl.solver.optimal import Optimal
from dittofl.solver.partial import Partial
from dittofl.solver.perfedavg import PerFedAvg
from dittofl.solver.pfedme import PFedMe
from dittofl.solver.prox import Prox
from dittofl.solver.rsa import RSA
from dittofl.solver.scaffold import Scaffold
from dittofl.solver.sgd import SGD
from dittofl.solver.skl import SKL

__all__ = [
    "APFL",
    "EWC",
    "IFCA",
    "L2SGD",
    "RSA",
    "SGD",
    "SKL",
    "Choose",
    "Ditto",
    "Greedy",
    "LambdaRule",
    "Local",
    "Mapper",
    "Optimal",
    "PFedMe",
    "Partial",
    "PerFedAvg",
    "Prox",
    "Scaffold",
    "finetune",
    "lambda_rule",
]
