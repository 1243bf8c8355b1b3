"""Solvers: what one model does during a visit, on one device."""

from dittofl.solver.choose import Choose, LambdaRule, lambda_rule
from dittofl.solver.ditto import Ditto
from dittofl.solver.local import Local
from dittofl.solver.prox import Prox
from dittofl.solver.sgd import SGD

__all__ = ["SGD", "Choose", "Ditto", "LambdaRule", "Local", "Prox", "lambda_rule"]
