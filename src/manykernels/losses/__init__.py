"""What is optimised: convex functions of the kernel weights."""

from .base import Certificate, Evaluation, KernelOperator, Loss, Outline
from .joint import JointSquareLoss
from .square import SquareLoss

__all__ = [
    "Certificate",
    "Evaluation",
    "JointSquareLoss",
    "KernelOperator",
    "Loss",
    "Outline",
    "SquareLoss",
]
