"""What is optimised: convex functions of the kernel weights."""

from .base import Certificate, Evaluation, KernelOperator, Loss, Outline
from .joint import JointSquareLoss
from .kim import KimLoss
from .square import SquareLoss

__all__ = [
    "Certificate",
    "Evaluation",
    "JointSquareLoss",
    "KernelOperator",
    "KimLoss",
    "Loss",
    "Outline",
    "SquareLoss",
]
