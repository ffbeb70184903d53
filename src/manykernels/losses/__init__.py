"""What is optimised: convex functions of the kernel weights."""

from .base import DualPoint, Evaluation, KernelOperator, Loss, Outline
from .box import BoxLoss
from .certificate import Certificate, Guarantee
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
    "DualPoint",
    "EpsilonInsensitiveLoss",
    "Evaluation",
    "Guarantee",
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
