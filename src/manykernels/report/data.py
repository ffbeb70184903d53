"""What the samples of a report are like: sizes, gaps, classes, and how alike their kernels are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from .._folds import about_repeats
from ..estimators._inputs import groups_of
from ..kernels import KernelStack, Views
from ..kernels.tables import is_frame
from .plain import counted, listed
from .samples import Samples, row_keys, training_source

# Rows whose kernels are compared: a thousand tell cosines to two digits, in a second.
_MOST_ROWS = 1000
# Kernels whose cosines are shown as a table; more cannot be read.
_MOST_KERNELS = 40
# A class with fewer samples than folds by default cannot be in all of them.
_FEW_OF_CLASS = 5
# From this cosine on two kernels say nearly the same.
_ALIKE = 0.99
# Columns that are named where something is wrong with them.
_NAMED = 5


def data_checks(estimator: Any, samples: Samples | None) -> dict[str, Any]:
    """Sizes, and what was looked for with what was found; without samples what the model knows."""
    if samples is None:
        return _known_by_model(estimator)
    data = samples.data
    found: dict[str, Any] = {"n_rows": len(samples)}
    checks: list[dict[str, Any]] = []
    if isinstance(data, KernelStack):
        found["tables"] = [
            {"name": "kernel matrices", "columns": data.shape[1], "lacking": 0, "kind": "stack"}
        ]
    else:
        tables = dict(data.items()) if isinstance(data, Views) else {"X": data}
        has = {name: data.has(name) for name in tables} if isinstance(data, Views) else {}
        found["tables"] = [
            {
                "name": name,
                "columns": 1 if len(table.shape) == 1 else table.shape[1],
                "lacking": int(np.count_nonzero(~has[name])) if name in has else 0,
                "kind": _kind(table),
            }
            for name, table in tables.items()
        ]
        for name, table in tables.items():
            checks += _of_table(name, table)
        keys = row_keys(data)
        meaning = "one sample" if about_repeats(groups_of(data)) else "different samples"
        checks.append(
            _checked(
                "Equal rows",
                len(keys) - len(set(keys)),
                lambda n: (
                    f"{counted(n, 'row')} with the same entries as another; equal rows "
                    f"count as {meaning}"
                ),
                "no two rows are equal",
            )
        )
    if samples.new is not None and samples.new.any() and not samples.new.all():
        seen = int(np.count_nonzero(~samples.new))
        checks.append(
            {
                "name": "Training samples",
                "good": False,
                "found": f"{counted(seen, 'row')} of X equal to training samples",
            }
        )
    if samples.y is not None and is_classifier(estimator) and samples.y.ndim == 1:
        labels, sizes = np.unique(samples.y, return_counts=True)
        found["classes"] = [
            {"name": str(one), "n": int(n)} for one, n in zip(labels, sizes, strict=True)
        ]
        few = labels[sizes < _FEW_OF_CLASS]
        checks.append(
            _checked(
                "Small classes",
                len(few),
                lambda n: (
                    f"fewer than {_FEW_OF_CLASS} samples of {listed(few[:_NAMED])}"
                    + (" and others" if n > _NAMED else "")
                ),
                f"every class has {_FEW_OF_CLASS} samples or more",
            )
        )
    elif samples.y is not None and samples.y.dtype.kind in "iuf" and samples.y.ndim == 1:
        found["y"] = np.quantile(samples.y, [0.0, 0.25, 0.5, 0.75, 1.0])
    return {**found, "checks": checks}


def _known_by_model(estimator: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"checks": []}
    if hasattr(estimator, "feature_names_in_"):
        found["names"] = [str(name) for name in estimator.feature_names_in_]
    if hasattr(estimator, "n_features_in_"):
        found["n_features"] = int(estimator.n_features_in_)
    if hasattr(estimator, "classes_") and not hasattr(estimator, "estimators_"):
        found["class_names"] = [str(name) for name in estimator.classes_]
    return found


def _checked(name: str, number: int, found: Any, good: str) -> dict[str, Any]:
    return {"name": name, "good": number == 0, "found": found(number) if number else good}


def _kind(table: Any) -> str:
    if sparse.issparse(table):
        return "sparse numbers"
    if is_frame(table):
        return "data frame"
    return "numbers" if np.asarray(table).dtype.kind in "biuf" else "text or objects"


def _of_table(name: str, table: Any) -> list[dict[str, Any]]:
    """Missing values, and columns that are the same everywhere."""
    if len(table.shape) == 1:
        return []
    of = "" if name == "X" else f", {listed([name])}"
    if is_frame(table):
        columns = [np.asarray(table[one]) for one in table.columns]
        names = [str(one) for one in table.columns]
    elif sparse.issparse(table):
        stored = sparse.csc_array(table)
        lows, highs = (np.asarray(m.todense()).ravel() for m in (stored.min(0), stored.max(0)))
        return [_constants(of, [f"{j}" for j in np.flatnonzero(lows == highs)])]
    else:
        array = np.asarray(table)
        columns, names = list(array.T), [f"{j}" for j in range(array.shape[1])]
    gaps = sum(int(np.count_nonzero(_missing(column))) for column in columns)
    equal = [one for one, column in zip(names, columns, strict=True) if _is_constant(column)]
    missing = _checked(f"Missing values{of}", gaps, lambda n: counted(n, "missing value"), "none")
    return [missing, _constants(of, equal)]


def _constants(of: str, names: list[str]) -> dict[str, Any]:
    return _checked(
        f"Constant columns{of}",
        len(names),
        lambda n: (
            f"{counted(n, 'column')}: {listed(names[:_NAMED])}"
            + (" and others" if n > _NAMED else "")
        ),
        "none",
    )


def _missing(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        # What is not equal to itself is NaN, or a kind of it.
        return np.array([one is None or bool(one != one) is True for one in column])
    return np.zeros(len(column), bool)


def _is_constant(column: np.ndarray) -> bool:
    known = column[~_missing(column)]
    return len(column) > 1 and all(one == known[0] for one in known[1:])


# -- alignment -------------------------------------------------------------------------------


def alignment_of(estimator: Any, samples: Samples) -> dict[str, Any] | str | None:
    """Cosines between the centred kernels; a sentence if there are too many, None if there is one.

    They are computed on some of the rows if there are many, and on rows that lack no kernel.
    """
    n_rows = len(samples)
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).round().astype(int))
    if len(estimator.kernel_names_) > _MOST_KERNELS:
        return (
            f"How alike kernels are is not shown: {len(estimator.kernel_names_)} are more than "
            f"{_MOST_KERNELS}. KernelStack.alignment computes it."
        )
    if isinstance(samples.data, KernelStack):
        if not samples.complete:
            return None
        stack = samples.data[np.ix_(rows, rows)]
    else:
        stack = training_source(estimator).union(samples.rows(rows))
    stack = _without_gaps(stack)
    if stack.n_kernels < 2 or len(stack) < 2:
        return None
    matrix = stack.alignment(centered=True)
    first, second = np.triu_indices(stack.n_kernels, k=1)
    values = matrix[first, second]
    most = int(values.argmax())
    return {
        "names": list(stack.names),
        "matrix": matrix,
        "n_rows": len(stack),
        "most": {
            "first": stack.names[first[most]],
            "second": stack.names[second[most]],
            "value": float(values[most]),
            "alike": bool(values[most] >= _ALIKE),
        },
        "mean": float(values.mean()),
    }


def _without_gaps(stack: KernelStack) -> KernelStack:
    """The Gram matrices of the samples that lack no kernel."""
    diagonals = np.array([np.diag(stack.kernel(j)) for j in range(stack.n_kernels)])
    known = np.flatnonzero(np.isfinite(diagonals).all(axis=0))
    if len(known) == len(stack) and stack.gram:
        return stack
    part = stack[np.ix_(known, known)]
    matrices = [part.kernel(j) for j in range(part.n_kernels)]
    return KernelStack.from_arrays(matrices, part.names, psd="ignore")
