"""Methods that the papers compare with, and others that are in use, under the same interface."""

from .cg_boost import CGBoost
from .easymkl import EasyMKL
from .kim import KimFDA
from .lp_b import LPB
from .lp_beta import LPBeta
from .obscure import OBSCURE

__all__ = ["LPB", "OBSCURE", "CGBoost", "EasyMKL", "KimFDA", "LPBeta"]
