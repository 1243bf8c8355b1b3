"""The paper's models: their sizes, how they begin, and that every engine trains them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import dittofl.models
from dittofl import SGD, Ditto, Federation, InputError, Loop, Method, Task, Vmap
from dittofl.inputs import Inputs
from dittofl.losses import SquaredNorm, hinge
from dittofl.models import celeba_cnn, fashion_cnn, femnist_cnn, linear, mlp, tag_regression
from tests.problems import gap, integers, normal, run, seeded

CE = nn.CrossEntropyLoss()
WORDS, LONGEST = 30, 6


def sentences(n: int, seed: int, words: int = WORDS) -> tuple[Tensor, Tensor]:
    """Ids, of which the last ones of a sample may be padding with a weight to be ignored, and weights."""
    ids, length = integers(words, n, LONGEST, seed=seed), integers(LONGEST, n, 1, seed=seed + 1) + 1
    return ids.masked_fill(torch.arange(LONGEST) >= length, words), normal(n, LONGEST, seed=seed + 2).abs()


class Case(NamedTuple):
    build: Callable[[], nn.Module]
    parameters: int
    x: Callable[[int, int], Inputs]
    classes: int = 0  # 0: labels are ±1
    task: dict[str, Any] = {}  # noqa: RUF012 - a constant


CASES = {
    "fashion_cnn": Case(fashion_cnn, 3_274_634, lambda n, seed: normal(n, 1, 28, 28, seed=seed), 10),
    "femnist_cnn": Case(femnist_cnn, 222_078, lambda n, seed: normal(n, 1, 28, 28, seed=seed), 62),
    "celeba_cnn": Case(celeba_cnn, 31_202, lambda n, seed: integers(256, n, 3, 84, 84, seed=seed).byte(), 2),
    "linear": Case(lambda: linear(inputs=100, zero=True), 101, lambda n, seed: normal(n, 100, seed=seed)),
    "mlp": Case(lambda: mlp(inputs=4, hidden=[3], outputs=2), 23, lambda n, seed: normal(n, 4, seed=seed), 2),
    "tag_regression": Case(
        lambda: tag_regression(words=WORDS, tags=5), 5 * WORDS + 5, lambda n, seed: sentences(n, seed), 5
    ),
}


def test_every_model_is_tried() -> None:
    assert set(CASES) == set(dittofl.models.__all__)


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_parameters(name: str) -> None:
    assert sum(parameter.numel() for parameter in CASES[name].build().parameters()) == CASES[name].parameters


def test_the_paper_s_tag_regression_is_the_default() -> None:
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in tag_regression().parameters()) == 5_000_500


@pytest.mark.parametrize("name", CASES)
def test_engines_train_it_alike(name: str) -> None:
    case = CASES[name]

    def part(n: int, seed: int) -> tuple[Inputs, Tensor]:
        y = integers(case.classes or 2, n, seed=seed + 7)
        return case.x(n, seed), y if case.classes else 2 * y - 1

    data = Federation.from_parts(train={"a": part(5, 10), "b": part(3, 20)}, test={"a": part(2, 30), "b": part(1, 40)})
    penalty = None if case.classes else SquaredNorm(scale=0.01, of=("weight",))
    task = Task(seeded(case.build), CE if case.classes else hinge, penalty=penalty)
    method = Method(local=SGD(lr=0.01, steps=2), personal={"ditto": Ditto(lam=1.0, lr=0.01, steps=2)}, batch=3)
    loop, mapped = (run(task, data, method, rounds=2, engine=engine) for engine in (Loop(), Vmap()))
    assert gap(loop, mapped) <= 1e-10
    for model in ("global", "ditto"):
        ours, theirs = (one.evaluate().values[model, "test"]["loss"] for one in (loop, mapped))
        assert abs(ours - theirs).max() <= 1e-8 * abs(ours).max()


@pytest.mark.parametrize("build", [fashion_cnn, femnist_cnn, celeba_cnn])
def test_kernels_are_glorot_uniform_and_biases_zero(build: Callable[[], nn.Module]) -> None:
    for layer in seeded(build).modules():
        if not isinstance(layer, nn.Conv2d | nn.Linear):
            continue
        kernel, bias = layer.weight.detach(), layer.bias
        window = kernel[0, 0].numel()  # positions that both fans count
        bound = (6 / ((kernel.shape[0] + kernel.shape[1]) * window)) ** 0.5
        assert kernel.abs().max() <= bound
        # Of a uniform law: variance bound²/3, its estimate's relative error √(0.8/n); six of those.
        assert float(kernel.var()) == pytest.approx(bound**2 / 3, rel=6 * (0.8 / kernel.numel()) ** 0.5)
        assert bias is not None
        assert not bias.any()


def test_celeba_s_batch_norm_takes_the_statistics_of_the_batch_also_at_evaluation() -> None:
    module, x = seeded(celeba_cnn).eval(), integers(256, 3, 3, 84, 84, seed=0).double()
    together, alone = module(x), torch.cat([module(x[b : b + 1]) for b in range(3)])
    assert (together - alone).abs().max() > 1e-3
    assert torch.equal(together, module.train()(x))
    assert not list(module.buffers())


def test_celeba_s_sides_are_padded_at_the_end() -> None:
    sides, x = [], torch.zeros(1, 3, 84, 84)
    for layer in celeba_cnn():
        x = layer(x)
        sides += [x.shape[-1]] if isinstance(layer, nn.MaxPool2d) else []
    assert sides == [42, 21, 11, 6]


def dense(ids: Tensor, weights: Tensor) -> Tensor:
    """The same samples, written out."""
    return torch.zeros(len(ids), WORDS + 1, dtype=torch.float64).scatter_add(1, ids, weights)[:, :WORDS]


@pytest.mark.parametrize("engine", [Loop(), Vmap()], ids=["loop", "vmap"])
def test_tag_regression_is_dense_logistic_regression(engine: Loop | Vmap) -> None:
    parts = {name: (sentences(n, seed), integers(5, n, seed=seed)) for name, n, seed in (("a", 9, 1), ("b", 4, 50))}
    sparse = Federation.from_parts(train=parts, test=parts)
    written = {name: (dense(*x), y) for name, (x, y) in parts.items()}
    bag, plain = seeded(lambda: tag_regression(words=WORDS, tags=5)), seeded(lambda: nn.Linear(WORDS, 5))
    with torch.no_grad():
        plain.weight.copy_(bag.weight.T)
        plain.bias.copy_(bag.bias)
    method = Method(local=SGD(lr=0.5, steps=2), personal={"ditto": Ditto(lam=0.1, lr=0.5, steps=3)}, batch=4)
    ours = run(Task(bag, CE), sparse, method, rounds=4, engine=engine)
    theirs = run(Task(plain, CE), Federation.from_parts(train=written, test=written), method, rounds=4)
    for device in parts:
        a, b = ours.model("ditto", device=device), theirs.model("ditto", device=device)
        assert (a.weight.T - b.weight).abs().max() <= 1e-10
        assert (a.weight - bag.weight).abs().max() > 1e-3
        assert (a.bias - b.bias).abs().max() <= 1e-10


def test_padding_has_no_weight_and_words_beyond_it_are_refused() -> None:
    module = seeded(lambda: tag_regression(words=4, tags=2))
    weights = normal(1, 2, seed=0)
    assert torch.equal(module(torch.tensor([[1, 4]]), weights), module(torch.tensor([[1]]), weights[:, :1]))
    beyond = Federation.of({"a": ((torch.tensor([[0, 1]] * 9 + [[2, 5]]), normal(10, 2, seed=1)), [0, 1] * 5)})
    with pytest.raises(InputError, match="device 'a'"):
        run(Task(module, CE), beyond, Method(local=SGD(lr=0.1)), rounds=1)


def test_a_femnist_cnn_of_fewer_classes() -> None:
    assert femnist_cnn(classes=10)(torch.zeros(1, 1, 28, 28)).shape == (1, 10)
    with pytest.raises(InputError, match="femnist_cnn needs classes"):
        femnist_cnn(classes=1)


@pytest.mark.parametrize("wrong", [{"words": 0}, {"tags": 1}, {"words": 2.5}])
def test_sizes_of_a_tag_regression(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"tag_regression needs {next(iter(wrong))}"):
        tag_regression(**wrong)
