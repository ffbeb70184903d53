"""Certified paths of norms and regularisations; leave-one-out of given weights in closed form."""

from .leave_one_out import LeaveOneOut, leave_one_out
from .path import LpPath, lp_path

__all__ = ["LeaveOneOut", "LpPath", "leave_one_out", "lp_path"]
