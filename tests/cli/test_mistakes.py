"""Wrong options, specs, data and folders: exit code 2, one sentence on stderr, no traceback, the nearest right name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ask

SET = [
    # what is typed after --set, and what the sentence must say
    ("method.bach=32", "did you mean 'batch'"),
    ("method.local.lrr=0.1", "SGD has no parameter 'lrr': did you mean 'lr'"),
    ("methd.batch=32", "did you mean 'method'"),
    ("method.personal.loca.lr=0.1", "did you mean 'local'"),
    ("rounds=ten", "rounds must be a whole number"),
    ("rounds=0", "rounds must be a whole number"),
    ("rounds=1.5", "rounds must be a whole number"),
    ("cohort=7", "from 1 to the 6 devices, got cohort=7"),
    ("cohort=0", "cohort must be a whole number"),
    ("seed=-1", "seed must be a whole number"),
    ("eval_every=0", "eval_every"),
    ("threads=0", "threads"),
    ("precision=float16", "precision must be one of float32"),
    ("deterministic=yes", "deterministic must be true or false"),
    ("device=tpu", "cannot be used here"),
    ("device=3", "device must be a name"),
    ("parts=['tests']", "parts must be a list of train, validation, test"),
    ("parts=[]", "parts must be a list of train, validation, test"),
    ("name=../up", "name must be a word"),
    ("data=digit", "did you mean 'digits'"),
    ("data=task:dota", "task has no 'dota': did you mean 'data'"),
    ("data=tusk:data", "there is no file"),
    ("data=../task:data", "lies outside the spec's folder"),
    ("data={kind='task:data',site=3}", "did you mean 'sites'"),
    ("data={kind='task:data',sites=0}", "data"),
    ("data=task:brier", "data: brier needs out"),
    ("data=3", "data must be a table"),
    ("model=task:Nett", "did you mean 'Net'"),
    ("model={kind='task:Net',hidden=-1}", "model: Net fails"),
    ("model={kind='mlp',inputs=3,outputs=2}", "3"),
    ("model=linear", "linear needs inputs"),
    ("model=task:brier", "model: brier needs out"),
    ("loss=CrossEntropy", "did you mean 'CrossEntropyLoss'"),
    ("loss=MSELoss", "the loss fails"),
    ("method.local=Ditto", "Ditto needs lam"),
    ("method.local={kind='Ditto',lam=1.0,lr=0.1}", "local= must be a solver that sends"),
    ("method.local.lr=-1", "lr"),
    ("method.local.lr=fast", "lr"),
    ("method.local.steps=0", "steps"),
    ("method.personal.local=7", "must be a solver"),
    ("method.personal.global={kind='Local',lr=0.1}", "cannot be called 'global'"),
    ("method.choose.ditto=Ditto", "Ditto needs lam"),
    ("method.choose.best={kind='Choose',among=['local','dito'],few='local'}", "'dito'"),
    ("method.batch=0", "batch must be a whole number"),
    ("method.batch=many", "batch must be a whole number"),
    ("method.aggregate=Medain", "Med"),
    ("method.aggregate=task:midle", "did you mean 'middle'"),
    ("method.aggregate={kind='task:trimmed',cut=1,by=2}", "trimmed has no parameter 'by'"),
    ("method.aggregate={kind='task:trimmed',cut=0.5}", "the aggregator fails"),
    ("method.aggregate=task:Wordy", "the aggregator's state holds 'so far', which no checkpoint can"),
    ("method.server=Ad", "did you mean 'Add'"),
    ("method.server.lr=fast", "lr"),
    ("attack=A4", "nothing is called 'A4'"),
    ("attack=A1", "needs one of ratio=, count="),
    ("attack.ratio=1.5", "ratio"),
    ("attack.ratio=half", "ratio"),
    ("attack.count=3", "needs one of ratio=, count="),
    ("attack={kind='A1',count=9}", "9 malicious devices"),
    ("attack={kind='Attack',count=1,update={kind='MinMax',along='sig'}}", "did you mean 'sign'"),
    ("attack={kind='SignFlip'}", "attack must name one such as A1"),
    ("sampling=Uniforn", "did you mean 'Uniform'"),
    ("sampling=task:brier", "sampling fails"),
    ("engine=Vmapp", "did you mean 'Vmap'"),
    ("engine={kind='Vmap',chunk=0}", "chunk"),
    ("metrics.brier=task:briar", "did you mean 'brier'"),
    ("metrics.loss=task:brier", "cannot be called 'loss'"),
    ("metrics.cut={kind='task:trimmed',cut=1}", "metric 'cut' fails"),
    ("penalty={kind='SquaredNorm'}", "SquaredNorm needs scale"),
    ("target=Classez", "did you mean 'Classes'"),
    ("round=5", "did you mean 'rounds'"),
    ("rounds", "--set needs key=value"),
    ("=5", "--set needs key=value"),
    ("a b=5", "--set cannot read"),
    ("rounds.x=5", "which has no parts"),
]  # fmt: skip


def told(code: int, out: str, err: str) -> str:
    """The one sentence of a mistake."""
    assert code == 2, err
    assert out == ""
    assert err.startswith("dittofl: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert 20 < len(err) < 600
    return err


@pytest.mark.parametrize(("assignment", "said"), SET, ids=[text for text, _ in SET])
def test_a_wrong_key_or_value(ask: Ask, tmp_path: Path, assignment: str, said: str) -> None:
    assert said in told(*ask("run", "spec.toml", "--set", assignment))
    assert not (tmp_path / "runs").exists()  # nothing is written for a run that cannot begin


OPTIONS = [
    (["--round", "5"], "--rounds"),
    (["--rounds", "ten"], "--rounds"),
    (["--rounds", "-3"], "rounds must be a whole number"),
    (["--seeds", "5:0"], "--seeds must be A:B"),
    (["--seeds", "a"], "--seeds must be A:B"),
    (["--seeds", "1,1"], "--seeds must be A:B"),
    (["--seeds", "-1,0"], "--seeds must be A:B"),
    (["--engine", "gpu"], "'gpu' is not one of"),
    (["--precision", "half"], "'half' is not one of"),
    (["--device", "cuda:99"], "cannot be used here"),
    (["--eval-every", "0"], "eval_every"),
    (["--checkpoint-every", "-1"], "--checkpoint-every must be 0 or more"),
    (["--checkpoint-every", "nan"], "--checkpoint-every must be 0 or more"),
    (["--out", "spec.toml"], "spec.toml"),
    (["--set"], "requires an argument"),
    (["--seeds", "0:2", "--set", "seed=3"], "two runs would write"),
    (["spec.toml"], "two runs would write"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), OPTIONS, ids=[" ".join(words) for words, _ in OPTIONS])
def test_a_wrong_option(ask: Ask, words: list[str], said: str) -> None:
    assert said.lower() in told(*ask("run", "spec.toml", *words)).lower()


COMMANDS = [
    (["run"], "missing argument"),
    (["rum"], "no such command 'rum'"),
    (["run", "nowhere.toml"], "no file and no preset 'nowhere.toml'"),
    (["run", "digit-a1"], "did you mean 'digits-a1'"),
    (["run", "."], "spec.toml"),
    (["run", "empty"], "a folder without spec.toml"),
    (["list", "Dito"], "did you mean 'ditto'"),
    (["list", "atacks"], "did you mean 'attacks'"),
    (["report"], "missing argument"),
    (["report", "nowhere"], "there is no folder nowhere"),
    (["report", "empty"], "holds no run"),
    (["report", "spec.toml"], "there is no folder spec.toml"),
    (["compare", "empty"], "holds no run"),
    (["export", "empty", "--out", "v.safetensors"], "holds no run"),
    (["export", "empty"], "missing option '--out'"),
    (["predict", "nowhere"], "there is no folder nowhere"),
    (["new", "."], "not empty"),
    (["new", "spec.toml"], "not empty"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_wrong_command(ask: Ask, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    if words == ["run", "."]:
        (tmp_path / "spec.toml").write_text("rounds = 1\n")
        said = "the spec lacks data"
    assert said in told(*ask(*words)).lower()


FILES = {
    "no TOML": ("spec.toml", "rounds = = 5", "is not TOML"),
    "no UTF-8": ("spec.toml", "rounds = 5 # \udcff", "cannot be read"),
    "empty": ("spec.toml", "", "the spec lacks data"),
    "no method": ("spec.toml", 'data="digits"\nmodel="linear"\nrounds=1', "the spec lacks method"),
    "base unknown": ("spec.toml", 'base="digit"', "did you mean 'digits'"),
    "base no word": ("spec.toml", "base=3", "base must name a preset or a file"),
    "code with a typo": ("task.py", "def data(:", "SyntaxError"),
    "code that fails": ("task.py", "x = 1\n1 / 0", "ZeroDivisionError: division by zero: correct line 2 of task.py"),
    "code that imports what is not there": ("task.py", "import nonesuch", "nonesuch"),
    "data that fail": ("task.py", "@CODE@\ndef data():\n    raise OSError('no such file: cats.csv')", "cats.csv"),
    "data of nothing": ("task.py", "@CODE@\ndef data():\n    return None", "data"),
    "data of no device": ("task.py", "@CODE@\ndef data():\n    return {}", "device"),
    "data of one sample": ("task.py", "@CODE@\ndef data():\n    return {'a': ([[1.0]], [1])}", "1 of the 2 samples"),
    "data with NaN": (
        "task.py", "@CODE@\ndef data():\n    return {'a': ([[float('nan'), 1.0]] * 9, [0, 1, 1] * 3)}", "holds NaN",
    ),
    "data of unequal lengths": ("task.py", "@CODE@\ndef data():\n    return {'a': ([[1.0, 2.0]] * 5, [1] * 4)}", "4"),
    "labels that are words": ("task.py", "@CODE@\ndef data():\n    return {'a': ([[1.0, 2.0]] * 5, ['x'] * 5)}", "'a'"),
    "a model that is none": ("task.py", "@CODE@\ndef Net():\n    return 3", "model must give a torch module"),
    "a model that fails": (
        "task.py", "@CODE@\ndef Net():\n    return nn.Linear(5, 2)", "give what its forward takes",
    ),
    "a model without parameters": ("task.py", "@CODE@\nclass Net(nn.Identity): ...", "parameter"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_a_wrong_file(ask: Ask, tmp_path: Path, what: str) -> None:
    name, text, said = FILES[what]
    text = text.replace("@CODE@", (tmp_path / "task.py").read_text())
    (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    assert said in told(*ask("run", "spec.toml"))


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        (folder / name).write_text(change((folder / name).read_text()))

    return do


FOLDERS = {
    "cut summary": (edit("summary.json", lambda text: text[:99]), ["report", "RUN"], "damaged"),
    "no spec": (lambda folder: (folder / "spec.toml").unlink(), ["predict", "RUN"], "without spec.toml"),
    "no code": (lambda folder: shutil.rmtree(folder / "code"), ["predict", "RUN"], "another run"),
    "no checkpoint": (lambda folder: shutil.rmtree(folder / "checkpoint"), ["predict", "RUN"], "keeps no models"),
    "no summary": (lambda folder: (folder / "summary.json").unlink(), ["report", "RUN"], "has ended: go on with"),
    "cut rows": (
        lambda folder: (folder / "checkpoint" / "rows-0-0.safetensors").write_bytes(b""), ["predict", "RUN"], "restore",
    ),
    "another code": (
        edit("code/nearby.py", lambda text: text + "TWO = 2\n"), ["run", "RUN", "--resume"], "another spec",
    ),
    "exists": (lambda folder: None, ["run", "spec.toml", "--out", "OUT"], "never overwritten: add --resume"),
    "ended, with other options": (
        lambda folder: None, ["run", "RUN", "--resume", "--rounds", "9"], "a finished run of another spec",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOLDERS)
def test_a_wrong_folder(ask: Ask, finished: Path, tmp_path: Path, what: str) -> None:
    do, words, said = FOLDERS[what]
    place = tmp_path / "out" / "small" / "seed-0"
    shutil.copytree(finished / "seed-0", place)
    do(place)  # type: ignore[operator]
    words = [{"RUN": str(place), "OUT": str(tmp_path / "out")}.get(word, word) for word in words]
    (tmp_path / "spec.toml").write_text((place / "spec.toml").read_text() if (place / "spec.toml").exists() else "")
    more = ["--device-id", "site 1"] if words[0] == "predict" else []
    assert said in told(*ask(*words, *more))


def test_wrong_devices_models_and_inputs(ask: Ask, finished: Path, tmp_path: Path) -> None:
    run = finished / "seed-0"
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    (tmp_path / "wide.csv").write_text("1,2,3\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "x.json").write_text(json.dumps([1]))
    (tmp_path / "there.safetensors").write_text("")
    site = ["--device-id", "site 1"]
    for words, said in (
        (["predict", run], "whose ditto? add --device-id"),
        (["predict", run, "--model", "global"], "predict on what?"),
        (["predict", run, "--device-id", "sight 1"], "site 1"),
        (["predict", run, *site, "--model", "dito"], "no model is called 'dito'"),
        (["predict", run, "words.csv", *site], "cannot be read as numbers"),
        (["predict", run, "wide.csv", *site], "the model cannot take wide.csv"),
        (["predict", run, "empty.csv", *site], "holds no samples"),
        (["predict", run, "x.json", *site], "inputs must be .npy or .csv"),
        (["predict", run, "none.csv", *site], "none.csv"),
        (["predict", finished, *site], "holds several runs: name one"),
        (["export", run, *site, "--out", "v.pt"], "--out must end in .safetensors or .onnx"),
        (["export", run, *site, "--out", "there.safetensors"], "exists and is never overwritten"),
        (["export", run, *site, "--out", "x.json/v.safetensors"], "x.json/v.safetensors cannot be written"),
        (["report", run, "--out", "x.json/page.html"], "x.json/page.html cannot be written"),
        (["compare", run, "--metric", "acuracy"], "did you mean 'accuracy'"),
        (["compare", run, "--against", "globl"], "did you mean 'global'"),
    ):
        answered = ask(*words)
        assert said in told(answered.code, "", answered.err), words
