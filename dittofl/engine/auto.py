"""The engine that suits device and module."""

import logging
from dataclasses import dataclass

from torch import nn

from dittofl.engine.loop import Loop
from dittofl.engine.setting import Engine, Setting
from dittofl.engine.vmap import Vmap
from dittofl.errors import InputError, short

log = logging.getLogger("dittofl")

# On a CPU a convolution with weights of its own for each device runs far below the plain one.
LOOPED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.RNNBase)


@dataclass(frozen=True)
class Auto:
    """`vmap` on a GPU and for modules without convolutions, `loop` else, and where a module cannot be mapped."""

    def bind(self, setting: Setting) -> Engine:
        modules = setting.objective.module.modules()
        if setting.device.type == "cpu" and any(isinstance(layer, LOOPED) for layer in modules):
            return Loop().bind(setting)
        try:
            return tried(Vmap(), setting)
        except InputError as error:
            log.warning("%s; falling back to the loop engine", error)
            return Loop().bind(setting)


def tried(how: Vmap, setting: Setting) -> Engine:
    """The vmap engine, refused with the reason where the module cannot be mapped over devices."""
    engine = how.bind(setting)
    try:
        engine.probe()
    except Exception as error:
        raise InputError(f"module or loss cannot be mapped over devices ({short(error)}): use engine=Loop()") from error
    return engine
