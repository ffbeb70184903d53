"""After: a kernel of what a transformer makes of the columns, written ``kernel.after(...)``."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .._sklearn import check_sample_weight, num_samples, safe_indexing
from .base import Kernel
from .tables import (
    SharedTable,
    as_table,
    check_numbers,
    copied,
    is_frame,
    naming,
    refuse_masked,
    refuse_repeated_columns,
)
from .view_tables import entries_of_one_column


class After(Kernel):
    """A kernel of what a transformer makes of the columns, written ``kernel.after(transformer)``.

    ``fit`` learns a clone of the transformer, then a clone of the kernel on its output. The
    columns reach the transformer as they are, text and missing values included; what it returns
    has to suit the kernel. Kernels of a union after equal transformers of the same columns share
    one, unless its ``random_state`` is None. In ``kernel.after(a).after(b)``, `b` comes first, as
    in a composition of functions.

    Parameters
    ----------
    kernel : Kernel
        Its own columns, and those of the parts of a sum or product, are columns of the output.
    transformer : scikit-learn transformer or Pipeline of transformers
        Learnt without labels. One that takes texts, such as TfidfVectorizer, is given the texts of
        a single column, or of a view of texts. It is given the weights of rows if its ``fit`` has
        a parameter `sample_weight`, which those of Pipeline and ColumnTransformer have not; rows
        of weight zero it never sees.
    columns : see :class:`Kernel`
        The columns that are transformed.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted.
    transformer_ : transformer
        The transformer, fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from manykernels.kernels import RBF
    >>> X = pd.DataFrame({"size": [10.0, 30.0], "colour": ["red", "blue"], "id": [1, 2]})
    >>> encoder = make_column_transformer(
    ...     (StandardScaler(), ["size"]), (OneHotEncoder(), ["colour"])
    ... )
    >>> kernel = RBF(gamma=0.1).on(["size", "colour"]).after(encoder)
    >>> kernel.fit(X)(X).round(2)
    array([[1.  , 0.55],
           [0.55, 1.  ]])
    >>> RBF().after(StandardScaler()).set_params(transformer__with_std=False)
    After(kernel=RBF(), transformer=StandardScaler(with_std=False))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [Kernel]}

    def __init__(self, kernel: Kernel, transformer: Any, *, columns: Any = None) -> None:
        self.kernel = kernel
        self.transformer = transformer
        self.columns = columns

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def _title(self) -> str:
        return f"{self.kernel._title} after {type(self.transformer).__name__}"

    @property
    def _output_title(self) -> str:
        return f"{self._title}, output of the transformer"

    def _validated(self, X: Any) -> SharedTable:
        refuse_masked(X, "X")
        return SharedTable(self._texts(X) if _takes_texts(self.transformer) else as_table(X))

    def _texts(self, X: Any) -> np.ndarray:
        """The entries of one column, or single objects as they are."""
        rows = entries_of_one_column(X, "the transformer takes one text per row")
        for place, text in enumerate(rows):
            if not isinstance(text, str | bytes):
                raise ValueError(f"the transformer takes texts, but row {place} is {text!r}.")
        return rows

    def _check_widths(self, X: Any, Y: Any) -> None:
        if not _takes_texts(self.transformer):
            super()._check_widths(X, Y)

    def _fit(self, X: SharedTable, sample_weight: Any) -> None:
        self._check_transformer()
        weights = check_sample_weight(
            sample_weight, X.X, dtype=np.float64, ensure_non_negative=True
        )
        key = "learnt", _fingerprint(self.transformer, drawn=False), weights.tobytes()
        transformer, output = X.once(key, lambda: self._learnt(X, weights))
        with naming(self._output_title):
            kernel = clone(self.kernel).fit(output, sample_weight=weights[weights > 0])
        self.n_features_in_ = X.shape[1] if len(X.shape) == 2 else 1
        self.transformer_, self.kernel_ = transformer, kernel
        self._fingerprint = _fingerprint(transformer)
        if weights.all():
            X.once(self._fingerprint, lambda: output)

    def _learnt(self, X: SharedTable, weights: np.ndarray) -> tuple[Any, SharedTable]:
        """A fitted transformer, and what it makes of the rows that count."""
        rows = np.flatnonzero(weights)
        table = X.X if len(rows) == len(weights) else safe_indexing(X.X, rows)
        weights = weights[rows]
        weighted = has_fit_parameter(self.transformer, "sample_weight") and (weights != 1).any()
        transformer = clone(self.transformer)
        with naming(self._title), _explaining(table):
            # Copies, since a transformer with copy=False writes into the table that it is given.
            transformer.fit(copied(table), **({"sample_weight": weights} if weighted else {}))
        return transformer, SharedTable(self._transformed(transformer, table))

    def _evaluate(self, X: SharedTable, Y: SharedTable | None) -> np.ndarray:
        X, Y = self._outputs(X, Y)
        with naming(self._output_title):
            return self.kernel_(X, Y)

    def _diagonal(self, X: SharedTable) -> np.ndarray:
        X, _ = self._outputs(X)
        with naming(self._output_title):
            return self.kernel_.diag(X)

    def _compared(self, X: Any, Y: Any) -> Any:
        self._validate_params()
        X, Y = self._outputs(*self._prepared(X, Y))
        with naming(self._output_title):
            return self.kernel_._compared(X, Y)

    # -- transforming ----------------------------------------------------------------------

    def _check_transformer(self) -> None:
        needed = ("fit", "transform", "get_params")
        missing = [name for name in needed if not hasattr(self.transformer, name)]
        if isinstance(self.transformer, type) or missing:
            reason = f"has no {missing[0]}" if missing else "is a class, not an instance"
            raise TypeError(
                f"{type(self.kernel).__name__}.after: {self.transformer!r} {reason}; a "
                "scikit-learn transformer is needed, such as StandardScaler()."
            )

    def _outputs(self, X: SharedTable, Y: SharedTable | None = None) -> tuple[Any, Any]:
        if not hasattr(self, "transformer_"):
            raise NotFittedError(
                f"{self._title}: the transformer is learnt from training rows: call fit first."
            )
        return self._output(X), None if Y is None else self._output(Y)

    def _output(self, X: SharedTable) -> SharedTable:
        """What the transformer makes of a table, once for all kernels with an equal one."""
        make = lambda: SharedTable(self._transformed(self.transformer_, X.X))  # noqa: E731
        output: SharedTable = X.once(self._fingerprint, make)
        return output

    def _transformed(self, transformer: Any, X: Any) -> Any:
        with naming(self._title):
            with _explaining(X):
                output = transformer.transform(copied(X))
            if num_samples(output) != num_samples(X):
                raise ValueError(
                    f"the transformer returned {num_samples(output)} rows for {num_samples(X)}; "
                    "each row has to be transformed to one row."
                )
        return output


@contextmanager
def _explaining(table: Any) -> Iterator[None]:
    """Name the column behind an error of a transformer that does not."""
    try:
        yield
    except Exception as error:
        if not is_frame(table):
            raise
        refuse_repeated_columns(table)
        unlike = isinstance(error, np.exceptions.DTypePromotionError)
        if unlike or "could not convert string to float" in str(error):
            check_numbers(table, "X", "Choose other columns, or encode it first.")
        raise


def _takes_texts(transformer: Any) -> bool:
    """Whether a transformer takes one text per row, as TfidfVectorizer does, and no table."""
    first = transformer.steps[0][1] if isinstance(transformer, Pipeline) else transformer
    if isinstance(first, type) or not hasattr(first, "__sklearn_tags__"):
        return False
    tags = get_tags(first).input_tags
    return bool(tags.string and not tags.two_d_array)


def _fingerprint(transformer: Any, *, drawn: bool = True) -> Any:
    """Equal only for transformers in the same state.

    Equal to nothing else if the state cannot be written down, or if random numbers are not
    `drawn` yet and will be others each time.
    """
    parameters = {} if drawn else transformer.get_params()
    if any(name.endswith("random_state") and value is None for name, value in parameters.items()):
        return object()
    try:
        return hashlib.sha256(pickle.dumps(transformer)).digest()
    except Exception:  # whatever a foreign object raises
        return object()
