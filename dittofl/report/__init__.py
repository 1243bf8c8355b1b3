"""What finished runs say: tables, comparisons, figures and one page."""

from dittofl.report.compare import Comparison, compare
from dittofl.report.conditions import Condition, conditions
from dittofl.report.results import Result, read
from dittofl.report.tables import Table, comparison, overview

__all__ = ["Comparison", "Condition", "Result", "Table", "compare", "comparison", "conditions", "overview", "read"]
