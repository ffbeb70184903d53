"""Gates, which weight kernels differently at different samples, and their input features."""

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
