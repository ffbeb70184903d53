"""Default kernels of a table, chosen by the types of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from ..utils.sklearn import sample_weights
from ..utils.storable import storable
from . import tables
from .adapters import as_kernel
from .base import Kernel
from .categories import Categorical, Jaccard
from .columns import (
    entries_of,
    refuse_disguised,
    refuse_letters_read_as_digits,
    refuse_no_categories,
)
from .completion import known_where_possible
from .composition import After, names_its_views, views_of
from .relevance import RelevanceRBF
from .stack import KernelStack
from .standard import RBF, Cosine, Laplacian, Linear
from .strings import Spectrum
from .union import KernelUnion
from .views import Views, are_views, as_views

# -- Rank-based normal scores ---------------------------------------------------------------------


@storable
class NormalScores(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each entry by the normal quantile of its rank in the training column.

    A column of any distribution becomes nearly standard normal: skewed columns lose their tails,
    and the order of entries is kept. Unlike
    :class:`~sklearn.preprocessing.QuantileTransformer` it supports sample weights, where a row of
    weight two counts as two equal rows; it has no parameter for the number of quantiles; and the
    smallest and largest of n entries become ``∓Φ⁻¹(1 − 1/2n)``, not ∓5.2.

    An entry x becomes ``Φ⁻¹((F(x−) + F(x)) / 2)``, where F is the distribution function of the
    training column. Scores are interpolated between training entries and constant beyond them.

    Attributes
    ----------
    values_ : list of ndarray
        The sorted unique entries of each training column.
    scores_ : list of ndarray
        The scores of these entries.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import NormalScores
    >>> X = np.array([[1.0], [10.0], [100.0]])
    >>> NormalScores().fit(X).transform([[1.0], [10.0], [55.0], [1000.0]]).round(2)
    array([[-0.97],
           [ 0.  ],
           [ 0.48],
           [ 0.97]])
    """

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the distribution of every column.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (rows, columns)
        y : ignored
        sample_weight : array-like of shape (rows,), optional
        """
        X = self._checked(X, reset=True)
        weights = sample_weights(sample_weight, X)
        counted = weights > 0
        X, weights = X[counted], weights[counted]
        columns: list[Any] = [None] * X.shape[1]
        if np.ptp(weights) == 0.0:
            # Columns of different entries have the same scores, in one array.
            ordered = np.sort(X.T, axis=1)
            scores = _ranked(weights / weights.sum())
            for j in np.flatnonzero((ordered[:, 1:] > ordered[:, :-1]).all(axis=1)).tolist():
                columns[j] = ordered[j], scores
        for j, known in enumerate(columns):
            columns[j] = known or _scores(X[:, j], weights)
        self.values_ = [values for values, _ in columns]
        self.scores_ = [scores for _, scores in columns]
        return self

    def transform(self, X: object) -> np.ndarray:
        """Replace entries by their scores."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        output = np.empty_like(X)
        for j, (values, scores) in enumerate(zip(self.values_, self.scores_, strict=True)):
            output[:, j] = np.interp(X[:, j], values, scores)
        return output

    def _checked(self, X: object, *, reset: bool) -> np.ndarray:
        tables.check_numbers(X, "X")
        return validate_data(self, X, dtype=np.float64, reset=reset)


def _scores(column: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unique entries of a column, and the normal quantiles of their ranks."""
    values, places = np.unique(column, return_inverse=True)
    shares = np.bincount(places, weights=weights / weights.sum())
    return values, _ranked(shares)


def _ranked(shares: np.ndarray) -> np.ndarray:
    """Return the scores of entries in ascending order, from their shares of the weight."""
    scores: np.ndarray = ndtri(np.cumsum(shares) - shares / 2)
    return scores


# A dense table with a larger share of zeros is treated as sparse. Word counts have far more zeros
# than that, images of digits about a half.
_MOSTLY_ZEROS = 0.9

# Fewer columns of zeros and ones are treated as numbers: new rows may hold other values.
_FEWEST_BITS = 16

# A column of text with a larger share of numbers is assumed to be numeric, with mistakes.
_MOSTLY_NUMBERS = 0.5

# Properties of sequences: proteins have up to 26 letters, including those for unknown amino
# acids, and symbols for gaps and stops.
_GAPS = set("-*.")
_MOST_LETTERS = 30
_SEQUENCE_LENGTH = 20

# Advice in errors about columns that are neither numbers nor categories, and text in arrays.
_ENCODE = "Choose the columns to compare, as in RBF().on(['a', 'b']), or encode it first."
_AS_FRAME = "Pass a table with text as a data frame."
_NO_DEFAULT = (
    "There are no default kernels of single objects, such as strings that are no sequences: pass "
    "kernels, for texts Cosine().after(TfidfVectorizer()), for words Spectrum(2), for other "
    "objects a function k(X, Y)."
)
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)

Named = dict[str, Kernel]


def auto_kernels(view: object, *, relevance: bool = False) -> KernelUnion:
    """Return default kernels of a table as a union that can be inspected and modified.

    =================  =======================================================================
    numbers            linear, Gaussians of three widths and a Laplacian of standardised columns;
                       a Laplacian of their :class:`NormalScores`; a cosine of rows as they are, if
                       there are several columns
    zeros and ones     :class:`Jaccard` and a Gaussian; if sparse, a cosine of scaled columns
                       (16 columns or more; fewer are numbers like others)
    sparse             of ``log(1 + x)`` if nothing is negative: cosine, a Gaussian of rows of
                       length one, and a cosine of scaled columns
    categories         :class:`Categorical`, the share of equal entries and a wide Gaussian of it
    sequences          :class:`Spectrum` of one, two and three letters
    =================  =======================================================================

    A table is sparse if it is a sparse matrix, or if more than 90% of its entries are zero. Widths
    are relative to the median distance of training rows. In a data frame, columns of text and
    other categories have one kernel, and numeric and boolean columns have the kernels of numbers.
    The wide Gaussian is then one of all columns, and there is one more product of both.

    Sequences, such as proteins or DNA, are strings of letters of one case with a median length of
    at least 20, at most 30 different letters in total, and mostly different from one another.
    There are no default kernels of a list of other strings. In a data frame other strings are
    categories, unless nearly all are different, or they are numbers or dates stored as text: then
    an error names the column and the remedy.

    Parameters
    ----------
    view : {array-like, dataframe, sparse matrix} of shape (rows, columns), or list of sequences
        Training rows. They determine the type of the table only: scales and widths are learnt when
        the kernels are fitted.
    relevance : bool, default=False
        Add :class:`~manykernels.kernels.RelevanceRBF`, whose scales of columns are learnt from the
        targets, to the kernels of numbers, unless columns are more than rows. The kernels of
        :class:`~manykernels.MKRidgeCV`.

    Returns
    -------
    union : KernelUnion
        The kernels, not fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels import auto_kernels
    >>> X = pd.DataFrame({"size": [1.5, 2.5, 0.5], "colour": ["red", "blue", "red"]})
    >>> union = auto_kernels(X)
    >>> print(*dict(union.kernels), sep=", ")
    linear, rbf(0.5), rbf(1), laplacian, scores-laplacian, categories,
    numbers*categories, joined(5)
    >>> dict(union.kernels)["categories"]
    Categorical(columns=['colour'])
    """
    if (strings := tables.column_of_strings(view)) is not None:
        if not _are_sequences(strings.ravel()):
            raise ValueError(_NO_DEFAULT)
        kernels = _of_sequences(strings.ravel())
    else:
        table = _checked(view)
        kernels = _of_frame(table) if tables.is_frame(table) else _of_numbers(table)
        if relevance:
            kernels |= _of_relevance(table, kernels)
    return KernelUnion(list(kernels.items()))


def _checked(view: Any) -> Any:
    """Return `view` as a table; raise an error if it is none."""
    if isinstance(view, KernelStack):
        raise ValueError('A KernelStack holds kernels: pass it with kernels="precomputed".')
    if isinstance(view, Mapping) and not sparse.issparse(view):
        raise TypeError(
            "auto_kernels takes one table, got a dict of tables: use kernels_for(tables)."
        )
    if not sparse.issparse(view) and np.ndim(view) == 1:
        raise ValueError(_NO_DEFAULT)
    return tables.as_table(view)


# -- types of tables -------------------------------------------------------------------------


def _of_frame(frame: tables.DataFrame) -> Named:
    """Return kernels of numbers, sequences and categories, and a product of both."""
    numbers, categories, sequences = _types_of_columns(frame)
    for position in categories:
        if not _has_category_dtype(frame, position):
            (name,) = _labels(frame, [position])
            label = tables.column_label(frame, position)
            refuse_no_categories(entries_of(frame, position), label, name)
    kernels = _of_numbers_and_categories(frame, numbers, categories)
    return kernels | _of_sequence_columns(frame, sequences)


def _types_of_columns(frame: tables.DataFrame) -> tuple[list[int], list[int], list[int]]:
    """Return the positions of columns of numbers, of categories and of sequences."""
    odd = [position for position, dtype in enumerate(frame.dtypes) if not tables.is_numeric(dtype)]
    texts = [position for position in odd if _holds_categories(frame, position)]
    sequences = [position for position in texts if _are_sequences(entries_of(frame, position))]
    numbers = np.setdiff1d(np.arange(frame.shape[1]), texts).tolist()
    return numbers, np.setdiff1d(texts, sequences).tolist(), sequences


def _of_numbers_and_categories(
    frame: tables.DataFrame, numbers: list[int], categories: list[int]
) -> Named:
    if len(numbers) == frame.shape[1]:
        return _of_numbers(frame)
    kernels = _of_numbers(tables.select_columns(frame, numbers)) if numbers else {}
    kernels = {name: kernel.on(_labels(frame, numbers)) for name, kernel in kernels.items()}
    if not categories:
        return kernels
    equal = Categorical().on(_labels(frame, categories))
    wide = Categorical(width=_WIDE).on(_labels(frame, categories))
    if not numbers:
        return {"categories": equal, f"categories({_WIDE:g})": wide}
    # The product allows the effect of numbers to differ between categories. A wide Gaussian of all
    # columns has the same smoothness along numbers and categories, and all interactions.
    middle = kernels.get("rbf(1)", kernels.get("rbf(0.7)"))
    smooth = kernels.pop(f"rbf({_WIDE:g})", None)
    kernels |= {"categories": equal, "numbers*categories": middle * equal}
    return kernels if smooth is None else {**kernels, f"joined({_WIDE:g})": smooth * wide}


def _of_sequence_columns(frame: tables.DataFrame, positions: list[int]) -> Named:
    """Return kernels of sequence columns, named after the columns if there are several."""
    kernels: Named = {}
    for position in positions:
        (column,) = _labels(frame, [position])
        prefix = f"{column}:" if len(positions) > 1 else ""
        for name, kernel in _of_sequences(entries_of(frame, position)).items():
            kernels[prefix + name] = kernel.on(column)
    return kernels


def _of_sequences(entries: np.ndarray) -> Named:
    shortest = min(len(entry) for entry in entries if not tables.is_missing(entry))
    return {f"spectrum({k})": Spectrum(k) for k in (1, 2, 3) if k <= shortest}


def _are_sequences(entries: np.ndarray) -> bool:
    """Return True if strings are sequences of letters, not names, words, texts or categories."""
    known = [entry for entry in entries if not tables.is_missing(entry)]
    if not known or not all(isinstance(entry, str) for entry in known):
        return False
    letters = set("".join(known))
    one_case = all(map(str.isupper, letters - _GAPS)) or all(map(str.islower, letters - _GAPS))
    return (
        one_case
        and len(letters) <= _MOST_LETTERS
        and min(map(len, known)) > 0
        and float(np.median([len(entry) for entry in known])) >= _SEQUENCE_LENGTH
        and len(set(known)) > len(known) / 2
    )


def _of_numbers(table: Any) -> Named:
    tables.check_numbers(table, "X", _ENCODE if tables.is_frame(table) else _AS_FRAME)
    tables.refuse_not_finite(table, "X")
    tables.refuse_huge(table, "X")
    if hasattr(table, "iloc") and any(hasattr(dtype, "subtype") for dtype in set(table.dtypes)):
        raise TypeError(
            "the data frame has sparse columns: pass frame.sparse.to_coo(), or dense columns, "
            "frame.sparse.to_dense()."
        )
    is_sparse = sparse.issparse(table)
    if is_sparse:
        # Entries may be stored in several parts, which are added.
        values = sparse.csr_array(table, copy=not table.has_canonical_format)
        values.sum_duplicates()
        values = values.data
    else:
        values = tables.as_numbers(table)
        refuse_letters_read_as_digits(values, partial(tables.column_label, table))
    is_sparse = is_sparse or (values.size > 0 and np.mean(values == 0) > _MOSTLY_ZEROS)
    if table.shape[1] >= _FEWEST_BITS and np.all((values == 0) | (values == 1)):
        return _of_bits(is_sparse)
    return _of_sparse(bool(np.all(values >= 0))) if is_sparse else _of_dense(table.shape[1])


# Width of the smoothest kernel, in medians of distances. On 31 tables for regression a Gaussian of
# that width, of numbers and categories together, raised the mean R² of MKRidgeCV by 2.3 points, by
# 0 to 30 on single tables; three widths from 1 to 5 by 2.4.
_WIDE = 5.0


# Chosen by MKFDACV on some 15 tables, 100 to 450 training rows, one to five splits each; most
# differences are within noise. Added to linear and Gaussian kernels, the Laplacian improved the
# mean accuracy by half a percentage point; the Laplacian of normal scores by two to four points on
# colour histograms, little elsewhere; the cosine by zero to a third of a point. A third width, a
# Gaussian of normal scores, a polynomial, and Laplacians of other widths gave no improvement.
def _of_dense(n_columns: int) -> Named:
    kernels: Named = {"linear": Linear()}
    kernels |= {f"rbf({width:g})": RBF("median", width) for width in (0.5, 1.0, _WIDE)}
    kernels["laplacian"] = Laplacian("median")
    kernels = {name: kernel.after(StandardScaler()) for name, kernel in kernels.items()}
    # The cosine of a single number is its sign.
    angle: Named = {"cosine": Cosine()} if n_columns > 1 else {}
    return {**kernels, **angle, "scores-laplacian": Laplacian("median").after(NormalScores())}


def _of_relevance(table: Any, kernels: Named) -> Named:
    """Return a kernel with a scale for every number and every category, learnt from targets.

    None for tables with other `kernels` than those of dense numbers and of categories, nor if
    there are more scales than rows.
    """
    numbers: list[int] = list(range(table.shape[1]))
    categories: list[int] = []
    if tables.is_frame(table):
        numbers, categories, _ = _types_of_columns(table)
    chosen = numbers + categories
    if not chosen or (numbers and "scores-laplacian" not in kernels):
        return {}
    n_categories = sum(len(set(entries_of(table, position))) for position in categories)
    if len(numbers) + n_categories > table.shape[0]:
        return {}
    kernel: Kernel = RelevanceRBF()
    if categories:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        places = list(range(len(numbers), len(chosen)))
        columns = ColumnTransformer([("categories", encoder, places)], remainder="passthrough")
        kernel = kernel.after(columns).on(_labels(table, chosen))
    elif len(chosen) < table.shape[1]:
        kernel = kernel.on(_labels(table, chosen))
    return {"relevance": kernel}


# On nine tables, mostly one split each, the Gaussian added 0.8 percentage points to Jaccard alone;
# the scaled cosine gave better probabilities on words.
def _of_bits(is_sparse: bool) -> Named:
    kernels: Named = {"jaccard": Jaccard(), "rbf(0.7)": RBF("median", 0.7)}
    return kernels | ({"scaled-cosine": _scaled_cosine()} if is_sparse else {})


# On six tables of word and other counts, one split each, one percentage point above cosine and
# Gaussians of raw counts, and equal to tf-idf, which needs counts and takes no sample weights.
def _of_sparse(non_negative: bool) -> Named:
    kernels: Named = {
        "cosine": Cosine(),
        "rbf(0.7)": RBF("median", 0.7).after(Normalizer()),
        "scaled-cosine": _scaled_cosine(),
    }
    if not non_negative:
        return kernels
    # Ten occurrences of a word should not count ten times as much as one.
    logarithm = FunctionTransformer(signed_log)
    return {name: kernel.after(logarithm) for name, kernel in kernels.items()}


@storable
def signed_log(X: Any) -> Any:
    """Return ``log(1 + x)``, or ``−log(1 − x)`` for negative x, which new rows may have."""
    if sparse.issparse(X):
        return X.sign().multiply(abs(X).log1p()).tocsr()
    return np.sign(X) * np.log1p(np.abs(X))


def _scaled_cosine() -> Kernel:
    """Return a cosine of scaled columns: rare words count more, as with tf-idf."""
    return Cosine().after(StandardScaler(with_mean=False))


# -- columns of data frames ------------------------------------------------------------------


def _holds_categories(frame: tables.DataFrame, position: int) -> bool:
    """Return True if a column holds text or other categories, not numbers or booleans."""
    column = _column(frame, position)
    if _has_category_dtype(frame, position):
        return True
    if getattr(column.dtype, "kind", "O") in "Mm":  # dates with a time zone are objects in NumPy
        return False
    entries = column.to_numpy()
    if entries.dtype.kind != "O":
        return entries.dtype.kind in "US"
    if all(map(_is_number, entries)) or any(isinstance(entry, _TIMES) for entry in entries):
        # Dates among objects raise an error later, with the name of the column.
        return False
    _refuse_mistakes(entries, tables.column_label(frame, position))
    return True


def _has_category_dtype(frame: tables.DataFrame, position: int) -> bool:
    """Return True if a column has a categorical dtype; in pandas, categories may be numbers."""
    name = str(_column(frame, position).dtype).lower()
    return name.startswith(("category", "categorical", "enum"))


def _column(frame: tables.DataFrame, position: int) -> Any:
    return frame.iloc[:, position] if hasattr(frame, "iloc") else frame[:, position]


def _refuse_mistakes(entries: np.ndarray, column: str) -> None:
    """Raise an error for a column of numbers, perhaps as text, with a few other entries."""
    known = [(row, entry) for row, entry in enumerate(entries) if not tables.is_missing(entry)]
    others = [(row, entry) for row, entry in known if not tables.stands_for_number(entry)]
    if others and len(others) < (1.0 - _MOSTLY_NUMBERS) * len(known):
        row, entry = others[0]
        texts = [str(entry).strip() for _, entry in known]
        refuse_disguised(list(dict.fromkeys(texts)), column, plain=False)
        raise ValueError(
            f"{column} holds numbers, and {len(others)} entries that are none, the first "
            f"{entry!r} at row {row}. Correct it, or declare it as categories: "
            ".astype('category')."
        )


def _is_number(entry: object) -> bool:
    """Return True if an object other than text can be converted to a number, or is missing."""
    if isinstance(entry, str | bytes):
        return False
    return tables.is_missing(entry) or tables.stands_for_number(entry)


def _labels(frame: tables.DataFrame, positions: list[int]) -> list[Any]:
    """Return the names of columns, or their positions if names are not strings."""
    names = [frame.columns[position] for position in positions]
    return names if all(isinstance(name, str) for name in names) else positions


# -- The parameter ``kernels`` of estimators as a union of named kernels --------------------------


def as_union(kernels: object) -> KernelUnion:
    """Convert any value of the parameter ``kernels`` except None to a new union."""
    if isinstance(kernels, KernelUnion):
        return clone(kernels)
    if isinstance(kernels, Mapping):
        return KernelUnion([(name, clone(kernel, safe=False)) for name, kernel in kernels.items()])
    if isinstance(kernels, list | tuple):
        if _are_pairs(kernels):
            return KernelUnion(list(clone(kernels, safe=False)))
        return KernelUnion(_named([as_kernel(kernel) for kernel in kernels]))
    return KernelUnion(_named([as_kernel(kernels)]))


def transforms(kernels: object) -> bool:
    """Return True if any of the `kernels` contains a transformer (:class:`After`)."""
    if kernels is None:
        return False
    if isinstance(kernels, Mapping):  # by the names of kernels or of views
        return any(map(transforms, kernels.values()))
    pairs = as_union(kernels)._pairs
    if not isinstance(pairs, list | tuple):
        return False  # kernels made on demand, of untransformed columns
    parts = [as_kernel(kernel) for _, kernel in pairs]
    parts += [inner for kernel in parts for inner in kernel.get_params(deep=True).values()]
    return any(isinstance(kernel, After) for kernel in parts)


def kernels_for(
    X: object, kernels: object = None, *, missing: str = "error", relevance: bool = False
) -> KernelUnion:
    """Return the union of kernels that an estimator builds from its parameter ``kernels``.

    Parameters
    ----------
    X : table, dict of tables or Views
    kernels : kernel, KernelUnion, dict, list of (name, kernel) or None, optional
        As for :class:`~manykernels.MKFDA`: with several views, kernels that are used for every
        view, or a dict with the kernels of each view. None means default kernels.
    missing : {"error", "mean", "conditional"}, default="error"
        Unless it is "error", rows of a table may lack all columns of a kernel.
    relevance : bool, default=False
        Whether default kernels include one whose scales of columns are learnt from the targets, as
        those of :class:`~manykernels.MKRidgeCV` do; see :func:`~manykernels.auto_kernels`.

    Returns
    -------
    union : KernelUnion
        The kernels, not fitted. A kernel is named after its view, or "view:kernel" if the view
        has several.

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
        union = auto_kernels(X, relevance=relevance) if kernels is None else as_union(kernels)
        if missing == "error":
            return union
        pairs = [(name, as_kernel(kernel)) for name, kernel in union._pairs]
        return KernelUnion([(name, known_where_possible(kernel)) for name, kernel in pairs])
    X = as_views(X)
    if isinstance(kernels, Mapping):
        bound = {name: kernel for name, kernel in kernels.items() if names_its_views(kernel)}
        by_view = {view: entry for view, entry in kernels.items() if view not in bound}
        used = {view for kernel in bound.values() for view in views_of(kernel)}
        _check_views(by_view, used, X)
        of_views = [
            pair
            for view, entry in by_view.items()
            for pair in _of_view(entry, view, X, relevance=relevance)
        ]
        return KernelUnion(of_views + [(name, clone(kernel)) for name, kernel in bound.items()])
    if kernels is None:
        of_views = [pair for view in X for pair in _of_view(None, view, X, relevance=relevance)]
        return KernelUnion(of_views)
    pairs = [(name, as_kernel(kernel)) for name, kernel in as_union(kernels)._pairs]
    single = not isinstance(kernels, KernelUnion | list | tuple)
    of_views = [
        (view if single else f"{view}:{name}", kernel.of(view))
        for view in X
        for name, kernel in pairs
        if not names_its_views(kernel)
    ]
    return KernelUnion(of_views + [pair for pair in pairs if names_its_views(pair[1])])


def _of_view(
    kernels: object, view: str, views: Views, *, relevance: bool
) -> list[tuple[str, Any]]:
    """Return the named kernels of one view, from its entry in a dict of kernels."""
    with tables.naming(f"view {view!r}"):
        union = as_union(
            auto_kernels(views[view], relevance=relevance) if kernels is None else kernels
        )
        pairs = union._pairs
        several = kernels is None or isinstance(kernels, KernelUnion | Mapping | list | tuple)
        named = [
            (f"{view}:{name}" if several else view, as_kernel(kernel)) for name, kernel in pairs
        ]
        return [(name, k if names_its_views(k) else k.of(view)) for name, k in named]


def _check_views(kernels: Mapping[str, Any], used: set[str], views: Views) -> None:
    """Check that a dict has entries for the views of `views` only, and for all not `used`."""
    unknown = [name for name in kernels if name not in views]
    without = [name for name in views if name not in kernels and name not in used]
    if unknown:
        raise ValueError(
            f"kernels has an entry {unknown[0]!r}, but X has no such view; its views are "
            f"{', '.join(map(repr, views))}."
        )
    if without:
        raise ValueError(
            f"There is no kernel for view {without[0]!r}: add one to kernels (None means "
            "default kernels), or leave the view out of X."
        )


def have_names(kernels: object) -> bool:
    """Return True if `kernels` is a dict or a list of pairs (name, kernel)."""
    return isinstance(kernels, Mapping) or (
        isinstance(kernels, list | tuple) and _are_pairs(kernels)
    )


def parameters(kernels: object) -> dict[str, Any]:
    """Return named kernels and their parameters, as ``<name>`` and ``<name>__<parameter>``."""
    nested: dict[str, Any] = as_union(_with_unions(kernels)).get_params()
    del nested["kernels"]
    return nested


def with_parameters(kernels: object, params: dict[str, Any]) -> Any:
    """Return copies of the kernels with parameters ``<name>__<parameter>`` set."""
    union = as_union(_with_unions(kernels)).set_params(**params)
    return dict(union.kernels) if isinstance(kernels, Mapping) else union.kernels


def _with_unions(kernels: object) -> Any:
    """Replace the named kernels of each view by a union, which has nested parameters."""
    if not isinstance(kernels, Mapping):
        return kernels
    return {
        view: as_union(entry) if have_names(entry) else entry for view, entry in kernels.items()
    }


def _are_pairs(kernels: Iterable[object]) -> bool:
    return any(isinstance(item, tuple) for item in kernels)


def _named(kernels: list[Any]) -> list[tuple[str, Any]]:
    """Name kernels after their classes, with numbers if a class occurs twice."""
    classes = [type(kernel).__name__.lower() for kernel in kernels]
    totals, seen, names = Counter(classes), Counter[str](), []
    for name in classes:
        seen[name] += 1
        names.append(name if totals[name] == 1 else f"{name}{seen[name]}")
    return list(zip(names, kernels, strict=True))
