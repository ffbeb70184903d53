"""Whatever is accepted as a parameter ``kernels``, as a union of named kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from ..kernels import KernelUnion, Linear, as_kernel, rbf_grid


def default_kernels() -> KernelUnion:
    """Kernels for any table: linear, and Gaussians from local to nearly linear."""
    widths = rbf_grid([0.25, 0.5, 1, 2, 4], gamma="scale").kernels
    return KernelUnion([("linear", Linear()), *widths])


def as_union(kernels: Any) -> KernelUnion:
    """A new union of whatever is accepted as ``kernels``."""
    if kernels is None:
        return default_kernels()
    if isinstance(kernels, KernelUnion):
        return clone(kernels)
    if isinstance(kernels, Mapping):
        return KernelUnion([(name, clone(kernel, safe=False)) for name, kernel in kernels.items()])
    if isinstance(kernels, list | tuple):
        if _are_pairs(kernels):
            return KernelUnion(list(clone(kernels, safe=False)))
        return KernelUnion(_named([as_kernel(kernel) for kernel in kernels]))
    return KernelUnion(_named([as_kernel(kernels)]))


def have_names(kernels: Any) -> bool:
    """Whether `kernels` is a dict or has pairs (name, kernel), but is no union."""
    return isinstance(kernels, Mapping) or (
        isinstance(kernels, list | tuple) and _are_pairs(kernels)
    )


def with_parameters(kernels: Any, params: dict[str, Any]) -> Any:
    """New kernels like these with parameters set, by ``<name>__<parameter>``."""
    union = as_union(kernels).set_params(**params)
    return dict(union.kernels) if isinstance(kernels, Mapping) else union.kernels


def _are_pairs(kernels: Any) -> bool:
    return any(isinstance(item, tuple) for item in kernels)


def _named(kernels: list[Any]) -> list[tuple[str, Any]]:
    """Kernels under the names of their classes, numbered where a class comes twice."""
    classes = [type(kernel).__name__.lower() for kernel in kernels]
    names = [
        name if classes.count(name) == 1 else f"{name}{1 + classes[:position].count(name)}"
        for position, name in enumerate(classes)
    ]
    return list(zip(names, kernels, strict=True))
