"""Certified paths of norms and regularisations; leave-one-out of given weights in closed form."""

from .leave_one_out import leave_one_out
from .path import lp_path

__all__ = ["leave_one_out", "lp_path"]
