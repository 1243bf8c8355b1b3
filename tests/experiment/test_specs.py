"""Specs: tables to objects and back, one identity for whatever says the same, and pieces of the user's own."""

import dataclasses
import functools
import inspect
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from dittofl import A3, Attack, Ditto, Metric
from dittofl.attack import Along, MinMax, SignFlip
from dittofl.errors import InputError
from dittofl.experiment.assign import assign
from dittofl.experiment.construct import Names
from dittofl.experiment.names import known, nearest, sections
from dittofl.experiment.setup import build
from dittofl.experiment.signature import described, lacking
from dittofl.experiment.spec import CODE, SPEC, load, presets, resolve
from tests.experiment.small import TABLE, small, written


def with_method(**changes: Any) -> dict[str, Any]:
    return {"method": TABLE["method"] | changes}


# One identity


@pytest.mark.parametrize("name", presets())
def test_a_preset_written_out_and_read_again_is_the_same(name: str, tmp_path: Path) -> None:
    spec = load(name)
    (tmp_path / "other.toml").write_text(spec.toml())
    again = load(str(tmp_path / "other.toml"))
    assert again.identity == spec.identity
    assert again.table == spec.table
    assert spec.experiment.name == name


def test_a_spec_of_the_users_own_written_out_and_read_again_is_the_same(tmp_path: Path) -> None:
    spec = small(tmp_path)
    (tmp_path / "again.toml").write_text(spec.toml())
    assert load(str(tmp_path / "again.toml")).identity == spec.identity


def test_what_says_the_same_has_the_same_identity(tmp_path: Path) -> None:
    plain = small(tmp_path).identity
    backwards = {key: TABLE[key] for key in reversed(TABLE)}
    assert resolve(backwards, tmp_path).identity == plain
    assert small(tmp_path, data={"kind": "task:data"}).identity == plain
    assert small(tmp_path, data={"kind": "task:data", "sites": 6}).identity == plain
    assert small(tmp_path, loss="CrossEntropyLoss", sampling=None or TABLE.get("sampling")).identity == plain
    assert small(tmp_path, **with_method(local={"kind": "SGD", "lr": 0.2, "steps": 2.0})).identity == plain
    assert small(tmp_path, **with_method(server={"kind": "task:Heavy", "beta": 0.5})).identity == plain
    assert small(tmp_path / "elsewhere").identity == plain


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 7}, {"seed": 1}, {"precision": "float64"}, {"name": "other"}, {"engine": "Loop"},
        with_method(batch=8), with_method(batch="none"), with_method(server="Add"),
        {"data": {"kind": "task:data", "sites": 5}},
    ],
    ids=str,
)  # fmt: skip
def test_what_says_something_else_has_another(tmp_path: Path, change: dict[str, Any]) -> None:
    assert small(tmp_path, **change).identity != small(tmp_path).identity


def test_the_users_files_are_part_of_it_and_no_others(tmp_path: Path) -> None:
    spec = small(tmp_path)
    plain = spec.identity
    assert sorted(spec.files()) == ["nearby.py", "task.py"]
    (tmp_path / "unrelated.py").write_text("x = 1")
    assert spec.identity == plain
    (tmp_path / "nearby.py").write_text("ONE = 2.0\n")
    assert spec.identity != plain


def test_a_package_beside_the_spec_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "deep" / "__init__.py").write_text("from .. import other\n")
    (tmp_path / "mine" / "other.py").write_text("")
    (tmp_path / "mine" / "never.py").write_text("")
    (tmp_path / "start.py").write_text("def data():\n    import mine.deep\n    import os\n")
    spec = resolve(TABLE | {"data": "start:data"}, written(tmp_path))
    mine = ["mine/__init__.py", "mine/deep/__init__.py", "mine/other.py", "nearby.py", "start.py", "task.py"]
    assert sorted(spec.files()) == mine


# Pieces


def plainly_made() -> dict[str, Any]:
    """Our dataclasses that need no argument, made without any."""
    found = {}
    for name, its in known().items():
        if dataclasses.is_dataclass(its) and not lacking(its, {}):
            with suppress(InputError):  # of what needs one of two
                found[name] = its()
    return found


@pytest.mark.parametrize(("name", "made"), plainly_made().items(), ids=str)
def test_every_piece_of_the_package_is_found_and_described(name: str, made: Any) -> None:
    """Whatever the package exports: its defaults written out make the same object again."""
    names, table = Names(), {"kind": name}
    filled = names.filled(table, "piece")
    assert names.built(filled, "piece") == made
    assert names.built(described(made), "piece") == made
    assert names.filled(filled, "piece") == filled


def test_every_section_has_names_and_every_name_one_section() -> None:
    names = [name for its in sections().values() for name in its]
    assert len(names) == len(set(names)) == len(known())
    assert all(sections().values())
    assert not [name for name, its in known().items() if not (inspect.isclass(its) or inspect.isroutine(its))]


def test_a_spec_makes_what_python_makes(tmp_path: Path) -> None:
    setup = build(small(tmp_path, attack={"kind": "A3", "ratio": 0.4}))
    assert setup.attack == A3(ratio=0.4)
    assert setup.strong  # so that the λ rule takes the small candidates
    assert setup.method.personal["lam=0.05"] == Ditto(lam=0.05, lr=0.2, steps=2)
    assert setup.method.choose["ditto"].among == ("lam=0.05", "lam=0.1", "lam=0.2")
    assert setup.method.batch == 4
    assert isinstance(setup.task.metrics["brier"], Metric)
    assert setup.federation.ids[0] == "site 0"


def test_words_of_a_list_are_members_of_it(tmp_path: Path) -> None:
    attack = {"kind": "Attack", "count": 1, "update": ["SignFlip", {"kind": "MinMax", "along": "Sign"}]}
    made = Attack(count=1, update=(SignFlip(), MinMax(along=Along.SIGN)))
    spec = small(tmp_path, attack=attack)
    assert build(spec).attack == made
    assert tomllib.loads(spec.toml())["attack"]["update"][1]["along"] == "sign"


def test_none_is_written_as_a_word(tmp_path: Path) -> None:
    assert build(small(tmp_path, **with_method(batch="none"))).method.batch is None
    untold = {"kind": "A1", "ratio": 0.5, "count": "none"}
    assert "count" not in small(tmp_path, attack=untold).table["attack"]


def aggregate(tmp_path: Path, value: Any) -> Any:
    return build(small(tmp_path, **with_method(aggregate=value))).method.aggregate


def test_rules_of_the_users_own(tmp_path: Path) -> None:
    """Functions stand for themselves, with the parameters given; classes are called; objects are what they are."""
    assert aggregate(tmp_path, "task:middle") == aggregate(tmp_path, {"kind": "task:middle"})
    rule = aggregate(tmp_path, {"kind": "task:trimmed", "cut": 1}).rule
    assert isinstance(rule, functools.partial)
    assert rule.keywords == {"cut": 1}
    assert aggregate(tmp_path, "task:Remembering").beta == 0.5
    assert aggregate(tmp_path, {"kind": "task:Remembering", "beta": 0.75}).beta == 0.75
    assert build(small(tmp_path, **with_method(server="task:HEAVY"))).method.server.beta == 0.25  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_method(aggregate={"kind": "task:trimmed", "cutt": 1}), "did you mean 'cut'"),
        (with_method(server={"kind": "task:HEAVY", "beta": 1.0}), "which is no class"),
        (with_method(server={"kind": "task:Heavy", "bta": 1.0}), "did you mean 'beta'"),
        (with_method(aggregate="task:Remembring"), "did you mean 'Remembering'"),
        (with_method(aggregate="Meen"), "method.aggregate: nothing is called 'Meen': did you mean 'Mean'"),
        (with_method(local={"kind": "SGD"}), "method.local: SGD needs lr = …: add it"),
        (with_method(local={"kind": "task:trimmed"}), "method.local: trimmed needs report = …"),
        (with_method(personal={"v": "Ditto"}), "method.personal.v: Ditto needs lam"),
        ({"data": "task:brier"}, "data: brier needs out"),
        ({"attack": {"kind": "Attack", "count": 1, "update": [{"kind": "MinMax", "along": "sgn"}]}}, "mean 'sign'"),
        ({"model": {"kind": 3}}, "model.kind must be a name"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_pieces_are_told_with_their_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        build(small(tmp_path, **change))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_folders_may_have_files_of_one_name(tmp_path: Path) -> None:
    """Each its own, with what stands beside it."""
    for name, one in (("one", 1.0), ("other", -1.0)):
        (written(tmp_path / name) / "nearby.py").write_text(f"ONE = {one}\n")
    prints = [build(resolve(TABLE, tmp_path / name)).federation.fingerprint for name in ("one", "other")]
    assert prints[0] != prints[1]


# Keys from the command line, and specs over others


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("method.batch=32", {"method": {"batch": 32}}),
        ("method.lr=.5", {"method": {"lr": 0.5}}),
        ('method.personal."lam=1".lr=1e-2', {"method": {"personal": {"lam=1": {"lr": 0.01}}}}),
        ("name=my words", {"name": "my words"}),
        ("parts=['test']", {"parts": ["test"]}),
        ("deterministic=true", {"deterministic": True}),
        ('attack={kind="A1",ratio=0.5}', {"attack": {"kind": "A1", "ratio": 0.5}}),
        ("attack=A1", {"attack": "A1"}),
    ],
)
def test_keys_are_assigned(text: str, value: dict[str, Any]) -> None:
    table: dict[str, Any] = {}
    assign(table, text)
    assert table == value


def test_a_part_of_a_piece_named_alone_is_assigned() -> None:
    table: dict[str, Any] = {"sampling": "BySize", "method": {"local": {"kind": "SGD", "lr": 1.0}}}
    assign(table, "sampling.scale=2")
    assign(table, "method.local.lr=2.0")
    assign(table, 'method.local={kind="Prox"}')
    assert table == {"sampling": {"kind": "BySize", "scale": 2}, "method": {"local": {"kind": "Prox"}}}


def test_a_spec_may_stand_on_another(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "first.toml").write_text(tomli_w.dumps(TABLE))
    (tmp_path / "second.toml").write_text('base = "first.toml"\nrounds = 9\n[method]\nserver = "Add"\n')
    spec = load(str(tmp_path / "second.toml"))
    assert spec.experiment.rounds == 9
    assert spec.table["method"]["server"] == {"kind": "Add", "lr": 1.0}
    assert spec.table["method"]["batch"] == 4
    (tmp_path / "first.toml").write_text('base = "second.toml"')
    with pytest.raises(InputError, match="based on itself"):
        load(str(tmp_path / "second.toml"))


def test_a_folder_with_code_is_a_runs_own(tmp_path: Path) -> None:
    written(tmp_path / CODE)
    (tmp_path / SPEC).write_text(tomli_w.dumps(TABLE))
    assert load(str(tmp_path)).identity == load(str(tmp_path / SPEC)).identity == small(tmp_path / "else").identity


def test_names_that_are_near_and_those_that_are_not() -> None:
    assert nearest("ditto", known()) == "did you mean 'Ditto'?"
    assert nearest("xyz", ["Ditto", "SGD"]) == "there are Ditto, SGD"
