"""`dittofl export` and `dittofl predict`: a device's model out of a run."""

import logging
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from dittofl.engine.setting import Setting
from dittofl.errors import InputError, require, short
from dittofl.experiment.files import as_csv, place, told, write
from dittofl.experiment.folder import Folder, runs
from dittofl.experiment.run import flags
from dittofl.experiment.setup import build
from dittofl.experiment.spec import load
from dittofl.federated import Federated
from dittofl.inputs import Inputs, parts
from dittofl.method import GLOBAL
from dittofl.objective import prepared
from dittofl.target import Classes


def restored(path: Path) -> Federated:
    """A run that has ended, as it was after its last round."""
    folder: Folder = runs([path])[0][0]
    require(folder.path == path, f"{path} holds several runs: name one, such as {folder.path}")
    spec = load(str(path))
    saved = folder.checkpoints(spec).load()
    if saved is None or saved.t < spec.experiment.rounds:
        raise InputError(f"{path} ended with --checkpoint-every 0 and keeps no models: run it again without")
    with flags(spec.experiment):
        run = build(spec, device="cpu").federate(saved).run
        run.finish()
        return run


def served(path: Path, device: str | None, model: str | None) -> tuple[Federated, nn.Module, str]:
    """The run, the module, and what that is."""
    run = restored(path)
    name = model or next(iter((*run.method.choose, *run.method.personal)), GLOBAL)
    if device is None and name != GLOBAL:
        ids = run.federation.ids
        raise InputError(f"whose {name}? add --device-id, one of {len(ids)} such as {ids[0]!r}, or --model global")
    return run, run.model(name, device=device), name if device is None else f"{name} of {device}"


def export(path: Path, device: str | None, model: str | None, out: Path) -> None:
    """A model as safetensors or ONNX."""
    kinds = (".safetensors", ".onnx")
    require(out.suffix in kinds, f"--out must end in {' or '.join(kinds)}, got {out}")
    require(not out.exists(), f"{out} exists and is never overwritten: choose another --out")
    run, module, what = served(path, device, model)
    if out.suffix == ".onnx":
        _onnx(module, run, out)
    else:
        about = {"model": what, "run": str(path), "rounds": str(run.t)}
        tensors = {key: value.contiguous() for key, value in module.state_dict().items()}
        place(out)
        write(out, save(tensors, metadata=about))
    click.echo(f"{what} after {run.t} rounds: {out}")


def _onnx(module: nn.Module, run: Federated, out: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError("writing ONNX needs two packages: pip install 'dittofl[onnx]'") from error
    x = run.setting.inputs(torch.arange(2) % len(run.federation.y))  # one sample alone would be taken for the rule
    arguments, names = ((), x) if isinstance(x, dict) else (x if isinstance(x, tuple) else (x,), None)
    batch = {0: torch.export.Dim.AUTO}  # any number of samples, where the module allows it
    shapes: Any = dict.fromkeys(x, batch) if isinstance(x, dict) else (batch,) * len(arguments)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's of its own parts, which tell users nothing
            program = torch.onnx.export(
                module, arguments, kwargs=names, dynamic_shapes=shapes, dynamo=True, verbose=False
            )
    except Exception as error:
        raise InputError(f"torch cannot write this module as ONNX ({short(error)}): use .safetensors") from error
    place(out)
    with told(out):
        program.save(str(out))  # type: ignore[union-attr]


def predict(path: Path, inputs: Path | None, device: str | None, model: str | None, out: Path | None) -> None:
    """One line a sample: outputs, and the class they mean."""
    run, module, what = served(path, device, model)
    require(inputs is not None or device is not None, "predict on what? give INPUTS, or --device-id for its test part")
    x = run.federation.part(device, "test")[0] if inputs is None else read(inputs)
    first, whose = parts(x)[0], str(inputs or f"the test part of {device}")
    require(first.dim() and len(first), f"{whose} holds no samples: give some as INPUTS")
    with torch.no_grad():
        y = _outputs(module, run.setting, x, whose)
    outputs = y.reshape(len(y), -1)
    classes = isinstance(run.objective.target, Classes)
    names = [*(["class"] if classes else []), *(f"output_{j}" for j in range(outputs.shape[1]))]
    text = as_csv([names, *([*([int(row.argmax())] if classes else []), *row.tolist()] for row in outputs)])
    if out is None:
        click.echo(text, nl=False)
    else:
        place(out)
        write(out, text.encode())
        click.echo(f"{len(y)} predictions of {what}: {out}")


def _outputs(module: nn.Module, setting: Setting, x: Inputs, whose: str) -> Tensor:
    dtype = setting.objective.w0.dtype
    try:
        if isinstance(x, dict):
            answer: Any = module(**{key: prepared(part, dtype) for key, part in x.items()})
        else:
            answer = module(*(prepared(part, dtype) for part in (x if isinstance(x, tuple) else (x,))))
    except Exception as error:
        raise InputError(f"the model cannot take {whose}: {short(error)}: give inputs like its data") from error
    outputs: Tensor = answer
    return outputs


def read(path: Path) -> Tensor:
    """Samples from .npy, or from a CSV of numbers with or without a header."""
    try:
        if path.suffix == ".npy":
            return torch.from_numpy(np.load(path, allow_pickle=False))
        if path.suffix == ".csv":
            lines = path.read_text(encoding="utf-8").splitlines()
            numbers = lines[bool(lines) and not _numbers(lines[0]) :]
            return torch.from_numpy(np.loadtxt(numbers, delimiter=",", ndmin=2)) if numbers else torch.empty(0)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read as numbers ({short(error)}): correct it") from error
    raise InputError(f"inputs must be .npy or .csv, got {path}: save them as one of those")


def _numbers(line: str) -> bool:
    try:
        return bool([float(cell) for cell in line.split(",")])
    except ValueError:
        return False
