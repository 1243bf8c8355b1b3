"""`dittofl theory`."""

import re
from pathlib import Path

import pytest

from dittofl.cli import answer
from dittofl.theory import Orthogonal, Point

Said = pytest.CaptureFixture[str]
QUICK = {
    "point-estimation": ("--trials", "50"),
    "linear-regression": ("--trials", "50"),
    "convergence": ("--rounds", "4", "--seeds", "1"),
}
commands = pytest.mark.parametrize("command", QUICK)
problems = pytest.mark.parametrize("command", ["point-estimation", "linear-regression"])


def lines(said: Said) -> list[str]:
    return said.readouterr().out.splitlines()


@pytest.mark.parametrize("attack", [(), ("--malicious", "3", "--tau-a", "1.5")], ids=["clean", "attacked"])
@problems
def test_the_table_is_that_of_the_closed_forms(command: str, attack: tuple[str, ...], capsys: Said) -> None:
    given = ("--sigma", "1.2", "--tau", "0.4", "--n", "7", "--devices", "9", "--trials", "3000")
    assert answer(["theory", command, *given, *attack]) == 0
    head, _, _, *rows = lines(capsys)
    population = {"sigma": 1.2, "tau": 0.4, "n": 7, "K": 9, **({"K_a": 3, "tau_a": 1.5} if attack else {})}
    its = Point(**population) if command.startswith("point") else Orthogonal(d=5, beta=7.0, **population)
    star = "λ*_a" if attack else "λ*"
    assert head == f"{star} = {its.lam_star:.4f}   least error {its.least_error:.6f}   fairest λ {its.fairest:.4f}"
    assert [row[:14].rstrip() for row in rows[:2] + rows[-1:]] == ["0 (local)", "0.1", "∞ (global)"]
    assert len(rows) == 6
    for row, lam in zip(rows, sorted({0, 0.1, 1, 10, float("inf"), its.lam_star}), strict=True):
        error, simulated, error_se, variance, simulated_variance, variance_se = map(
            float, re.findall(r"[\d.e+-]+", row[14:])
        )
        assert error == pytest.approx(float(its.error(lam)), abs=1e-6)
        assert variance == pytest.approx(float(its.variance(lam)), rel=1e-2)
        assert abs(simulated - error) < 4 * error_se
        assert abs(simulated_variance - variance) < 6 * variance_se  # which is printed with one digit


def test_where_all_are_alike_the_best_is_global(capsys: Said) -> None:
    assert answer(["theory", "point-estimation", "--tau", "0", "--trials", "50"]) == 0
    assert lines(capsys)[0] == "λ* = ∞   least error 0.002667   fairest λ ∞"


def test_the_same_seed_says_the_same(capsys: Said) -> None:
    said = []
    for seed in ("1", "1", "2"):
        answer(["theory", "point-estimation", "--trials", "50", "--seed", seed])
        said.append(lines(capsys))
    assert said[0] == said[1] != said[2]


def test_convergence_tells_distances_rates_and_bounds(capsys: Said) -> None:
    assert answer(["theory", "convergence", "--rounds", "60", "--lam", "0.5", "--lam", "2", "--solver", "fedprox"]) == 0
    _, w, *v = lines(capsys)
    assert [row.split()[:-3] for row in (w, *v)] == [["w"], ["v,", "λ=0.5"], ["v,", "λ=2"]]
    assert w.split()[-1] == "1"  # g(t) is the least bound of w
    for row in v:
        distance, rate, largest = map(float, row.split()[-3:])
        assert 0 < distance < largest
        assert rate > 0


@commands
def test_a_figure_is_drawn_and_named(command: str, tmp_path: Path, capsys: Said) -> None:
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"f.{ending}"
        assert answer(["theory", command, *QUICK[command], "--figure", str(path)]) == 0
        assert lines(capsys)[-1] == str(path)
        assert path.read_bytes().startswith(start)


def test_the_papers_figures(tmp_path: Path, capsys: Said) -> None:
    folder = tmp_path / "a" / "b"
    assert answer(["theory", "point-estimation", "--trials", "20", "--figures", str(folder)]) == 0
    names = [f"figure{i}.{ending}" for i in (2, 3) for ending in ("png", "pdf")]
    assert lines(capsys)[-4:] == [str(folder / name) for name in names]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize(
    ("command", "given", "sentence"),
    [
        ("point-estimation", "--malicious 4", "--malicious 4 needs --tau-a: give their spread"),
        ("linear-regression", "--tau-a 2", "--tau-a 2.0 is of malicious devices: say how many, with --malicious"),
        ("point-estimation", "--malicious 8 --tau-a 1", "needs K_a < K, a benign device at least, got K_a=8, K=8"),
        ("point-estimation", "--seed -1", "'--seed': -1 is not in the range x>=0"),
        ("point-estimation", "--sigma 0", "needs sigma > 0, got sigma=0.0"),
        ("point-estimation", "--tau nan", "got tau=nan"),
        ("point-estimation", "--n 0", "'--n': 0 is not in the range x>=1"),
        ("point-estimation", "--devices 1", "'--devices': 1 is not in the range x>=2"),
        ("point-estimation", "--trials x", "'x' is not a valid integer"),
        ("linear-regression", "--d 31", "needs n ≥ d for XᵀX = β I, got n=30, d=31: raise n"),
        ("linear-regression", "--beta 0", "needs beta > 0"),
        ("convergence", "--rounds 1", "'--rounds': 1 is not in the range x>=2"),
        ("convergence", "--seeds 0", "'--seeds': 0 is not in the range x>=1"),
        ("convergence", "--lam -1", "needs 0 ≤ every λ < ∞"),
        ("convergence", "--lam 1 --lam 1", "needs distinct λ"),
        ("convergence", "--solver sgd", "'sgd' is not one of 'fedavg', 'fedprox'"),
        ("convergence", "--figure f.doc", "cannot be written as 'f.doc': end it in .png, .pdf or .svg"),
        ("point-estimation", "--figure none/f.png", "there is no folder none for f.png: make it first"),
        ("point-estimation", "--figures spec/figures", "spec/figures cannot be written (Not a directory)"),
        ("point-estimation", "--figures spec", "'spec' is a file"),
        ("convergence", "--figure .", "'.' is a directory"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    command: str, given: str, sentence: str, tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec").touch()
    assert answer(["theory", command, *given.split()]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.startswith("dittofl: ")
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["spec"]


def test_a_figure_that_cannot_be_written_is_told_before_the_table(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "file").touch()
    wrong = [("--figure", tmp_path / "f.doc"), ("--figure", tmp_path / "none" / "f.png")]
    for command, quick in QUICK.items():
        also = [("--figures", tmp_path / "file" / "figures")] if command.startswith("point") else []
        for option, path in (*wrong, *also):
            assert answer(["theory", command, *quick, option, str(path)]) == 2
            assert not lines(capsys)
