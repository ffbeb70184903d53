"""Which kernels belong to which view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import KernelStack, KernelUnion, OfView, Views


@dataclass(frozen=True)
class ViewKernels:
    """Kernels of one view, as positions in a stack.

    Attributes
    ----------
    name : str
    kernels : ndarray of int
        All that see the view, and go when it is left out.
    own : ndarray of int
        Those that see no other view; they stay when it is used alone.
    """

    name: str
    kernels: np.ndarray
    own: np.ndarray


def views_of(
    stack: KernelStack, union: KernelUnion | None, X: Any, groups: Any
) -> list[ViewKernels]:
    """The `groups`, or else the views of X, or else every kernel for itself.

    `union` has the kernels of the stack unless they are precomputed. A precomputed stack may say
    itself which view each kernel is of.
    """
    names = stack.names
    if groups is not None:
        views = _of_groups(groups, names)
    elif isinstance(X, Views) and union is not None:
        views = _of_tables(union, X)
    elif union is None and stack.views is not None:
        pairs = list(zip(stack.views, names, strict=True))
        named = {view: [name for own, name in pairs if own == view] for view in stack.views}
        views = _of_groups(named, names)
    else:
        views = [ViewKernels(name, np.array([j]), np.array([j])) for j, name in enumerate(names)]
    for view in views:
        if len(view.kernels) == len(names):
            others = "it is the only one" if len(views) == 1 else "all kernels belong to it"
            raise ValueError(
                f"View {view.name!r} cannot be left out: {others}. Importance is a comparison of "
                "at least two views."
            )
    return views


def _of_tables(union: KernelUnion, X: Views) -> list[ViewKernels]:
    seen = [_views_seen(kernel) for kernel in dict(union.kernels).values()]
    views = []
    for name in X:
        kernels = [j for j, own in enumerate(seen) if name in own]
        if not kernels:
            raise ValueError(
                f"View {name!r} has no kernel: add one, such as RBF().of({name!r}), or leave the "
                "view out of X."
            )
        own = [j for j in kernels if seen[j] == {name}]
        views.append(ViewKernels(name, np.array(kernels), np.array(own, dtype=int)))
    return views


def _views_seen(kernel: Any) -> set[str]:
    """Names of the views that a kernel compares, alone or as a sum or product."""
    if isinstance(kernel, OfView):
        return {kernel.view}
    parts = [getattr(kernel, side, None) for side in ("left", "right")]
    return {name for part in parts if part is not None for name in _views_seen(part)}


def _of_groups(groups: Any, names: list[str]) -> list[ViewKernels]:
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must be a dict from names of views to lists of kernel names, such as "
            f'{{"a view": [{names[0]!r}]}}; got {groups!r}.'
        )
    members = {}
    for view, given in groups.items():
        chosen = [given] if isinstance(given, str) else list(given)
        if not chosen:
            raise ValueError(f"Group {view!r} has no kernels.")
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"Group {view!r} has a kernel {name!r} that there is none of; the kernels are "
                    f"{', '.join(map(repr, names))}."
                )
        members[str(view)] = {names.index(name) for name in chosen}
    views = []
    for view, kernels in members.items():
        others = set().union(*(own for name, own in members.items() if name != view))
        views.append(ViewKernels(view, _sorted(kernels), _sorted(kernels - others)))
    return views


def _sorted(kernels: set[int]) -> np.ndarray:
    return np.array(sorted(kernels), dtype=int)
