"""as_kernel: everything that can stand where a kernel is expected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel

from .adapters import CallableKernel, GaussianProcessKernel, PairwiseKernel
from .base import Kernel
from .standard import RBF, ChiSquare, Cosine, Laplacian, Linear, Polynomial

# The defaults are those of sklearn.metrics.pairwise.pairwise_kernels.
NAMED_KERNELS: dict[str, Callable[[], Kernel]] = {
    "additive_chi2": partial(PairwiseKernel, "additive_chi2"),
    "chi2": ChiSquare,
    "cosine": Cosine,
    "laplacian": partial(Laplacian, gamma="auto"),
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "rbf": partial(RBF, gamma="auto"),
    "sigmoid": partial(PairwiseKernel, "sigmoid"),
}

_ACCEPTED = (
    "a kernel is a manykernels Kernel instance, one of the names "
    + ", ".join(repr(name) for name in NAMED_KERNELS)
    + ", a kernel of sklearn.gaussian_process.kernels, or a function f(X, Y) that returns a "
    "matrix"
)


@singledispatch
def as_kernel(kernel: Any) -> Kernel:
    """Turn anything that stands for a kernel into a :class:`Kernel`.

    Other types can join with ``as_kernel.register``.

    Parameters
    ----------
    kernel : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        A name means the kernel of that name, with the defaults, of
        :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Returns
    -------
    kernel : Kernel
        The very object if it is a :class:`Kernel` already.

    Examples
    --------
    >>> from manykernels.kernels import as_kernel
    >>> as_kernel("rbf")
    RBF(gamma='auto')
    """
    raise TypeError(f"{kernel!r} is not a kernel: {_ACCEPTED}.")


@as_kernel.register
def _kernel_itself(kernel: Kernel) -> Kernel:
    return kernel


@as_kernel.register
def _named_kernel(kernel: str) -> Kernel:
    if kernel not in NAMED_KERNELS:
        raise ValueError(f"There is no kernel named {kernel!r}: {_ACCEPTED}.")
    return NAMED_KERNELS[kernel]()


@as_kernel.register(SklearnGPKernel)
def _gaussian_process_kernel(kernel: SklearnGPKernel) -> Kernel:
    return GaussianProcessKernel(kernel)


@as_kernel.register(Callable)  # type: ignore[call-overload]
def _function(kernel: Callable) -> Kernel:
    return CallableKernel(kernel)


# Both can be called, but not as f(X, Y).
as_kernel.register(BaseEstimator, as_kernel.dispatch(object))
as_kernel.register(type, as_kernel.dispatch(object))
