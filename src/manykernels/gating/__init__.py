"""Gates, which weight kernels differently at different samples, and their input features.

Regions, in which kernels have weights of their own, are found before any weight is learnt.
"""

from .components import KernelComponents
from .features import GatingFeatures
from .gates import Gate, Gaussian, Sigmoid, Softmax
from .indicators import PerCluster, PerSample
from .names import GATES, as_gate
from .regions import KernelRegions
from .shares import GivenRegions

__all__ = [
    "GATES",
    "Gate",
    "GatingFeatures",
    "Gaussian",
    "GivenRegions",
    "KernelComponents",
    "KernelRegions",
    "PerCluster",
    "PerSample",
    "Sigmoid",
    "Softmax",
    "as_gate",
]
