"""Sequences: the strings of one column as one array of letters.

Kernels of strings count short words. They do so for all strings at once, by operations on the
concatenated letters; a *window* is a position in that array where a word begins that does not
extend beyond the end of its string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from ..utils.numerics import in_threads
from .tables import entries_of_one_column, is_missing, refuse_masked

#: Alphabets by name.
ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}

# Number of letters of a string shown in a message.
_SHOWN = 20


class Sequences:
    """Strings as arrays: `codes` are the code points of the concatenated letters.

    ``codes[bounds[i]:bounds[i + 1]]`` are the letters of string i.
    """

    def __init__(self, codes: np.ndarray, bounds: np.ndarray) -> None:
        self.codes = codes
        self.bounds = bounds
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(cls, X: object) -> Sequences:
        """Convert a list, Series, array or data frame of one column of strings."""
        refuse_masked(X, "X")
        texts = entries_of_one_column(X, "the kernel compares one string per row")
        if len(texts) == 0:
            raise ValueError("Found array with 0 sample(s): there are no strings.")
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                _refuse_entry(text, row)
        bounds = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.intp)])
        joined = "".join(texts)
        if joined.isascii():
            return cls(np.frombuffer(joined.encode("ascii"), dtype=np.uint8), bounds)
        # Python strings may contain single halves of surrogate pairs.
        encoded = joined.encode("utf-32-le", errors="surrogatepass")
        return cls(np.frombuffer(encoded, dtype="<u4"), bounds)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a table with one column."""
        return len(self), 1

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of letters of each string."""
        return np.diff(self.bounds)

    def __getitem__(self, rows: slice | np.ndarray) -> Sequences:
        """Return some of the strings, selected by a slice, a mask or positions."""
        chosen = np.arange(len(self))[rows]
        lengths = self.lengths[chosen]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        # Positions of the chosen letters among all letters.
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[chosen] - bounds[:-1], lengths)
        return Sequences(self.codes[places], bounds)

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """Return the cached result for `key`; call `make` the first time."""
        if key not in self._made:
            self._made.setdefault(key, make())
        return self._made[key]

    def has(self, key: object) -> bool:
        """Return True if there is a cached result for `key`."""
        return key in self._made

    @property
    def letters(self) -> str:
        """All letters that occur, sorted."""
        letters: str = self.once("letters", lambda: "".join(map(chr, np.unique(self.codes))))
        return letters

    def text(self, row: int) -> str:
        """Return a string, or its beginning, for a message."""
        codes = self.codes[self.bounds[row] : self.bounds[row + 1]]
        shown = "".join(map(chr, codes[:_SHOWN]))
        return repr(shown + "…" if len(codes) > _SHOWN else shown)

    def texts(self) -> Iterator[str]:
        """Yield the strings."""
        for start, stop in pairwise(self.bounds):
            yield "".join(map(chr, self.codes[start:stop]))

    def digits(self, letters: str) -> np.ndarray:
        """Return the position of every letter in `letters`, from 1; 0 for other letters."""
        return self.once(("digits", letters), lambda: self._digits(letters))

    def _digits(self, letters: str) -> np.ndarray:
        known = np.sort(np.array([ord(letter) for letter in letters], dtype=np.int64))
        codes = self.codes.astype(np.int64)
        places = np.searchsorted(known, codes)
        places[places == len(known)] = 0
        return np.where(known[places] == codes, places + 1, 0)

    def windows(self, span: int, letters: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and strings of all windows of `span` letters in `letters` (None: any).

        Both arrays have the same length, in the order of the strings.
        """
        return self.once(("windows", span, letters), lambda: self._windows(span, letters))

    def _windows(self, span: int, letters: str | None) -> tuple[np.ndarray, np.ndarray]:
        rows = np.repeat(np.arange(len(self)), self.lengths)
        fits = np.arange(len(rows)) + span <= self.bounds[1:][rows]
        if letters is not None:
            others = self.digits(letters) == 0
            if others.any():
                before = np.concatenate([[0], np.cumsum(others)])
                starts = np.flatnonzero(fits)
                fits[starts] = before[starts + span] == before[starts]
        starts = np.flatnonzero(fits)
        return starts, rows[starts]

    # -- validation ------------------------------------------------------------------------

    def refuse_short(self, span: int, what: str) -> None:
        """Raise an error for strings shorter than `span`; `what` is its name in the message."""
        short = np.flatnonzero(self.lengths < span)
        if len(short):
            row = int(short[0])
            length = int(self.lengths[row])
            content = "an empty string" if length == 0 else f"{self.text(row)}, {length} letters"
            raise ValueError(
                f"row {row} is {content}, but {what} needs at least {span} ({len(short)} of "
                f"{len(self)} rows are shorter): leave them out, or compare shorter words."
            )

    def refuse_letters(self, alphabet: str) -> None:
        """Raise an error for letters outside of an alphabet."""
        others = np.flatnonzero(self.digits(alphabet) == 0)
        if len(others) == 0:
            return
        row = int(np.searchsorted(self.bounds, others[0], side="right")) - 1
        letter = chr(self.codes[others[0]])
        case = ""
        if letter.swapcase() in alphabet:
            method = "upper" if letter.islower() else "lower"
            case = f"change its case, for example with X.str.{method}(); "
        raise ValueError(
            f"row {row} has the letter {letter!r} at position {others[0] - self.bounds[row]}, "
            f"which is not of the alphabet {alphabet!r} ({len(others)} letters are not): {case}"
            'pass unknown="skip" to leave out words with such letters, or alphabet=None to '
            "allow all letters."
        )

    def refuse_empty(self, span: int, letters: str) -> None:
        """Raise an error for strings without a window of `span` letters in `letters`."""
        _, rows = self.windows(span, letters)
        counts = np.bincount(rows, minlength=len(self))
        if not counts.all():
            row = int(np.argmin(counts))
            raise ValueError(
                f"row {row} ({self.text(row)}) has no {span} letters in a row that are all of the "
                f"alphabet {letters!r}: leave the row out, or compare shorter words."
            )


def _refuse_entry(entry: object, row: int) -> None:
    """Raise an error for an entry that is not a string."""
    if is_missing(entry):
        raise ValueError(
            f"X has a missing value (None, NaN or NA) at row {row}: leave the row out, or pass "
            'strings as one of several views, with missing="mean" for the estimator.'
        )
    way_out = ": pass entry.decode()" if isinstance(entry, bytes) else ""
    raise TypeError(f"the kernel compares strings, but row {row} is {entry!r}{way_out}.")


def letters_of(alphabet: str) -> str:
    """Return the sorted letters of an alphabet, given by its name or its letters."""
    letters = ALPHABETS.get(alphabet, alphabet)
    if len(letters) < 2 or len(set(letters)) < len(letters):
        raise ValueError(
            f"alphabet={alphabet!r} must be one of {', '.join(map(repr, ALPHABETS))}, or two or "
            "more different letters, such as 'ACGT'."
        )
    return "".join(sorted(letters))


# -- Sparse matrices of word counts, and their products -------------------------------------------
#
# A *word* is the unit that a kernel of strings counts: k consecutive letters, or letters at some
# places of a window. Words are integers in the base of the alphabet. If two sets of strings are
# compared, the letters and the vocabulary are those of the second set: a word that only occurs in
# the first set matches nothing.
#
# A product of counts costs, for every word, the number of pairs of strings that contain it.
# Frequent words are cheaper as columns of a dense matrix, since BLAS does some forty
# multiplications in the time of one lookup of a pair; other words are looked up.


# If there are at most this many possible words, or this many for each occurrence, each has a
# column, whether it occurs or not. Otherwise words are numbered by a vocabulary.
_FEW_WORDS = 2**16
_WORDS_PER_OCCURRENCE = 4
# Words are renumbered before they reach this, to avoid overflow.
_LARGEST_WORD = 2**62
# A word shared by a larger fraction of pairs of strings is multiplied by BLAS.
_FREQUENT = 1.0 / 40.0
# Number of rows multiplied at once.
_BLOCK_ROWS = 512
# Entries of a dense matrix of frequent words: 256 MiB in single precision.
_DENSE_ENTRIES = 2**26
# Single precision is exact for integers up to this.
_EXACT_SINGLE = 2**24


class Occurrences(NamedTuple):
    """Occurrences of words: one entry per occurrence, in the order of the strings.

    The letters of a word are `digits`, each below `base`; its position in the string, `place`,
    below `n_places`, may be part of the word. Each occurrence counts `weight`.
    """

    rows: np.ndarray
    digits: Sequence[np.ndarray]
    base: int
    place: np.ndarray | None = None
    n_places: int = 1
    weight: float = 1.0

    @property
    def n_words(self) -> int:
        """Number of possible words."""
        return self.n_places * self.base ** len(self.digits)


class Term(Protocol):
    """Kind of words; hashable."""

    def occurrences(self, strings: Sequences, letters: str) -> Iterable[Occurrences]:
        """Yield the occurrences in `strings`; the digit 0 is any letter not in `letters`.

        The number of items is positive and does not depend on the strings.
        """
        ...


class Vocabulary:
    """Numbers of the words that occur, if too many words are possible for a column each.

    A long word is numbered in stages: its first letters are replaced by a number, which is then
    combined with the next letters.
    """

    def __init__(self) -> None:
        self._stages: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self._stages[-1])

    def learn(self, words: Occurrences) -> np.ndarray:
        """Add all words, and return their numbers."""

        def add(values: np.ndarray, stage: int) -> np.ndarray:
            known, numbers = np.unique(values, return_inverse=True)
            self._stages.append(known)
            return numbers

        return self._numbered(words, add)

    def numbers(self, words: Occurrences) -> np.ndarray:
        """Return the numbers of words; unknown words have the number ``len(vocabulary)``."""

        def look_up(values: np.ndarray, stage: int) -> np.ndarray:
            known = self._stages[stage]
            if len(known) == 0:
                return np.zeros(len(values), dtype=np.int64)
            numbers = np.searchsorted(known, values)
            numbers[known[np.minimum(numbers, len(known) - 1)] != values] = len(known)
            return numbers

        return self._numbered(words, look_up)

    def _numbered(
        self, words: Occurrences, number: Callable[[np.ndarray, int], np.ndarray]
    ) -> np.ndarray:
        values = np.zeros(len(words.rows), np.int64) if words.place is None else words.place
        size, stage = words.n_places, 0
        for digit in words.digits:
            if size * words.base >= _LARGEST_WORD:
                values = number(values, stage)
                # One more for unknown words.
                size, stage = len(self._stages[stage]) + 1, stage + 1
            values = values * words.base + digit
            size *= words.base
        return number(values, stage)


@dataclass(frozen=True)
class Counts:
    """Matrix of the counts of words in strings.

    Without a `vocabulary`, each possible word has a column.
    """

    letters: str
    vocabulary: Vocabulary | None
    matrix: sparse.csr_array

    @classmethod
    def of(cls, term: Term, strings: Sequences, *, keep: bool = False) -> Counts:
        """Count the words of `strings`; with `keep` the result is cached."""
        if keep or strings.has(term):
            counts: Counts = strings.once(term, lambda: cls._counted(term, strings))
            return counts
        return cls._counted(term, strings)

    @classmethod
    def _counted(cls, term: Term, strings: Sequences) -> Counts:
        letters = strings.letters
        sets = iter(term.occurrences(strings, letters))
        first = next(sets)
        if first.n_words <= max(_FEW_WORDS, _WORDS_PER_OCCURRENCE * len(first.rows)):
            return cls(letters, None, _sum_of_counts(first, sets, len(strings)))
        words, weights = _joined([first, *sets])
        vocabulary = Vocabulary()
        numbers = vocabulary.learn(words)
        shape = len(strings), len(vocabulary)
        return cls(letters, vocabulary, _matrix(words.rows, numbers, weights, shape))

    def like(self, term: Term, strings: Sequences) -> sparse.csr_array:
        """Count the same words in other strings."""
        sets = iter(term.occurrences(strings, self.letters))
        if self.vocabulary is None:
            return _sum_of_counts(next(sets), sets, len(strings))
        words, weights = _joined(list(sets))
        numbers = self.vocabulary.numbers(words)
        known = np.flatnonzero(numbers < len(self.vocabulary))
        shape = len(strings), len(self.vocabulary)
        return _matrix(words.rows[known], numbers[known], weights[known], shape)

    def squared_lengths(self) -> np.ndarray:
        """Return the sum of squared counts of every string."""
        squares = sparse.csr_array(
            (self.matrix.data**2, self.matrix.indices, self.matrix.indptr), self.matrix.shape
        )
        return np.asarray(squares.sum(axis=1)).ravel()


def _sum_of_counts(
    first: Occurrences, others: Iterator[Occurrences], n_rows: int
) -> sparse.csr_array:
    """Count all possible words in several sets of occurrences."""
    total = _matrix_of_all(first, n_rows)
    for words in others:
        total = total + _matrix_of_all(words, n_rows)
    return total


def _matrix_of_all(words: Occurrences, n_rows: int) -> sparse.csr_array:
    values = np.zeros(len(words.rows), np.int64) if words.place is None else words.place
    for digit in words.digits:
        values = values * words.base + digit
    weights = np.full(len(values), words.weight)
    return _matrix(words.rows, values, weights, (n_rows, words.n_words))


def _joined(sets: list[Occurrences]) -> tuple[Occurrences, np.ndarray]:
    """Merge several sets of occurrences, and return the weight of each occurrence."""
    weights = np.repeat([words.weight for words in sets], [len(words.rows) for words in sets])
    if len(sets) == 1:
        return sets[0], weights
    order = np.argsort(np.concatenate([words.rows for words in sets]), kind="stable")

    def join(arrays: Iterable[Any]) -> np.ndarray:
        return np.concatenate(list(arrays))[order]

    letters = [join(digits) for digits in zip(*(words.digits for words in sets), strict=True)]
    place = None if sets[0].place is None else join(words.place for words in sets)
    rows = join(words.rows for words in sets)
    return sets[0]._replace(rows=rows, digits=letters, place=place), weights[order]


def _matrix(
    rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a sparse matrix of entries sorted by row; duplicates are added."""
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    kind = np.int32 if max(len(rows), shape[1]) < 2**31 else np.int64
    matrix = sparse.csr_array((weights, columns.astype(kind), ends.astype(kind)), shape=shape)
    matrix.sum_duplicates()
    return matrix


# -- products --------------------------------------------------------------------------------


def add_products(
    K: np.ndarray, weight: float, left: sparse.csr_array, right: sparse.csr_array, *, gram: bool
) -> None:
    """Add ``weight · left rightᵀ`` to `K`; for a Gram matrix, only on and above the diagonal."""
    if left.nnz == 0 or right.nnz == 0:
        return
    width = left.shape[1]
    occur = [np.bincount(matrix.indices, minlength=width) for matrix in (left, right)]
    pairs = occur[0].astype(float) * occur[1]
    frequent = pairs > _FREQUENT * K.size
    if frequent.any():
        _add_dense(K, weight, left, right, np.flatnonzero(frequent), gram)
    if (pairs[~frequent] > 0).any():
        _add_sparse(K, weight, _without(left, frequent), _without(right, frequent), gram)


def _add_dense(
    K: np.ndarray,
    weight: float,
    left: sparse.csr_array,
    right: sparse.csr_array,
    columns: np.ndarray,
    gram: bool,
) -> None:
    kind = np.float32 if _exact_in_single(left) and _exact_in_single(right) else np.float64
    left = left[:, columns].astype(kind)
    right = left if gram else right[:, columns].astype(kind)
    for batch in gen_batches(len(columns), max(1, _DENSE_ENTRIES // max(K.shape))):
        a = left[:, batch].toarray()
        b = a if gram else right[:, batch].toarray()
        for rows in gen_batches(len(a), _BLOCK_ROWS):
            start = rows.start if gram else 0
            K[rows, start:] += weight * (a[rows] @ b[start:].T).astype(np.float64)


def _exact_in_single(matrix: sparse.csr_array) -> bool:
    """Return True if inner products of these rows are integers exact in single precision."""
    data = matrix.data
    if not np.array_equal(data, np.rint(data)):
        return False
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, data**2, minlength=matrix.shape[0])
    # By Cauchy-Schwarz, partial sums of products are bounded by the largest squared norm.
    return bool(squares.max(initial=0.0) < _EXACT_SINGLE)


def _without(matrix: sparse.csr_array, columns: np.ndarray) -> sparse.csr_array:
    """Return the matrix with zeros in some columns."""
    if not columns.any():
        return matrix
    kept = ~columns[matrix.indices]
    before = np.concatenate([[0], np.cumsum(kept)]).astype(matrix.indptr.dtype)
    return sparse.csr_array(
        (matrix.data[kept], matrix.indices[kept], before[matrix.indptr]), shape=matrix.shape
    )


def _add_sparse(
    K: np.ndarray, weight: float, left: sparse.csr_array, right: sparse.csr_array, gram: bool
) -> None:
    from ..utils.compiled import add_pairs  # numba is slow to import

    lists = right.tocsc()

    def add(rows: slice) -> None:
        add_pairs(
            K,
            weight,
            rows.start,
            rows.stop,
            *(left.indptr, left.indices, left.data),
            *(lists.indptr, lists.indices, lists.data),
            gram,
        )

    in_threads(add, list(gen_batches(len(K), _BLOCK_ROWS)), fewest=2)
