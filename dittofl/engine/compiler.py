"""What is compiled, and whether torch.compile has what it needs here, asked before a round fails for the want of it."""

import importlib.util
import logging
import os
import shlex
import shutil
import sys
from functools import cache
from typing import Any

import torch

from dittofl.engine.lockstep import answer, walk
from dittofl.errors import require

log = logging.getLogger("dittofl")

PLUS = {"darwin": "clang++", "win32": "cl"}  # the C++ compiler where it is not g++


def compiles(wanted: bool | None, kind: str) -> bool:
    """Whether to compile for a device of a kind (None: on a GPU, where that is possible)."""
    if wanted is False or (wanted is None and kind != "cuda"):
        return False
    lacking = missing(kind)
    require(
        not (wanted and lacking),
        f"Vmap(compile=True) needs {lacking}, and finds none: install one, or leave out compile",
    )
    if lacking:
        log.warning("torch.compile needs %s, and finds none: running uncompiled, which is slower", lacking)
    return not lacking


def missing(kind: str) -> str:
    """What torch.compile lacks: on a GPU triton, and for both a compiler, by the names that torch and triton try."""
    if kind == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton"
    variable, names = ("CC", ("gcc", "clang", "cc")) if kind == "cuda" else ("CXX", (PLUS.get(sys.platform, "g++"),))
    own = shlex.split(os.environ.get(variable, ""))[:1]
    return "" if any(map(shutil.which, own or names)) else f"a {'C' if kind == 'cuda' else 'C++'} compiler"


# What a pooling layer gives, four reads, is written before a convolution reads it at every position of its kernel.
ON_GPU: dict[str, Any] = {"realize_reads_threshold": 3}


@cache
def compiled_walk(kind: str) -> Any:
    """`walk`, compiled as a whole; not held by an engine, so that a run can be pickled.

    On a GPU it is one replay of a graph of kernels: to launch those of a small cohort takes longer than to run them.
    """
    return torch.compile(walk, dynamic=False, options=ON_GPU | {"triton.cudagraphs": True} if kind == "cuda" else None)


@cache
def compiled_answer(kind: str) -> Any:
    """`answer`, compiled: what is worth compiling of a visit whose turns are many, or not as many for every cohort."""
    return torch.compile(answer, dynamic=False, options=ON_GPU if kind == "cuda" else None)
