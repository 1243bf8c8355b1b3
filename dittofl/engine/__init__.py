"""Engines: the same methods, mapped over devices in different ways."""

from dittofl.engine.auto import Auto, tried
from dittofl.engine.loop import Loop
from dittofl.engine.setting import Engine, Setting, Visit
from dittofl.engine.vmap import Vmap

__all__ = ["Auto", "Engine", "Loop", "Setting", "Visit", "Vmap", "tried"]
