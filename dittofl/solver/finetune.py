"""Fine-tuning with several stops."""

from collections.abc import Sequence

from dittofl.errors import finite, require, short
from dittofl.optimiser import Chain, Rate
from dittofl.solver.choose import Choose
from dittofl.solver.ditto import Ditto
from dittofl.types import Epochs, Steps


def finetune(
    *, lr: Rate, stops: Sequence[Steps] = (Epochs(count=50),), lam: float = 0.0, through: Chain = (),
    proximal: bool = False,
) -> tuple[dict[str, Ditto], Choose]:  # fmt: skip
    """v_k ← v_k − η (∇F_k(v_k) + λ (v_k − w^T)) from v_k = w^T, a row for every stop, for `Method(final=…)`.

    Li et al. 2021: λ = 0 is plain fine-tuning (50 epochs in their tables), λ > 0 the fine-tuning solver of Ditto's
    objective, of which they show the best number of steps, known with hindsight: the best row of an evaluation. The
    choice returned is each device's own, by its validation data; with too few it takes the middle stop. For an early
    w^t call `finish` in that round. Rows of λ > 0 carry it in their names, so that several λ go into one run.

    >>> final, choice = finetune(lr=0.1, stops=(10, Epochs(count=5), Epochs(count=50)))
    >>> list(final), choice.few
    (['steps=10', 'epochs=5', 'epochs=50'], 'epochs=5')
    >>> list(final | finetune(lr=0.1, lam=1.0)[0])[2:]
    ['epochs=50', 'lam=1,epochs=50']
    """
    require(
        isinstance(stops, list | tuple) and len(set(stops)) == len(stops) >= 1,
        f"finetune needs stops=(…,), distinct step counts or Epochs(count=…), got stops={short(stops)}",
    )
    kind = f"lam={lam:g}," if finite(lam) and lam else ""
    names = [kind + (f"epochs={stop.count}" if isinstance(stop, Epochs) else f"steps={stop}") for stop in stops]
    rows = {
        name: Ditto(lam=lam, lr=lr, steps=stop, through=through, proximal=proximal)
        for name, stop in zip(names, stops, strict=True)
    }
    return rows, Choose(among=tuple(rows), few=names[len(names) // 2])
