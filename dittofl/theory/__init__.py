"""The paper's analysis as code: which λ is best, how large the error is at every λ, and how fast v_k converges.

`point` and `orthogonal` hold the closed forms (Li et al. 2021, Section 4 and appendix), `regression` the exact error
for any inputs, `simulation` checks both by drawing, `convergence` runs Algorithm 1 on quadratics, `figures` draws.
"""

from dittofl.theory import bayes, convergence, figures, orthogonal, point, regression, search, simulation, steps
from dittofl.theory.orthogonal import Orthogonal
from dittofl.theory.point import Point
from dittofl.theory.regression import Regression

__all__ = [
    "Orthogonal",
    "Point",
    "Regression",
    "bayes",
    "convergence",
    "figures",
    "orthogonal",
    "point",
    "regression",
    "search",
    "simulation",
    "steps",
]
