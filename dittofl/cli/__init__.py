"""The command line: what users type, and one sentence for each of their mistakes."""

from dittofl.cli.main import answer, main

__all__ = ["answer", "main"]
