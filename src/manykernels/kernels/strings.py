"""Kernels of strings, such as proteins and DNA, that count common words.

All are sums of inner products of counts, ``K = Σ_t c_t C_t C_tᵀ``, one for each *term*, a kind of
words (:mod:`manykernels.kernels.words`). A fitted kernel stores the letters of training,
`letters_`. A word with a letter that did not occur in training equals no training word; it counts
as a separate word in the similarity of new strings with each other and with themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

from ..utils.sklearn import Interval, StrOptions
from ..utils.storable import storable
from .base import Kernel
from .tables import naming
from .words import Counts, Occurrences, Sequences, Term, add_products, letters_of


@dataclass(eq=False, repr=False, kw_only=True)
class StringKernel(Kernel):
    """Base class of string kernels; a subclass defines the words that are counted, `_terms`.

    A string needs at least `_span` consecutive letters to have any word.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alphabet": [str, None],
        "unknown": [StrOptions({"error", "skip"})],
        "normalize": ["boolean"],
    }

    normalize: bool = True
    alphabet: str | None = None
    unknown: str = "error"

    @abstractmethod
    def _terms(self) -> list[tuple[float, Term]]:
        """Return kinds of words, with their factors."""

    @property
    @abstractmethod
    def _span(self) -> tuple[int, str]:
        """Least number of letters of a string, and its name in error messages."""

    def _letters(self) -> str | None:
        """Return the letters of words; None means all."""
        return None if self.alphabet is None else letters_of(self.alphabet)

    def _validated(self, X: object) -> Sequences:
        return Sequences.of(X)

    def _learn_scale(self, X: Sequences, weights: np.ndarray) -> None:
        with naming(self._title):
            self._check(X)
        self.letters_ = self._letters() or X.letters

    def _prepared(self, X: Any, Y: Any = None) -> tuple[Sequences, Sequences | None]:
        X, Y = super()._prepared(X, Y)
        with naming(self._title):
            self._check(X)
        if Y is not None:
            with naming(f"{self._title}, Y"):
                self._check(Y)
        return X, Y

    def _check(self, X: Sequences) -> None:
        """Raise an error for strings that are too short or have letters outside the alphabet."""
        X.refuse_short(*self._span)
        letters = self._letters()
        if letters is not None and self.unknown == "error":
            X.refuse_letters(letters)
        elif letters is not None:
            X.refuse_empty(self._span[0], letters)

    def _evaluate(self, X: Sequences, Y: Sequences | None) -> np.ndarray:
        gram = Y is None
        Y = X if Y is None else Y
        K = np.zeros((len(X), len(Y)))
        for weight, term in self._terms():
            # Counts of training strings are kept, since several blocks are compared with them.
            counts = Counts.of(term, Y, keep=not gram)
            left = counts.matrix if gram else counts.like(term, X)
            add_products(K, weight, left, counts.matrix, gram=gram)
        if self.normalize:
            rows = np.diagonal(K).copy() if gram else self._squares(X)
            K /= np.sqrt(rows)[:, None]
            K /= np.sqrt(rows if gram else self._squares(Y))
        return K

    def _diagonal(self, X: Sequences) -> np.ndarray:
        return np.ones(len(X)) if self.normalize else self._squares(X)

    def _squares(self, X: Sequences) -> np.ndarray:
        """Return the self-similarities of strings before normalisation."""
        terms = tuple(self._terms())

        def squares() -> np.ndarray:
            lengths = [weight * Counts.of(term, X).squared_lengths() for weight, term in terms]
            return np.sum(lengths, axis=0)

        result: np.ndarray = X.once(("squares", terms), squares)
        return result


@storable
@dataclass(frozen=True)
class Words:
    """Letters at some `places` of every window of `span` letters, all in `letters` (None: any).

    With `others`, of the windows that contain other letters instead.
    """

    places: tuple[int, ...]
    span: int
    letters: str | None
    others: bool = False

    def occurrences(self, strings: Sequences, letters: str) -> Iterator[Occurrences]:
        starts, rows = strings.windows(self.span, self.letters)
        if self.others:
            every, rows = strings.windows(self.span)
            chosen = np.isin(every, starts, assume_unique=True, invert=True)
            starts, rows = every[chosen], rows[chosen]
        digits = strings.digits(letters)
        word = [digits[starts + place] for place in self.places]
        yield Occurrences(rows, word, len(letters) + 1)


@storable
@dataclass(eq=False, repr=False)
class Spectrum(StringKernel):
    """Spectrum kernel, the number of common words of k letters.

    ``K(x, y) = Σ_w n_w(x) n_w(y)``, where n_w(x) is the number of occurrences of w in x. Words are
    all k consecutive letters, including overlapping ones. A word with a letter that did not occur
    in training matches no training string.

    Parameters
    ----------
    k : int, default=3
        Number of letters of a word. A shorter string is an error.
    normalize : bool, default=True
        Divide by the norms of both images in feature space, so that every string has the
        similarity 1 with itself. Otherwise similarities grow with the product of the numbers of
        letters.
    alphabet : str, default=None
        The letters that may occur, such as "ACGT", or one of "dna", "rna" and "protein" (the
        twenty amino acids). None allows any letters.
    unknown : {"error", "skip"}, default="error"
        How to treat letters outside of `alphabet`, such as N and X for unknown letters: raise an
        error, or skip words that contain them.
    columns : str, int, list, slice, boolean mask or callable, default=None
        One column of strings; not needed for a table with a single column or a list of strings.

    Attributes
    ----------
    letters_ : str
        The alphabet, or the letters of training strings.

    References
    ----------
    Leslie, Eskin and Noble (2002). The spectrum kernel: a string kernel for SVM protein
    classification. Pacific Symposium on Biocomputing.

    Examples
    --------
    >>> from manykernels.kernels import Spectrum
    >>> Spectrum(k=2, normalize=False)(["ABAB", "BABA", "CAB"])
    array([[5., 4., 2.],
           [4., 5., 1.],
           [2., 1., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **StringKernel._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
    }

    k: int = 3

    @property
    def _span(self) -> tuple[int, str]:
        return self.k, f"k={self.k}"

    def _terms(self) -> list[tuple[float, Term]]:
        return [(1.0, Words(tuple(range(self.k)), self.k, self._letters()))]


@storable
@dataclass(frozen=True)
class _PlacedWords:
    """Words of d consecutive letters together with their positions in the string."""

    d: int
    letters: str | None

    def occurrences(self, strings: Sequences, letters: str) -> Iterator[Occurrences]:
        starts, rows = strings.windows(self.d, self.letters)
        digits = strings.digits(letters)
        word = [digits[starts + place] for place in range(self.d)]
        length = int(strings.lengths[0])
        yield Occurrences(rows, word, len(letters) + 1, starts - strings.bounds[rows], length)


@storable
@dataclass(eq=False, repr=False)
class WeightedDegree(StringKernel):
    """Weighted degree kernel, common words of up to d letters at the same positions.

    ``K(x, y) = Σ_{i=1}^{d} β_i Σ_l [x and y have the same i letters from position l on]``, with
    ``β_i = 2 (d − i + 1) / (d (d + 1))``: short words have larger weights, since a long common
    word contains many short ones. For aligned strings of equal length, such as sequences around
    splice sites.

    Parameters
    ----------
    d : int, default=10
        Number of letters of the longest words, at most the length of a string.
    normalize : bool, default=True
        As for :class:`Spectrum`.
    alphabet : str, default=None
        As for :class:`Spectrum`.
    unknown : {"error", "skip"}, default="error"
        As for :class:`Spectrum`.
    columns : str, int, list, slice, boolean mask or callable, default=None
        As for :class:`Spectrum`.

    Attributes
    ----------
    letters_ : str
        The alphabet, or the letters of training strings.
    length_ : int
        Number of letters of each string.

    References
    ----------
    Rätsch and Sonnenburg (2004). Accurate splice site detection for Caenorhabditis elegans. In
    Kernel Methods in Computational Biology, MIT Press.

    Examples
    --------
    >>> from manykernels.kernels import WeightedDegree
    >>> WeightedDegree(d=2)(["ACGT", "ACGA", "TGCA"]).round(2)
    array([[1.  , 0.73, 0.  ],
           [0.73, 1.  , 0.18],
           [0.  , 0.18, 1.  ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **StringKernel._parameter_constraints,
        "d": [Interval(Integral, 1, None, closed="left")],
    }

    d: int = 10

    @property
    def _span(self) -> tuple[int, str]:
        return 1, "a word"

    def _learn_scale(self, X: Sequences, weights: np.ndarray) -> None:
        self.__dict__.pop("length_", None)
        super()._learn_scale(X, weights)
        self.length_ = int(X.lengths[0])

    def _prepared(self, X: object, Y: object = None) -> tuple[Sequences, Sequences | None]:
        X, Y = super()._prepared(X, Y)
        if Y is not None and X.lengths[0] != Y.lengths[0]:
            raise ValueError(
                f"{self._title}: strings of X have {X.lengths[0]} letters, those of Y "
                f"{Y.lengths[0]}; places are compared, so all strings need the same length."
            )
        return X, Y

    def _check(self, X: Sequences) -> None:
        super()._check(X)
        expected = getattr(self, "length_", int(X.lengths[0]))
        others = np.flatnonzero(X.lengths != expected)
        if len(others):
            row = int(others[0])
            raise ValueError(
                f"row {row} has {X.lengths[row]} letters, others have {expected}; places are "
                "compared, so all strings need the same length: align or cut them."
            )
        if self.d > expected:
            raise ValueError(f"d={self.d} is more than the {expected} letters of a string.")

    def _terms(self) -> list[tuple[float, Term]]:
        letters, d = self._letters(), self.d
        return [
            (2.0 * (d - i + 1) / (d * (d + 1)), _PlacedWords(i, letters)) for i in range(1, d + 1)
        ]


# -- Kernels with mismatches and gaps -------------------------------------------------------------


# More kinds of words than this would take minutes to count.
_MOST_PATTERNS = 1000


@storable
@dataclass(eq=False, repr=False)
class Mismatch(StringKernel):
    """Mismatch kernel, the number of common words of k letters with up to m mismatches.

    ``K(x, y) = Σ_w n_w(x) n_w(y)`` over all words w ∈ Σ^k of k letters of the alphabet Σ, where
    n_w(x) is the number of words in x that differ from w at no more than m places. With m = 0 it
    is :class:`Spectrum`.

    The features are not computed explicitly. Let f(d) be the number of words within m mismatches
    of both of two words that differ at d places. Then ``K(x, y) = Σ_d f(d) M_d``, where M_d is the
    number of pairs of words, one of each string, that differ at d places. Let S_J be the number of
    pairs that agree at the places J, a product of counts of shorter words. Since pairs at distance
    d agree at ``C(k − d, j)`` sets of j places::

        Σ_{|J|=j} S_J = Σ_d C(k − d, j) M_d   and so   K(x, y) = Σ_j c_j Σ_{|J|=j} S_J

    with ``f(d) = Σ_j c_j C(k − d, j)``, that is ``c_j = Σ_e (−1)^(j−e) C(j, e) f(k − e)``. As f is
    zero beyond 2m, c_j is zero for j < k − 2m. All numbers are integers, and the result is exact.

    Parameters
    ----------
    k : int, default=3
        Number of letters of a word. A shorter string is an error.
    m : int, default=1
        Number of mismatches allowed, less than k. Time grows with the number of subsets of k − 2m
        to k of the k places, which must be at most 1000.
    alphabet : str, default=None
        As for :class:`Spectrum`, but the kernel depends on the number of letters, and None means
        the letters of the training strings. In new strings, a word with another letter matches
        only itself.
    normalize : bool, default=True
        As for :class:`Spectrum`.
    unknown : {"error", "skip"}, default="error"
        As for :class:`Spectrum`.
    columns : str, int, list, slice, boolean mask or callable, default=None
        As for :class:`Spectrum`.

    Attributes
    ----------
    letters_ : str
        The alphabet, or the letters of training strings.

    References
    ----------
    Leslie, Eskin, Cohen, Weston and Noble (2004). Mismatch string kernels for discriminative
    protein classification. Bioinformatics 20.

    Examples
    --------
    >>> from manykernels.kernels import Mismatch
    >>> Mismatch(k=2, m=1, alphabet="ABC", normalize=False)(["AB", "AC", "CA"])
    array([[5., 3., 2.],
           [3., 5., 2.],
           [2., 2., 5.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **StringKernel._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "m": [Interval(Integral, 0, None, closed="left")],
    }

    k: int = 3
    m: int = 1

    @property
    def _span(self) -> tuple[int, str]:
        return self.k, f"k={self.k}"

    def _check(self, X: Sequences) -> None:
        if self.m >= self.k:
            raise ValueError(f"m={self.m} must be less than the number of letters, k={self.k}.")
        n_patterns = sum(comb(self.k, j) for j in self._agreeing)
        if n_patterns > _MOST_PATTERNS:
            raise ValueError(
                f"k={self.k}, m={self.m} needs {n_patterns} kinds of words, more than "
                f"{_MOST_PATTERNS}: choose a smaller k or m."
            )
        super()._check(X)

    @property
    def _agreeing(self) -> range:
        """Numbers of agreeing places with a nonzero coefficient c_j."""
        return range(max(self.k - 2 * self.m, 0), self.k + 1)

    def _terms(self) -> list[tuple[float, Term]]:
        letters = getattr(self, "letters_", None) or self._letters()
        if letters is None:
            raise NotFittedError(
                "Mismatch(alphabet=None) takes its letters from training strings: call fit first, "
                "or pass the alphabet."
            )
        near = [_near_both(self.k, self.m, d, len(letters)) for d in range(self.k + 1)]
        terms: list[tuple[float, Term]] = []
        for j in self._agreeing:
            factor = sum((-1) ** (j - e) * comb(j, e) * near[self.k - e] for e in range(j + 1))
            for places in combinations(range(self.k), j):
                terms.append((float(factor), Words(places, self.k, letters)))
        if self.alphabet is None:
            # Words with letters that did not occur in training.
            whole = tuple(range(self.k))
            terms.append((1.0, Words(whole, self.k, letters, others=True)))
        return terms


def _near_both(k: int, m: int, d: int, n_letters: int) -> int:
    """Count the words within m mismatches of both of two words that differ at d places.

    At `same` of the k − d places where the two agree, the word has a different letter; at `first`
    and `second` of the d other places it has the letter of the first, or of the second word.
    """
    total = 0
    for same in range(min(m, k - d) + 1):
        elsewhere = comb(k - d, same) * (n_letters - 1) ** same
        for first in range(d + 1):
            for second in range(d - first + 1):
                if same + d - min(first, second) <= m:
                    neither = d - first - second
                    ways = comb(d, first) * comb(d - first, second)
                    total += elsewhere * ways * (n_letters - 2) ** neither
    return total


@storable
@dataclass(frozen=True)
class _Subsequences:
    """Words of k letters, with gaps, in every window of g letters."""

    k: int
    g: int
    decay: float | None
    letters: str | None

    def occurrences(self, strings: Sequences, letters: str) -> Iterator[Occurrences]:
        starts, rows = strings.windows(self.g, self.letters)
        digits = strings.digits(letters)
        window = [digits[starts + place] for place in range(self.g)]
        for places in combinations(range(self.g), self.k):
            word = [window[place] for place in places]
            if self.decay is not None:
                n_gaps = places[-1] - places[0] + 1 - self.k
                yield Occurrences(rows, word, len(letters) + 1, weight=self.decay**n_gaps)
                continue
            # A word may occur several times in a window; only the leftmost occurrence counts,
            # where no letter of the word equals one of the letters skipped before it.
            first = self._leftmost(strings, starts, places)
            yield Occurrences(rows[first], [letter[first] for letter in word], len(letters) + 1)

    def _leftmost(
        self, strings: Sequences, starts: np.ndarray, places: tuple[int, ...]
    ) -> np.ndarray:
        first = np.ones(len(starts), dtype=bool)
        for before, place in zip((-1, *places), places, strict=False):
            for passed in range(before + 1, place):
                first &= strings.codes[starts + passed] != strings.codes[starts + place]
        return first


@storable
@dataclass(eq=False, repr=False)
class Gapped(StringKernel):
    """Gappy kernel, the number of common words of k letters with gaps in windows of g letters.

    ``K(x, y) = Σ_w n_w(x) n_w(y)``, where n_w(x) is the number of windows of g consecutive letters
    of x in which the k letters of w occur in this order, possibly with other letters between them.
    A window counts once for w, even if w occurs in it several times. With `decay`, each occurrence
    counts ``decay ** (number of letters between)``. With g = k it is :class:`Spectrum`.

    Parameters
    ----------
    k : int, default=3
        Number of letters of a word.
    g : int, default=5
        Number of letters of a window, at least k; a shorter string is an error. Time grows with
        the number of subsets of k of the g places, which must be at most 1000.
    decay : float, default=None
        Factor for each letter in a gap, in (0, 1]. None counts words with and without gaps alike,
        once for each window.
    normalize : bool, default=True
        As for :class:`Spectrum`.
    alphabet : str, default=None
        As for :class:`Spectrum`.
    unknown : {"error", "skip"}, default="error"
        As for :class:`Spectrum`.
    columns : str, int, list, slice, boolean mask or callable, default=None
        As for :class:`Spectrum`.

    Attributes
    ----------
    letters_ : str
        The alphabet, or the letters of training strings.

    References
    ----------
    Leslie and Kuang (2004). Fast string kernels using inexact matching for protein sequences.
    JMLR 5, the (g, k)-gappy kernel.

    Examples
    --------
    >>> from manykernels.kernels import Gapped
    >>> Gapped(k=2, g=3, normalize=False)(["ABC", "AXB"])
    array([[3., 1.],
           [1., 3.]])
    >>> Gapped(k=2, g=3, decay=0.5, normalize=False)(["ABC", "AXB"])
    array([[2.25, 0.5 ],
           [0.5 , 2.25]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **StringKernel._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "g": [Interval(Integral, 1, None, closed="left")],
        "decay": [Interval(Real, 0, 1, closed="right"), None],
    }

    k: int = 3
    g: int = 5
    decay: float | None = None

    @property
    def _span(self) -> tuple[int, str]:
        return self.g, f"g={self.g}"

    def _check(self, X: Sequences) -> None:
        if self.g < self.k:
            raise ValueError(f"windows of g={self.g} letters are shorter than k={self.k}.")
        if comb(self.g, self.k) > _MOST_PATTERNS:
            raise ValueError(
                f"k={self.k} of g={self.g} places are {comb(self.g, self.k)} kinds of words, more "
                f"than {_MOST_PATTERNS}: choose a smaller g."
            )
        super()._check(X)

    def _terms(self) -> list[tuple[float, Term]]:
        return [(1.0, _Subsequences(self.k, self.g, self.decay, self._letters()))]
