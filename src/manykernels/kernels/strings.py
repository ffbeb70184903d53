"""Kernels of strings, such as of proteins and DNA: how many words they have in common.

All are sums of inner products of counts, ``K = Σ_t c_t C_t C_tᵀ``, one for each *term*, a kind of
words (`_words.py`). A fitted kernel keeps the letters of training, `letters_`. A word with a
letter that training had not equals no word of training; it counts as a word of its own in the
similarity of new strings with each other and with themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from .._sklearn import Interval, StrOptions
from ._words import Counts, Occurrences, Term, add_products
from .base import Kernel
from .sequences import Sequences, letters_of
from .tables import naming


class StringKernel(Kernel):
    """Base of kernels of strings; a subclass says what words it counts, `_terms`.

    `_span` letters in a row have to be there for a string to have any word.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alphabet": [str, None],
        "unknown": [StrOptions({"error", "skip"})],
        "normalize": ["boolean"],
    }

    alphabet: str | None
    unknown: str
    normalize: bool

    @abstractmethod
    def _terms(self) -> list[tuple[float, Term]]:
        """Kinds of words, and the factor of each."""

    @property
    @abstractmethod
    def _span(self) -> tuple[int, str]:
        """How many letters a string needs at least, and what it is called."""

    def _letters(self) -> str | None:
        """The letters that words are made of; None means all."""
        return None if self.alphabet is None else letters_of(self.alphabet)

    def _validated(self, X: Any) -> Sequences:
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
        """Refuse strings that are too short, or have other letters."""
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
            # Training strings are compared with blocks of new ones, one after the other.
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
        """Similarities of strings with themselves, before they are normalised."""
        terms = tuple(self._terms())

        def squares() -> np.ndarray:
            lengths = [weight * Counts.of(term, X).squared_lengths() for weight, term in terms]
            return np.sum(lengths, axis=0)

        found: np.ndarray = X.once(("squares", terms), squares)
        return found


@dataclass(frozen=True)
class Words:
    """Letters at some `places` of every window of `span` letters, all of `letters` (None: any).

    With `others`, of those windows that have other letters as well.
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


class Spectrum(StringKernel):
    """Number of common words of k letters: ``Σ_w n_w(x) n_w(y)``, n_w(x) how often w is in x.

    Words are all k letters in a row, also overlapping ones. A word with a letter that did not
    occur in training matches no training string.

    Parameters
    ----------
    k : int, default=3
        Letters of a word. A string with fewer is refused.
    normalize : bool, default=True
        Divide by the lengths of both images in feature space, so that every string has the
        similarity 1 with itself. Otherwise similarities grow with the product of the numbers of
        letters.
    alphabet : str, default=None
        The letters that may occur, such as "ACGT", or one of "dna", "rna" and "protein" (the
        twenty amino acids). None takes any letters.
    unknown : {"error", "skip"}, default="error"
        What to do about letters that are not of a given `alphabet`, such as N and X for unknown
        ones: refuse them, or leave out words that contain them.
    columns : see :class:`Kernel`
        One column of strings; no choice is needed where there is but one, or a list of strings.

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

    def __init__(
        self,
        k: int = 3,
        *,
        normalize: bool = True,
        alphabet: str | None = None,
        unknown: str = "error",
        columns: Any = None,
    ) -> None:
        self.k = k
        self.normalize = normalize
        self.alphabet = alphabet
        self.unknown = unknown
        self.columns = columns

    @property
    def _span(self) -> tuple[int, str]:
        return self.k, f"k={self.k}"

    def _terms(self) -> list[tuple[float, Term]]:
        return [(1.0, Words(tuple(range(self.k)), self.k, self._letters()))]


@dataclass(frozen=True)
class _PlacedWords:
    """d letters in a row, each together with where it is in its string."""

    d: int
    letters: str | None

    def occurrences(self, strings: Sequences, letters: str) -> Iterator[Occurrences]:
        starts, rows = strings.windows(self.d, self.letters)
        digits = strings.digits(letters)
        word = [digits[starts + place] for place in range(self.d)]
        length = int(strings.lengths[0])
        yield Occurrences(rows, word, len(letters) + 1, starts - strings.bounds[rows], length)


class WeightedDegree(StringKernel):
    """Common words of up to d letters at the same places of strings of one length.

    ``K(x, y) = Σ_{i=1}^{d} β_i Σ_l [x and y have the same i letters from place l on]``, with
    ``β_i = 2 (d − i + 1) / (d (d + 1))``: short words count more, since a long one that is common
    contains many short ones. For strings that are aligned, such as the surroundings of splice
    sites.

    Parameters
    ----------
    d : int, default=10
        Letters of the longest words, at most those of a string.
    normalize, alphabet, unknown, columns : see :class:`Spectrum`

    Attributes
    ----------
    letters_ : str
        The alphabet, or the letters of training strings.
    length_ : int
        How many letters strings have.

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

    def __init__(
        self,
        d: int = 10,
        *,
        normalize: bool = True,
        alphabet: str | None = None,
        unknown: str = "error",
        columns: Any = None,
    ) -> None:
        self.d = d
        self.normalize = normalize
        self.alphabet = alphabet
        self.unknown = unknown
        self.columns = columns

    @property
    def _span(self) -> tuple[int, str]:
        return 1, "a word"

    def _learn_scale(self, X: Sequences, weights: np.ndarray) -> None:
        self.__dict__.pop("length_", None)
        super()._learn_scale(X, weights)
        self.length_ = int(X.lengths[0])

    def _prepared(self, X: Any, Y: Any = None) -> tuple[Sequences, Sequences | None]:
        X, Y = super()._prepared(X, Y)
        if Y is not None and X.lengths[0] != Y.lengths[0]:
            raise ValueError(
                f"{self._title}: strings of X have {X.lengths[0]} letters, those of Y "
                f"{Y.lengths[0]}; places are compared, so all need the same number."
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
                "compared, so all strings need the same number: align or cut them."
            )
        if self.d > expected:
            raise ValueError(f"d={self.d} is more than the {expected} letters of a string.")

    def _terms(self) -> list[tuple[float, Term]]:
        letters, d = self._letters(), self.d
        return [
            (2.0 * (d - i + 1) / (d * (d + 1)), _PlacedWords(i, letters)) for i in range(1, d + 1)
        ]
