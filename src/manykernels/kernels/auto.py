"""Default kernels of a table, by what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from .base import Kernel
from .categories import Categorical, Jaccard
from .kinds import entries_of
from .normal_scores import NormalScores
from .stack import KernelStack
from .standard import RBF, Cosine, Laplacian, Linear
from .strings import Spectrum
from .tables import (
    as_numbers,
    as_table,
    check_numbers,
    column_label,
    is_frame,
    is_missing,
    is_numeric,
    refuse_not_finite,
    select_columns,
    stands_for_number,
)
from .texts import refuse_disguised, refuse_letters_read_as_digits, refuse_no_categories
from .union import KernelUnion
from .view_tables import column_of_strings

# A table with a larger share of zeros is sparse, even if all of them are stored. Words in texts
# have far more zeros than that, pictures of digits about a half.
_MOSTLY_ZEROS = 0.9

# Fewer columns of zeros and ones are numbers like others: new rows may hold more than these two.
_FEWEST_BITS = 16

# A column of text with a larger share of numbers is one of numbers with a mistake in it.
_MOSTLY_NUMBERS = 0.5

# What sequences look like: proteins have up to 26 letters, with those for unknown ones, and marks
# for gaps and stops.
_GAPS = set("-*.")
_MOST_LETTERS = 30
_SEQUENCE_LENGTH = 20

# What can be done about columns that are neither numbers nor categories, and about text in arrays.
_ENCODE = "Choose the columns to compare, as in RBF().on(['a', 'b']), or encode it first."
_AS_FRAME = "Pass a table with text as a data frame."
_NO_DEFAULT = (
    "There are no default kernels of single objects, such as strings that are no sequences: name "
    "one, for texts of words Cosine().after(TfidfVectorizer()), for words Spectrum(2), for others "
    "a function k(X, Y)."
)
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)

Named = dict[str, Kernel]


def auto_kernels(view: Any) -> KernelUnion:
    """Default kernels of one table, by what it holds: a union to look at, change and pass on.

    =================  =======================================================================
    numbers            linear, Gaussians of two widths and a Laplacian of standardised columns;
                       a Laplacian of their :class:`NormalScores`; a cosine of rows as they are, if
                       there are several columns
    zeros and ones     :class:`Jaccard` and a Gaussian; if sparse, a cosine of scaled columns
                       (16 columns or more; fewer are numbers like others)
    sparse             of ``log(1 + x)`` if nothing is negative: cosine, a Gaussian of rows of
                       length one, and a cosine of scaled columns
    categories         :class:`Categorical`
    sequences          :class:`Spectrum` of one, two and three letters
    =================  =======================================================================

    Sparse is what is stored so, or has more than nine zeros in ten entries. Widths are relative
    to the median distance of training rows. In a data frame, columns of text and other categories
    have one kernel, columns of numbers and truth values theirs, and one is the product of both.

    Sequences, as of proteins or DNA, are strings of letters of one case, of 20 letters or more in
    the median, no more than 30 different letters in all, and mostly different from one another.
    There are no default kernels of a list of other strings. In a data frame they are categories,
    unless nearly all are different, or they are numbers or dates written as text: these are
    refused by the name of the column, with what to do.

    Parameters
    ----------
    view : {array-like, dataframe, sparse matrix} of shape (rows, columns), or list of sequences
        Training rows. They only say what kind of table it is: scales and widths are learnt when
        the kernels are fitted.

    Returns
    -------
    union : KernelUnion
        Not fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels import auto_kernels
    >>> X = pd.DataFrame({"size": [1.5, 2.5, 0.5], "colour": ["red", "blue", "red"]})
    >>> union = auto_kernels(X)
    >>> print(*dict(union.kernels), sep=", ")
    linear, rbf(0.5), rbf(1), laplacian, scores-laplacian, categories,
    numbers*categories
    >>> dict(union.kernels)["categories"]
    Categorical(columns=['colour'])
    """
    if (strings := column_of_strings(view)) is not None:
        kernels = _of_strings(strings.ravel())
    else:
        table = _checked(view)
        kernels = _of_frame(table) if is_frame(table) else _of_numbers(table)
    return KernelUnion(list(kernels.items()))


def _checked(view: Any) -> Any:
    """`view` as a table, if it is one."""
    if isinstance(view, KernelStack):
        raise ValueError('A KernelStack holds kernels: pass it with kernels="precomputed".')
    if isinstance(view, Mapping) and not sparse.issparse(view):
        raise TypeError("This is a dict of tables, pass one of them; all: kernels_for(tables).")
    if not sparse.issparse(view) and np.ndim(view) == 1:
        raise ValueError(_NO_DEFAULT)
    return as_table(view)


# -- kinds of tables -------------------------------------------------------------------------


def _of_frame(frame: Any) -> Named:
    """Kernels of columns of numbers and sequences, one of the categories, and one of both."""
    odd = [position for position, dtype in enumerate(frame.dtypes) if not is_numeric(dtype)]
    texts = [position for position in odd if _holds_categories(frame, position)]
    sequences = [position for position in texts if _are_sequences(entries_of(frame, position))]
    numbers = np.setdiff1d(np.arange(frame.shape[1]), texts).tolist()
    categories = np.setdiff1d(texts, sequences).tolist()
    for position in categories:
        if not _is_called_category(frame, position):
            (name,) = _labels(frame, [position])
            label = column_label(frame, position)
            refuse_no_categories(entries_of(frame, position), label, name)
    of_others = _of_numbers_and_categories(frame, numbers, categories)
    return of_others | _of_sequence_columns(frame, sequences)


def _of_numbers_and_categories(frame: Any, numbers: list[int], categories: list[int]) -> Named:
    if len(numbers) == frame.shape[1]:
        return _of_numbers(frame)
    kernels = _of_numbers(select_columns(frame, numbers)) if numbers else {}
    kernels = {name: kernel.on(_labels(frame, numbers)) for name, kernel in kernels.items()}
    if not categories:
        return kernels
    equal = Categorical().on(_labels(frame, categories))
    if not numbers:
        return {"categories": equal}
    # A number may mean one thing in one category and another in the next.
    middle = kernels.get("rbf(1)", kernels.get("rbf(0.7)"))
    return {**kernels, "categories": equal, "numbers*categories": middle * equal}


def _of_sequence_columns(frame: Any, positions: list[int]) -> Named:
    """Kernels of columns of sequences, with the names of the columns if there are several."""
    kernels: Named = {}
    for position in positions:
        (column,) = _labels(frame, [position])
        front = f"{column}:" if len(positions) > 1 else ""
        for name, kernel in _of_sequences(entries_of(frame, position)).items():
            kernels[front + name] = kernel.on(column)
    return kernels


def _of_strings(entries: np.ndarray) -> Named:
    if not _are_sequences(entries):
        raise ValueError(_NO_DEFAULT)
    return _of_sequences(entries)


def _of_sequences(entries: np.ndarray) -> Named:
    shortest = min(len(entry) for entry in entries if not is_missing(entry))
    return {f"spectrum({k})": Spectrum(k) for k in (1, 2, 3) if k <= shortest}


def _are_sequences(entries: np.ndarray) -> bool:
    """Whether strings are sequences of letters, not names, words, texts or categories."""
    known = [entry for entry in entries if not is_missing(entry)]
    if not known or not all(isinstance(entry, str) for entry in known):
        return False
    letters = set("".join(known))
    of_one_case = all(map(str.isupper, letters - _GAPS)) or all(map(str.islower, letters - _GAPS))
    return (
        of_one_case
        and len(letters) <= _MOST_LETTERS
        and min(map(len, known)) > 0
        and float(np.median([len(entry) for entry in known])) >= _SEQUENCE_LENGTH
        and len(set(known)) > len(known) / 2
    )


def _of_numbers(table: Any) -> Named:
    check_numbers(table, "X", _ENCODE if is_frame(table) else _AS_FRAME)
    refuse_not_finite(table, "X")
    if hasattr(table, "iloc") and any(hasattr(dtype, "subtype") for dtype in set(table.dtypes)):
        raise TypeError(
            "columns of the data frame are sparse: pass frame.sparse.to_coo(), or dense columns, "
            "frame.sparse.to_dense()."
        )
    is_sparse = sparse.issparse(table)
    values = _without_duplicates(table).data if is_sparse else as_numbers(table)
    if not is_sparse:
        refuse_letters_read_as_digits(values, partial(column_label, table))
    is_sparse = is_sparse or (values.size > 0 and np.mean(values == 0) > _MOSTLY_ZEROS)
    if table.shape[1] >= _FEWEST_BITS and np.all((values == 0) | (values == 1)):
        return _of_bits(is_sparse)
    return _of_sparse(bool(np.all(values >= 0))) if is_sparse else _of_dense(table.shape[1])


# Chosen by MKFDACV on some 15 tables, 100 to 450 training rows, one to five divisions each: most
# differences are within noise. To linear and Gaussian kernels the Laplacian added half a point of
# accuracy in the mean; that of normal scores two to four points on histograms of colours, little
# elsewhere; the cosine nothing to a third of a point. A third width, a Gaussian of normal scores,
# a polynomial, and Laplacians of other widths added nothing in the mean.
def _of_dense(n_columns: int) -> Named:
    kernels: Named = {"linear": Linear()}
    kernels |= {f"rbf({width:g})": RBF("median", width) for width in (0.5, 1.0)}
    kernels["laplacian"] = Laplacian("median")
    kernels = {name: kernel.after(StandardScaler()) for name, kernel in kernels.items()}
    # The cosine of a single number is its sign.
    angle: Named = {"cosine": Cosine()} if n_columns > 1 else {}
    return {
        **kernels,
        **angle,
        "scores-laplacian": Laplacian("median").after(NormalScores()),
    }


# On nine tables, mostly one division of each, the Gaussian added 0.8 points to Jaccard alone; the
# scaled cosine had the better probabilities on words.
def _of_bits(is_sparse: bool) -> Named:
    kernels: Named = {"jaccard": Jaccard(), "rbf(0.7)": RBF("median", 0.7)}
    return kernels | ({"scaled-cosine": _scaled_cosine()} if is_sparse else {})


# On six tables of words and other counts, one division of each, a point above cosine and Gaussians
# of counts as they are, and level with tf-idf, which needs counts and takes no weights of rows.
def _of_sparse(non_negative: bool) -> Named:
    kernels: Named = {
        "cosine": Cosine(),
        "rbf(0.7)": RBF("median", 0.7).after(Normalizer()),
        "scaled-cosine": _scaled_cosine(),
    }
    if not non_negative:
        return kernels
    # A word that occurs ten times does not count ten times as much.
    logarithm = FunctionTransformer(signed_log)
    return {name: kernel.after(logarithm) for name, kernel in kernels.items()}


def signed_log(X: Any) -> Any:
    """``log(1 + x)``, and ``−log(1 − x)`` for negative x, which new rows may have."""
    if sparse.issparse(X):
        return X.sign().multiply(abs(X).log1p()).tocsr()
    return np.sign(X) * np.log1p(np.abs(X))


def _scaled_cosine() -> Kernel:
    """Rare words count more, as by inverse document frequencies."""
    return Cosine().after(StandardScaler(with_mean=False))


# -- columns of data frames ------------------------------------------------------------------


def _holds_categories(frame: Any, position: int) -> bool:
    """Whether a column holds text or other categories, not numbers or truth values."""
    column = _column(frame, position)
    if _is_called_category(frame, position):
        return True
    if getattr(column.dtype, "kind", "O") in "Mm":  # dates with a time zone are objects in NumPy
        return False
    entries = column.to_numpy()
    if entries.dtype.kind != "O":
        return entries.dtype.kind in "US"
    if all(map(_is_number, entries)) or any(isinstance(one, _TIMES) for one in entries):
        # Dates among objects are refused later, by name.
        return False
    _refuse_mistakes(entries, column_label(frame, position))
    return True


def _is_called_category(frame: Any, position: int) -> bool:
    """Whether the type of a column says that it has categories, which may be numbers in pandas."""
    name = str(_column(frame, position).dtype).lower()
    return name.startswith(("category", "categorical", "enum"))


def _column(frame: Any, position: int) -> Any:
    return frame.iloc[:, position] if hasattr(frame, "iloc") else frame[:, position]


def _refuse_mistakes(entries: np.ndarray, column: str) -> None:
    """Refuse a column of numbers, or of text that stands for numbers, in which a few do not."""
    known = [(row, entry) for row, entry in enumerate(entries) if not is_missing(entry)]
    others = [(row, entry) for row, entry in known if not stands_for_number(entry)]
    if others and len(others) < (1.0 - _MOSTLY_NUMBERS) * len(known):
        row, entry = others[0]
        texts = [str(entry).strip() for _, entry in known]
        refuse_disguised(list(dict.fromkeys(texts)), column, plain=False)
        raise ValueError(
            f"{column} holds numbers, and {len(others)} entries that are none, the first "
            f"{entry!r} at row {row}. Correct it, or say that it has categories: "
            ".astype('category')."
        )


def _is_number(entry: Any) -> bool:
    """Whether an object stands for a number, or for one that is missing; text does not."""
    if isinstance(entry, str | bytes):
        return False
    return is_missing(entry) or stands_for_number(entry)


def _labels(frame: Any, positions: list[int]) -> list[Any]:
    """Names of columns; their positions if names are not text."""
    names = [frame.columns[position] for position in positions]
    return names if all(isinstance(name, str) for name in names) else positions


def _without_duplicates(table: Any) -> Any:
    """A sparse table in which every entry is stored once."""
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table
