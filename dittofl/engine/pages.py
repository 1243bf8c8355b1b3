"""Memory that is kept: a row of 13 MB mapped afresh for each step costs a fifth of the step in page faults.

The C library hands blocks above 32 MB, and at first those above 128 KB, back to the system when they are freed, and
the next step has the kernel clear new pages. Told to keep them (glibc alone can be), it uses the same pages again.
"""

import ctypes
import platform
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT = 2**30  # bytes


@cache
def keep_pages() -> bool:
    """Whether freed blocks up to a gigabyte stay with this process from now on."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_THRESHOLD, KEPT) and mallopt(M_TRIM_THRESHOLD, KEPT))
