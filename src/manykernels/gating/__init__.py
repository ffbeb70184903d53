"""Where each kernel counts: gates, and the features they look at."""

from .features import GatingFeatures
from .gates import GATES, Gate, Gaussian, Sigmoid, Softmax, as_gate

__all__ = [
    "GATES",
    "Gate",
    "GatingFeatures",
    "Gaussian",
    "Sigmoid",
    "Softmax",
    "as_gate",
]
