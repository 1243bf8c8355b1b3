"""Attacks: on the data before training, and on what is sent."""

from dittofl.attack.alie import ALIE
from dittofl.attack.attack import A1, A2, A3, Attack
from dittofl.attack.backdoor import Backdoor, EdgeCase
from dittofl.attack.broken import Forge, Send
from dittofl.attack.fang import FangKrum, FangTrimmedMean
from dittofl.attack.ipm import IPM
from dittofl.attack.labels import Mirror, Relabel
from dittofl.attack.minmax import Along, MinMax, MinSum
from dittofl.attack.replacement import ModelReplacement
from dittofl.attack.trigger import Features, Patch
from dittofl.attack.updates import Gaussian, Replace, SignFlip

__all__ = [
    "A1",
    "A2",
    "A3",
    "ALIE",
    "IPM",
    "Along",
    "Attack",
    "Backdoor",
    "EdgeCase",
    "FangKrum",
    "FangTrimmedMean",
    "Features",
    "Forge",
    "Gaussian",
    "MinMax",
    "MinSum",
    "Mirror",
    "ModelReplacement",
    "Patch",
    "Relabel",
    "Replace",
    "Send",
    "SignFlip",
]
