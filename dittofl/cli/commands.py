"""The commands and their options; what they do is imported when it is asked for, so that --help is quick."""

from pathlib import Path
from typing import Any

import click

from dittofl.cli.data import data
from dittofl.cli.theory import theory

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Change a key: method.batch=32.")
@click.option("--data", type=PATH, help="Folder of the data's files, or of data sets by name.")
@click.option("--out", type=PATH, help="Folder of the runs (default: runs); each gets OUT/NAME/seed-S.")
@click.option("--rounds", type=int, help="Rounds to train.")
@click.option("--seeds", metavar="A:B|A,B", help="Seeds to run: 0:5 is 0 to 4.")
@click.option("--engine", type=click.Choice(["auto", "loop", "vmap"]), help="How devices are mapped.")
@click.option("--device", help="cpu, cuda, cuda:1 …")
@click.option("--precision", type=click.Choice(["float32", "tf32", "float64"]), help="Arithmetic.")
@click.option("--deterministic", is_flag=True, help="Bitwise reproducible on a GPU too.")
@click.option("--eval-every", type=int, help="Rounds between evaluations.")
@click.option(
    "--checkpoint-every",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between checkpoints; 0: none, the run can neither be resumed nor exported.",
)
@click.option("--resume", is_flag=True, help="Go on with runs that were interrupted; skip those that ended.")
@click.option("--report", type=PATH, metavar="PAGE", help="Also write one HTML page over these runs.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--dry-run", is_flag=True, help="Print the spec in full, and what it needs; train nothing.")
def run(**given: Any) -> None:
    """Train specs. Each SPEC is a TOML file, a preset's name, or the folder of a run."""
    from dittofl.cli.running import run as go

    go(**given)


@click.command("list")
@click.argument("what", required=False)
def list_(what: str | None) -> None:
    """What a spec may name. WHAT is a section, or a name to see in detail."""
    from dittofl.cli.listing import show

    show(what)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, help="The page (default: report.html in the first folder).")
@click.option("--figures", type=PATH, help="Also draw each figure as SVG and PNG into this folder.")
def report(runs: tuple[Path, ...], out: Path | None, figures: Path | None) -> None:
    """A table and one page over runs. RUN is the folder of one, or of several; the page is one file."""
    from dittofl.cli.reading import report as go

    go(list(runs), out, figures)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("--metric", help="What to compare (default: accuracy, or loss where there is none).")
@click.option("--against", metavar="MODEL|RUN:MODEL", help="The reference (default: global of the first run).")
def compare(runs: tuple[Path, ...], metric: str | None, against: str | None) -> None:
    """Compare models device by device. Paired differences within and between runs, with 95 % intervals."""
    from dittofl.cli.reading import compare as go

    go(list(runs), metric, against)


@click.command()
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--device-id", help="Whose personal model (not needed for global).")
@click.option("--model", default=None, help="Which model (default: the method's choice, else its first personal one).")
@click.option("--out", type=PATH, required=True, help="A file that ends in .safetensors or .onnx.")
def export(run: Path, device_id: str | None, model: str | None, out: Path) -> None:
    """Write a device's model to a file. As safetensors, or as ONNX where torch exports it."""
    from dittofl.cli.serving import export as go

    go(run, device_id, model, out)


@click.command()
@click.argument("run", metavar="RUN", type=PATH)
@click.argument("inputs", metavar="[INPUTS.npy|.csv]", required=False, type=PATH)
@click.option("--device-id", help="Whose personal model (not needed for global).")
@click.option("--model", default=None, help="Which model (default: the method's choice, else its first personal one).")
@click.option("--out", type=PATH, help="A CSV file (default: the terminal).")
def predict(run: Path, inputs: Path | None, device_id: str | None, model: str | None, out: Path | None) -> None:
    """Predict with a device's model. On INPUTS, or on the device's own test part."""
    from dittofl.cli.serving import predict as go

    go(run, inputs, device_id, model, out)


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
def new(folder: Path) -> None:
    """Begin with a small example in DIR. It has a model and data of your own, and runs as it is."""
    from dittofl.cli.starting import new as go

    go(folder)


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--data", type=PATH, help="Folder of the data sets.")
@click.option("--seeds", metavar="A:B|A,B", help="Seeds to run (default: 0).")
@click.option(
    "--only", metavar="[DATA,][ROW,][COLUMN]", multiple=True, help="These cells alone, 'Ditto,A1 20%' say; repeat it."
)
@click.option("--scale", type=float, default=1.0, show_default=True, help="Share of the rounds; written apart.")
@click.option("--out", type=PATH, help="Folder of runs and tables (default: results).")
@click.option("--resume", is_flag=True, help="Go on with runs that were interrupted.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1 …")
@click.option("--precision", type=click.Choice(["float32", "tf32", "float64"]), default="float32", help="Arithmetic.")
@click.option("--engine", type=click.Choice(["auto", "loop", "vmap"]), help="How devices are mapped.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Runs at a time, each in a process of its own.")
@click.option("--minutes", type=float, help="Stop after so many; what is made by then is kept.")
@click.option(
    "--checkpoint-every", type=float, metavar="SECONDS", help="Time between checkpoints (default: 60, on a GPU none)."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--as-is", is_flag=True, help="Run nothing: write what the runs in --out say.")
def reproduce(**given: Any) -> None:
    """The paper's tables and figures. Make what is missing: NAME is table1 … table12 or figure2 … figure9."""
    from dittofl.cli.reproduce import reproduce as go

    go(**given)


commands = (run, reproduce, data, list_, report, compare, export, predict, new, theory)
