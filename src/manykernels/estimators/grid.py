"""Grids of parameters: their points, checked values, sets of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .weights import EVIDENCE

#: p by default: the fewest kernels, the plain sum, and two between. On ten data sets MKFDACV was
#: as accurate as with the twelve of Yan et al. (2012) and ten λ, in 0.37 of the time.
DEFAULT_NORMS = (1.0, 4.0 / 3.0, 2.0, np.inf)
#: Eight λ, from far below to far above the unit variance of normalised kernels.
DEFAULT_REGS = tuple(np.logspace(-4, 3, 8).tolist())
#: Penalties on a gate: plain multiple kernel learning, and two gates, the second as free as in
#: estimators with a given penalty.
DEFAULT_GATE_PENALTIES = (np.inf, 0.03, 0.003)
#: p by default of machines that choose C too. Those with gates or regions have the same, so that
#: where neither helps the choice is the one without them.
MACHINE_NORMS = (1.0, 1.5, np.inf)
# How many kernels an error names.
_NAMES_SHOWN = 20
# The least positive number, for values that have to be above zero.
_POSITIVE = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """Values of named parameters; a point has one of each, the last one changing fastest.

    If there are `kernel_sets`, positions of kernels by the name of their set, the first axis is
    "kernel_set". All points have the `fixed` parameters.
    """

    values: dict[str, np.ndarray]
    kernel_sets: dict[str, np.ndarray] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)

    def with_sets(self, kernel_sets: dict[str, np.ndarray]) -> Grid:
        """Return the same points for every one of several sets of kernels."""
        names = {"kernel_set": np.array(list(kernel_sets))}
        return Grid({**names, **self.values}, kernel_sets)

    def of_set(self, name: str) -> Grid:
        """Return the points of one set, without its axis."""
        values = {key: value for key, value in self.values.items() if key != "kernel_set"}
        return Grid(values, fixed={"kernel_set": name})

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(len(values) for values in self.values.values())

    @property
    def size(self) -> int:
        """Number of points."""
        return int(np.prod(self.shape))

    def at(self, position: Sequence[int]) -> dict[str, Any]:
        """Parameters of one point; that of largest evidence, with p = NaN, has no λ."""
        pairs = zip(self.values.items(), position, strict=True)
        params = {**self.fixed, **{name: values[k].item() for (name, values), k in pairs}}
        if np.isnan(params.get("p", 0.0)):
            params.pop("reg", None)
        return params

    @property
    def params(self) -> list[dict[str, Any]]:
        """Parameters of every point."""
        return [self.at(position) for position in product(*map(range, self.shape))]

    def columns(self) -> dict[str, np.ndarray]:
        """Value of each parameter at every point, as scikit-learn's searches call them."""
        meshes = np.meshgrid(*self.values.values(), indexing="ij")
        columns = dict(zip(self.values, (mesh.ravel() for mesh in meshes), strict=True))
        if "p" in columns and "reg" in columns:
            columns["reg"] = np.where(np.isnan(columns["p"]), np.nan, columns["reg"])
        return {f"param_{name}": values for name, values in columns.items()}

    @property
    def distinct(self) -> np.ndarray:
        """Mask of the points that differ: the evidence does not depend on λ of the grid."""
        mask = np.ones(self.shape, dtype=bool)
        if "p" in self.values and "reg" in self.values:
            mask[..., np.isnan(self.values["p"]), 1:] = False
        return mask.ravel()


# -- values ----------------------------------------------------------------------------------


def checked_norms(given: Any, default: tuple[float, ...] = DEFAULT_NORMS) -> np.ndarray:
    """Norms p of a grid."""
    return _checked_values(given, default, "ps", 1.0, "at least 1")


def norms_or_evidence(estimator: Any, *, by_default: bool) -> np.ndarray:
    """Norms p of the grid of a square loss, NaN for "evidence", which may be tried by default."""
    given, closed_form = estimator.ps, isinstance(estimator.cv, str)
    if given is None:
        norms = checked_norms(None)
        return np.append(norms, np.nan) if by_default and not closed_form else norms
    texts = [value for value in given if isinstance(value, str)]
    if any(text != EVIDENCE for text in texts) or len(texts) > 1:
        raise ValueError(
            f'ps must be a list of numbers, each at least 1, and "evidence"; got {given!r}.'
        )
    numbers = [value for value in given if not isinstance(value, str)]
    if not texts:
        return checked_norms(given)
    if closed_form:
        raise ValueError(
            f'ps={given!r} does not go with cv="closed-form": weights of largest evidence are '
            "judged by folds, such as cv=5."
        )
    return np.append(checked_norms(numbers) if numbers else [], np.nan)


def checked_regs(given: Any, default: tuple[float, ...] = DEFAULT_REGS) -> np.ndarray:
    """Regularisations λ of a grid."""
    return checked_positive(given, default, "regs")


def checked_positive(given: Any, default: ArrayLike, name: str) -> np.ndarray:
    """Positive and finite values of the parameter `name` of an estimator."""
    return _checked_finite(given, default, name, _POSITIVE, "positive")


def checked_non_negative(given: Any, default: ArrayLike, name: str) -> np.ndarray:
    """Finite values of the parameter `name` that are not below zero."""
    return _checked_finite(given, default, name, 0.0, "at least 0")


def checked_gate_penalties(given: Any) -> np.ndarray:
    """Penalties on a gate; with infinity it is constant."""
    return _checked_values(given, DEFAULT_GATE_PENALTIES, "penalty", 0.0, "at least 0")


def checked_region_numbers(given: Any, default: ArrayLike) -> np.ndarray:
    """Numbers of regions to choose from."""
    values = np.asarray(default if given is None else given, dtype=object)
    if values.ndim != 1 or len(values) == 0 or not all(map(_is_region_number, values)):
        raise ValueError(
            f"n_regions must be a non-empty list of whole numbers, each at least 1; got {given!r}."
        )
    return _refused_equal(values.astype(np.intp), given, "n_regions")


def _is_region_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def checked_sharpnesses(given: Any, default: ArrayLike) -> np.ndarray:
    """Return the candidate sharpnesses of region boundaries; infinity: one region per sample."""
    return _checked_values(given, default, "sharpness", 0.0, "at least 0")


def _checked_finite(
    given: Any, default: ArrayLike, name: str, least: float, bound: str
) -> np.ndarray:
    values = _checked_values(given, default, name, least, bound)
    if np.isinf(values).any():
        raise ValueError(f"{name} must be finite.")
    return values


def _checked_values(
    given: Any, default: ArrayLike, name: str, least: float, bound: str
) -> np.ndarray:
    values = np.asarray(default if given is None else given, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not (values >= least).all():
        raise ValueError(
            f"{name} must be a non-empty list of numbers, each {bound}; got {given!r}."
        )
    return _refused_equal(values, given, name)


def _refused_equal(values: np.ndarray, given: Any, name: str) -> np.ndarray:
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name} has equal values: {given!r}.")
    return values


# -- sets of kernels -------------------------------------------------------------------------


def checked_kernel_sets(given: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the positions of the kernels of every set, in the order of `names`.

    Empty if `given` is None: the kernels do not compete.
    """
    if given is None:
        return {}
    if not given:
        raise ValueError(
            "kernel_sets has no sets: pass a dict of names of sets and lists of kernels, or None."
        )
    sets: dict[str, np.ndarray] = {}
    for name, kernels in given.items():
        if not isinstance(name, str):
            raise TypeError(f"kernel_sets: names of sets must be strings, got {name!r}.")
        positions = _kernels_of_set(name, kernels, names)
        for other, others in sets.items():
            if np.array_equal(positions, others):
                raise ValueError(f"kernel_sets: {other!r} and {name!r} have the same kernels.")
        sets[name] = positions
    return sets


def _kernels_of_set(name: str, kernels: Any, names: Sequence[str]) -> np.ndarray:
    """Return the positions of kernels that are listed by name, or by patterns of names."""
    where = f"kernel_sets[{name!r}]"
    listed = [kernels] if isinstance(kernels, str) else kernels
    if not isinstance(listed, list | tuple | np.ndarray) or len(listed) == 0:
        raise ValueError(f"{where} must be a list of kernel names, at least one; got {kernels!r}.")
    members: set[int] = set()
    for k, entry in enumerate(listed):
        if not isinstance(entry, str):
            raise TypeError(f"{where} has {entry!r}, which is no name of a kernel.")
        if entry in listed[:k]:
            raise ValueError(f"{where} has {entry!r} twice.")
        exact = [j for j, kernel in enumerate(names) if kernel == entry]
        matched = exact or [j for j, kernel in enumerate(names) if fnmatchcase(kernel, entry)]
        if not matched:
            known = ", ".join(names[:_NAMES_SHOWN])
            if len(names) > _NAMES_SHOWN:
                known += f" and {len(names) - _NAMES_SHOWN} more"
            raise ValueError(
                f"{where} has {entry!r}, which is the name of no kernel and matches none. The "
                f"kernels are {known}."
            )
        members.update(matched)
    return np.array(sorted(members))
