"""Whatever is accepted as a parameter ``kernels``, as a union of named kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from .adapters import as_kernel
from .after import After
from .auto import auto_kernels
from .base import Kernel
from .of_view import names_its_views, views_of
from .presence import known_where_possible
from .tables import naming
from .union import KernelUnion
from .views import Views, are_views, as_views


def as_union(kernels: Any) -> KernelUnion:
    """A new union of whatever is accepted as ``kernels``, but None."""
    if isinstance(kernels, KernelUnion):
        return clone(kernels)
    if isinstance(kernels, Mapping):
        return KernelUnion([(name, clone(kernel, safe=False)) for name, kernel in kernels.items()])
    if isinstance(kernels, list | tuple):
        if _are_pairs(kernels):
            return KernelUnion(list(clone(kernels, safe=False)))
        return KernelUnion(_named([as_kernel(kernel) for kernel in kernels]))
    return KernelUnion(_named([as_kernel(kernels)]))


def transforms(kernels: Any) -> bool:
    """Whether some of the `kernels` is one of what a transformer makes of its columns."""
    if kernels is None:
        return False
    if isinstance(kernels, Mapping):  # kernels by their names, or by those of views
        return any(map(transforms, kernels.values()))
    pairs = as_union(kernels)._pairs
    if not isinstance(pairs, list | tuple):
        return False  # very many, made when they are asked for, of the columns as they are
    parts = [as_kernel(kernel) for _, kernel in pairs]
    parts += [inner for part in parts for inner in part.get_params(deep=True).values()]
    return any(isinstance(part, After) for part in parts)


def kernels_for(X: Any, kernels: Any = None, *, missing: str = "error") -> KernelUnion:
    """The union of kernels that an estimator makes of its parameter ``kernels``, for this X.

    Parameters
    ----------
    X : table, dict of tables or Views
    kernels : kernel, KernelUnion, dict, list of (name, kernel) or None, optional
        As for :class:`~manykernels.MKFDA`: with several views, kernels for every view, or a dict
        with those of each view. None takes the default ones.
    missing : {"error", "mean", "conditional"}, default="error"
        Unless it is "error", rows of a table may lack all columns of a kernel.

    Returns
    -------
    union : KernelUnion
        Not fitted. Kernels of a view have its name, or "view:kernel" if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import Views, kernels_for
    >>> views = Views({"audio": np.eye(3), "text": np.ones((3, 2))})
    >>> union = kernels_for(views, {"audio": "rbf", "text": "linear"})
    >>> union.fit(views)(views)
    KernelStack(2 kernels, 3 x 3: 'audio', 'text')
    """
    if not are_views(X):
        union = auto_kernels(X) if kernels is None else as_union(kernels)
        if missing == "error":
            return union
        pairs = [(name, as_kernel(kernel)) for name, kernel in union._pairs]
        return KernelUnion([(name, known_where_possible(kernel)) for name, kernel in pairs])
    X = as_views(X)
    if isinstance(kernels, Mapping):
        bound = {name: one for name, one in kernels.items() if _is_bound(one)}
        apart = {name: one for name, one in kernels.items() if name not in bound}
        seen = {view for one in bound.values() for view in views_of(one)}
        _check_views(apart, seen, X)
        of_views = [pair for view, one in apart.items() for pair in _of_view(one, view, X)]
        return KernelUnion(of_views + [(name, clone(one)) for name, one in bound.items()])
    if kernels is None:
        return KernelUnion([pair for view in X for pair in _of_view(None, view, X)])
    pairs = [(name, as_kernel(kernel)) for name, kernel in as_union(kernels)._pairs]
    single = not isinstance(kernels, KernelUnion | list | tuple)
    of_views = [
        (view if single else f"{view}:{name}", kernel.of(view))
        for view in X
        for name, kernel in pairs
        if not names_its_views(kernel)
    ]
    return KernelUnion(of_views + [pair for pair in pairs if names_its_views(pair[1])])


def _is_bound(kernel: Any) -> bool:
    return isinstance(kernel, Kernel) and names_its_views(kernel)


def _of_view(kernels: Any, view: str, views: Views) -> list[tuple[str, Any]]:
    """Named kernels of one view, from whatever a dict of kernels has for it."""
    with naming(f"view {view!r}"):
        pairs = (auto_kernels(views[view]) if kernels is None else as_union(kernels))._pairs
        several = kernels is None or isinstance(kernels, KernelUnion | Mapping | list | tuple)
        return [
            (f"{view}:{name}" if several else view, _bound_to(as_kernel(kernel), view))
            for name, kernel in pairs
        ]


def _bound_to(kernel: Kernel, view: str) -> Kernel:
    return kernel if names_its_views(kernel) else kernel.of(view)


def _check_views(kernels: Mapping[str, Any], seen: set[str], views: Views) -> None:
    """A dict of kernels has an entry for every view that no other kernel has `seen`."""
    unknown = [name for name in kernels if name not in views]
    without = [name for name in views if name not in kernels and name not in seen]
    if unknown:
        raise ValueError(
            f"kernels has an entry {unknown[0]!r}, but X has no such view; its views are "
            f"{', '.join(map(repr, views))}."
        )
    if without:
        raise ValueError(
            f"There is no kernel for view {without[0]!r}: add one to kernels (None takes the "
            "default ones), or leave the view out of X."
        )


def have_names(kernels: Any) -> bool:
    """Whether `kernels` is a dict or has pairs (name, kernel), but is no union."""
    return isinstance(kernels, Mapping) or (
        isinstance(kernels, list | tuple) and _are_pairs(kernels)
    )


def parameters(kernels: Any) -> dict[str, Any]:
    """Parameters of named kernels, by ``<name>__<parameter>``, and the kernels by name."""
    nested: dict[str, Any] = as_union(_with_unions(kernels)).get_params()
    del nested["kernels"]
    return nested


def with_parameters(kernels: Any, params: dict[str, Any]) -> Any:
    """New kernels like these with parameters set, by ``<name>__<parameter>``."""
    union = as_union(_with_unions(kernels)).set_params(**params)
    return dict(union.kernels) if isinstance(kernels, Mapping) else union.kernels


def _with_unions(kernels: Any) -> Any:
    """The same, but the named kernels of each view a union, which has parameters."""
    if not isinstance(kernels, Mapping):
        return kernels
    return {name: as_union(one) if have_names(one) else one for name, one in kernels.items()}


def _are_pairs(kernels: Any) -> bool:
    return any(isinstance(item, tuple) for item in kernels)


def _named(kernels: list[Any]) -> list[tuple[str, Any]]:
    """Kernels under the names of their classes, numbered where a class comes twice."""
    classes = [type(kernel).__name__.lower() for kernel in kernels]
    totals, seen, names = Counter(classes), Counter[str](), []
    for name in classes:
        seen[name] += 1
        names.append(name if totals[name] == 1 else f"{name}{seen[name]}")
    return list(zip(names, kernels, strict=True))
