"""Gates, which weight kernels differently at different samples, and their input features.

Regions, in which kernels have weights of their own, are found before any weight is learnt.
"""

from .features import KernelComponents
from .gates import Gate, Gaussian, PerCluster, PerSample, Sigmoid, Softmax
from .regions import GivenRegions, KernelRegions

__all__ = [
    "Gate",
    "Gaussian",
    "GivenRegions",
    "KernelComponents",
    "KernelRegions",
    "PerCluster",
    "PerSample",
    "Sigmoid",
    "Softmax",
]
