"""σ² and τ² of the paper's theory, estimated at w^t: ours, for λ* on tasks that the theory does not cover."""

from collections.abc import Iterable
from operator import itemgetter

import torch
from torch import Tensor
from torch.func import grad, vmap

from dittofl.errors import require
from dittofl.federated import Federated
from dittofl.inputs import Inputs, each
from dittofl.solver import Optimal

HELD = 2**25  # elements of gradients held at a time
LEAST = 1e-3  # of the noise of a device's mean that τ² is at least


def estimate(run: Federated, devices: Iterable[object] | None = None) -> Optimal:
    """σ² = s²/h,  τ² = (b² − mean_k s²/n_k) / h²  from s² within devices, b² between their means, and the curvature h.

    All of the per-sample gradients g_ki of the train parts at w^t, by entry: s² their pooled variance within a device,
    b² that of the device means g_k, h = Σ_k g_kᵀ ∇²F_k g_k / Σ_k ‖g_k‖². Where F_k = h/2 ‖v − ŵ_k‖² + const these are
    the moments of ŵ_k, and exact for point estimation (h = 1). Not of the paper. In regression the differences between
    devices' models also add to s², so that λ errs high where samples are few. It does so most where the curvature is
    not the same in all directions, h being that of the steepest: up to a hundredfold on a network that has fitted its
    data (docs/lambda.md). τ² is kept above a thousandth of the noise of a device's mean. To be asked of the devices
    named (default: all); malicious ones enlarge τ².

    >>> from dittofl import SGD, Federation, Method, Task, federate
    >>> data = {k: ([[1.0]] * 4, [1.0 * k, 2.0 * k, 3.0 * k, 4.0 * k]) for k in range(1, 4)}
    >>> task = Task(torch.nn.Linear(1, 1, bias=False), torch.nn.MSELoss())
    >>> *_, run = federate(task, Federation.of(data), Method(local=SGD(lr=0.1)), rounds=1)
    >>> estimate(run).tau2 > 0
    True
    """
    federation, objective = run.federation, run.objective
    require(not objective.mixes, "estimate needs gradients sample by sample, but the module's outputs mix its batch")
    ids = range(federation.K) if devices is None else [federation.index(id) for id in devices]
    require(len(ids) >= 2, f"estimate needs at least 2 devices, got {len(ids)}")
    within, squares, curved, inverse, total = 0.0, 0.0, 0.0, 0.0, torch.zeros_like(run.w, dtype=torch.float64)
    degrees = sum(int(federation.sizes("train")[k]) - 1 for k in ids)
    require(degrees > 0, "estimate needs a device with at least 2 train samples: σ² is a variance within devices")
    for k in ids:
        g, scatter, bend = _moments(run, k)
        within, squares, curved = within + scatter, squares + float(g @ g), curved + bend
        inverse, total = inverse + 1 / int(federation.sizes("train")[k]), total + g
    K, P = len(ids), objective.layout.P
    s2, h = within / (degrees * P), curved / squares if squares else 1.0
    require(
        h > 0, f"estimate needs a loss that is curved upwards at w, got a curvature of {h:.3g}: train further, or use "
        "another loss where it has none, as the hinge",
    )  # fmt: skip
    between = (squares - float(total @ total) / K) / ((K - 1) * P)
    noise = s2 * inverse / K
    return Optimal(sigma2=s2 / h, tau2=max(between - noise, LEAST * noise, torch.finfo(torch.float64).tiny) / h**2)


def _moments(run: Federated, k: int) -> tuple[Tensor, float, float]:
    """∇F_k(w), Σ_i ‖g_ki − ∇F_k‖² and ∇F_kᵀ ∇²F_k ∇F_k of one device; a penalty, the same for all, has no say."""
    objective, setting = run.objective, run.setting
    objective.module.eval()
    index = setting.put(setting.span(k, "train"))
    x, y = setting.inputs(index), setting.y.index_select(0, index)

    def loss(row: Tensor, x: Inputs, y: Tensor) -> Tensor:
        out = objective.forward(row, each(x, lambda part: part[None]))
        return objective.losses(out, y[None])[0]

    def along(step: Tensor, x: Inputs, y: Tensor) -> Tensor:
        return objective.losses(objective.forward(run.w + step * mean, x), y).sum()

    size = max(1, HELD // max(objective.layout.P, objective.activations))
    pieces = [(each(x, itemgetter(slice(a, a + size))), y[a : a + size]) for a in range(0, len(y), size)]
    gradients = vmap(grad(loss), (None, 0, 0))
    mean = torch.stack([gradients(run.w, *piece).sum(0) for piece in pieces]).sum(0) / len(y)
    scatter = sum(float(((gradients(run.w, *piece) - mean).double() ** 2).sum()) for piece in pieces)
    bend = sum(float(grad(grad(along))(torch.zeros_like(mean[0]), *piece)) for piece in pieces) / len(y)
    return mean.double(), scatter, bend
