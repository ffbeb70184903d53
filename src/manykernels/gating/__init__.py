"""Gates, which weight kernels differently at different samples, and their input features.

Regions, in which kernels have weights of their own, are found before any weight is learnt.
"""

from .features import GatingFeatures, KernelComponents
from .gates import GATES, Gate, Gaussian, PerCluster, PerSample, Sigmoid, Softmax, as_gate
from .regions import GivenRegions, KernelRegions

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
