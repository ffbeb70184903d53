"""Methods that the papers compare with, under the same interface."""

from .cg_boost import CGBoost
from .kim import KimFDA
from .lp_b import LPB
from .lp_beta import LPBeta

__all__ = ["LPB", "CGBoost", "KimFDA", "LPBeta"]
