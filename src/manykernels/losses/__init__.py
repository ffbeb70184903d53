"""What is optimised: convex functions of the kernel weights."""

from .base import Certificate, Evaluation, KernelOperator, Loss, Outline
from .box import BoxLoss
from .hinge import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from .joint import JointSquareLoss
from .kim import KimLoss
from .square import SquareLoss

__all__ = [
    "BoxLoss",
    "Certificate",
    "EpsilonInsensitiveLoss",
    "Evaluation",
    "HingeLoss",
    "JointSquareLoss",
    "JointSquaredHingeLoss",
    "KernelOperator",
    "KimLoss",
    "Loss",
    "OneClassLoss",
    "Outline",
    "SquareLoss",
    "SquaredHingeLoss",
]
