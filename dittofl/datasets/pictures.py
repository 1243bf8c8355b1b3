"""Pictures in files: PNG, JPEG."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import damaged, intact, package, whole

Bytes = NDArray[np.uint8]
BICUBIC = 3  # Pillow's number for it


def gray(where: str, raw: bytes, side: int) -> Bytes:
    """The pixels of a gray PNG of that side."""
    with whole(where), _opened(where, io.BytesIO(raw), "PNG") as image:
        got = f"{image.width} × {image.height} of mode {image.mode}"
        proper = image.mode == "L" and image.size == (side, side)
        intact(proper, f"{where} is a picture {got}, expected {side} × {side} of mode L")
        return np.asarray(image)


def colours(path: Path, side: int) -> Bytes:
    """[3, side, side]: a picture of any size, made that large by the default filter of Pillow since its release 7."""
    with whole(path), _opened(str(path), path, "JPEG", "PNG") as image:
        resized = image.convert("RGB").resize((side, side), BICUBIC)
        return np.asarray(resized).transpose(2, 0, 1)


def _opened(where: str, file: Any, *formats: str) -> Any:
    pil = package("PIL.Image", extra="images", what="a picture")
    try:
        return pil.open(file, formats=formats)
    except pil.UnidentifiedImageError as error:
        raise damaged(f"{where} is no whole {' or '.join(formats)}") from error
