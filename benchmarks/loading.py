"""Files of 1 GB in the three formats of FEMNIST: seconds to load, and peak memory of a process that does nothing else.

    python benchmarks/loading.py [--gb 1] [--devices 205] [--formats leaf parquet hdf5] [--folder DIR]

The bound is twice the arrays that result, and 300 MB in which Python, torch and the format's package must have room.
Files are made of a few images over and over, noise in parquet, as PNGs of writing are so small that 1 GB of them makes
12 GB of arrays. Every writer is loaded unless --devices says how many.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

EACH, POOL = 200, 64  # images a writer, and different ones
MB = 2**20


def pool(noise: float) -> Any:
    """Images of which that share is not paper."""
    rng = np.random.default_rng(0)
    return np.where(rng.random((POOL, 28, 28)) < noise, rng.integers(0, 256, (POOL, 28, 28)), 255).astype(np.uint8)


def writers() -> Iterator[tuple[str, Any, Any]]:
    """Without end: a name, which images of the pool, labels."""
    rng = np.random.default_rng(1)
    k = 0
    while True:
        yield f"f{k:05}_00", rng.integers(0, POOL, EACH), rng.integers(0, 62, EACH)
        k += 1


def leaf(folder: Path, size: int) -> None:
    texts = [json.dumps((image.reshape(-1) / 255).tolist()) for image in pool(0.25)]
    count = size // (EACH * sum(map(len, texts)) // POOL)
    one = list(islice(writers(), count))
    with (folder / "all_data_0.json").open("w") as file:
        head = {"users": [name for name, *_ in one], "num_samples": [EACH] * count}
        file.write(json.dumps(head)[:-1] + ', "user_data": {')
        for k, (name, which, y) in enumerate(one):
            x = ", ".join(texts[i] for i in which)
            file.write(f'{", " if k else ""}"{name}": {{"x": [{x}], "y": {y.tolist()}}}')
        file.write("}}")


def parquet(folder: Path, size: int) -> None:
    import io

    import pyarrow
    from PIL import Image
    from pyarrow import parquet

    pngs = []
    for image in pool(1.0):
        Image.fromarray(image).save(file := io.BytesIO(), "PNG")
        pngs.append(file.getvalue())
    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    kinds = [("image", picture), ("writer_id", pyarrow.string()), ("hsf_id", pyarrow.int64())]
    schema = pyarrow.schema([*kinds, ("character", pyarrow.int64())])
    count = size // (EACH * (sum(map(len, pngs)) // POOL + 14))
    # A group of rows a writer: about as small as Hugging Face's, so that the footer is as long.
    with parquet.ParquetWriter(folder / "train-0.parquet", schema, use_dictionary=False, compression="none") as file:
        for name, which, y in islice(writers(), count):
            images = [{"bytes": pngs[i], "path": None} for i in which]
            columns = {"image": images, "writer_id": [name] * EACH, "hsf_id": [0] * EACH, "character": y}
            file.write_batch(pyarrow.RecordBatch.from_pydict(columns, schema), row_group_size=10**9)


def hdf5(folder: Path, size: int) -> None:
    import h5py

    images = (pool(0.25) / 255).astype(np.float32)
    with h5py.File(folder / "fed_emnist_train.h5", "w") as file:
        for name, which, y in islice(writers(), size // (EACH * images[0].nbytes)):
            file[f"examples/{name}/pixels"] = images[which]
            file[f"examples/{name}/label"] = y.astype(np.int32)


FORMATS = {"leaf": leaf, "parquet": parquet, "hdf5": hdf5}


def load(folder: str, devices: int | None) -> dict[str, float]:
    """What loading takes in this process."""
    from dittofl.datasets import femnist

    start, busy = time.perf_counter(), time.process_time()
    found = femnist(data=folder, devices=devices)
    seconds, cpu = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (MB if sys.platform == "darwin" else 1024)
    arrays = sum(values.numel() * values.element_size() for values in (found.x, found.y)) / MB
    bound = 2 * arrays + 300
    return {"seconds": seconds, "cpu": cpu, "arrays_mb": arrays, "peak_mb": peak, "bound_mb": bound, "devices": found.K}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--devices", type=int)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--folder", help="keeps the files, and takes those that are there")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        FORMATS[given.formats[0]](Path(given.make), int(given.gb * 1e9))
    elif given.load:
        print(json.dumps(load(given.load, given.devices)))
    else:
        with tempfile.TemporaryDirectory() as made:
            measure(Path(given.folder or made), given)


def measure(root: Path, given: argparse.Namespace) -> None:
    """Makes and loads the files, each in a process of its own: peak memory is that of a process."""
    devices = ["--devices", str(given.devices)] if given.devices else []
    print(f"{'':8}{'file':>10}{'seconds':>10}{'cpu':>10}{'arrays':>10}{'peak':>10}{'bound':>10}   (MB)")
    results, over = {}, []
    for name in given.formats:
        folder = root / name
        call = [sys.executable, __file__, "--formats", name]
        if not folder.is_dir():
            folder.mkdir(parents=True)
            subprocess.run([*call, "--gb", str(given.gb), "--make", str(folder)], check=True)
        found = json.loads(subprocess.check_output([*call, *devices, "--load", str(folder)]))
        found["file_mb"] = sum(file.stat().st_size for file in folder.iterdir()) / MB
        results[name] = {key: round(value, 1) for key, value in found.items()}
        row = [found[key] for key in ("seconds", "cpu", "arrays_mb", "peak_mb", "bound_mb")]
        print(f"{name:8}{found['file_mb']:>10.0f}" + "".join(f"{value:>10.0f}" for value in row))
        over += [name] if found["peak_mb"] > found["bound_mb"] else []
    print(json.dumps(results))
    if over:
        sys.exit(f"over the bound: {', '.join(over)}")


if __name__ == "__main__":
    main()
