"""One array of numbers that a user gave, as a dense tensor whose values are numbers indeed."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dittofl.errors import InputError, require

INTS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)
FLOATS = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float32) | {torch.float64: torch.float64}
# The dtype in which a federation holds a member that came in another, by the first letter of its name.
HELD = {
    "x": FLOATS | dict.fromkeys(INTS, torch.int64) | {torch.bool: torch.float32, torch.uint8: torch.uint8},
    "y": FLOATS | dict.fromkeys((*INTS, torch.bool, torch.uint8), torch.int64),
}


def tensor(name: str, what: str, given: Any) -> Tensor:
    """One array of numbers as a dense tensor on the CPU, which shares the user's memory where it can."""
    try:
        found = given.detach().cpu() if isinstance(given, Tensor) and not given.is_nested else array(given)
    except (TypeError, ValueError, RuntimeError):
        want = "expected samples of one shape: pad them or use one dense array"
        raise InputError(f"{name}: {what} is a {type(given).__name__} that makes no array, {want}") from None
    if isinstance(found, np.ndarray) and found.dtype.kind in "biuf" and found.dtype.itemsize <= 8:
        # torch shares memory only with writable arrays of native byte order and no negative strides.
        fit = found.flags.carray and found.dtype.isnative
        found = torch.from_numpy(found if fit else np.array(found, found.dtype.newbyteorder("="), order="C"))
    if not isinstance(found, Tensor) or found.layout != torch.strided or found.dtype not in HELD[what[0]]:
        do = "encode labels as integers 0..C-1" if what == "y" else "convert it to a float, uint8 or int64 array"
        raise InputError(f"{name}: {what} is of dtype {found.dtype}, expected a dense array of real numbers: {do}")
    require(found.ndim, f"{name}: {what} is a scalar, expected one entry a sample: give an array or a list of numbers")
    return found


def array(given: Any) -> Tensor | np.ndarray[Any, Any]:
    """numpy's reading of a value; but tensors in a list are stacked, and Python's floats get torch's default dtype."""
    first = given
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, Tensor):
        return torch.stack([torch.as_tensor(each).detach().cpu() for each in given])
    found = np.asarray(given.filled(np.nan) if isinstance(given, np.ma.MaskedArray) else given)
    if type(first) in (bool, int, float) and found.dtype == np.float64:
        return torch.from_numpy(found).to(torch.get_default_dtype())
    return found


def check_values(name: str, what: str, values: Tensor) -> None:
    """No NaN, no infinity, and no integer beyond int64."""
    floats, beyond = values.is_floating_point(), values.dtype == torch.uint64
    wrong = ~values.isfinite() if floats else values.view(torch.int64) < 0 if beyond else None
    if wrong is not None and bool(wrong.any()):
        i = int(wrong.reshape(len(values), -1).any(1).nonzero()[0])
        bad = "2^63 or more" if beyond else "NaN" if bool(values[i].isnan().any()) else "Inf"
        raise InputError(f"{name}: {what} holds {bad} at sample {i}, expected finite numbers: fill it in or drop it")
