"""What is optimised: convex functions of the kernel weights."""

from .base import Certificate, Evaluation, KernelOperator, Loss
from .square import SquareLoss

__all__ = ["Certificate", "Evaluation", "KernelOperator", "Loss", "SquareLoss"]
