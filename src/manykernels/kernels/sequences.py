"""Sequences: the strings of one column as one array of letters, and where each begins.

Kernels of strings count short words. They do so for all strings at once, by operations on the
concatenated letters; a *window* is a place in that array where a word begins and does not reach
beyond the end of its string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .tables import is_missing, refuse_masked
from .view_tables import entries_of_one_column

#: Alphabets by name.
ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}

# How much of a string is shown in a message.
_SHOWN = 20


class Sequences:
    """Strings as numbers: `codes` are the code points of all letters, string by string.

    ``bounds[i]`` to ``bounds[i + 1]`` are the letters of string i.
    """

    def __init__(self, codes: np.ndarray, bounds: np.ndarray) -> None:
        self.codes = codes
        self.bounds = bounds
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(cls, X: Any) -> Sequences:
        """The strings of a list, Series, array or data frame of one column."""
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
        # Half of a surrogate pair is no letter, but may be in a string of Python.
        encoded = joined.encode("utf-32-le", errors="surrogatepass")
        return cls(np.frombuffer(encoded, dtype="<u4"), bounds)

    @property
    def shape(self) -> tuple[int, int]:
        """That of a table with one column."""
        return len(self), 1

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> np.ndarray:
        """How many letters each string has."""
        return np.diff(self.bounds)

    def __getitem__(self, rows: Any) -> Sequences:
        """Some of the strings: a slice, a mask or positions."""
        chosen = np.arange(len(self))[rows]
        lengths = self.lengths[chosen]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        # Where each chosen letter is among all letters.
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[chosen] - bounds[:-1], lengths)
        return Sequences(self.codes[places], bounds)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was called first for this key."""
        if key not in self._made:
            self._made.setdefault(key, make())
        return self._made[key]

    def has(self, key: Any) -> bool:
        """Whether something was made for this key."""
        return key in self._made

    @property
    def letters(self) -> str:
        """All letters that occur, in order."""
        found: str = self.once("letters", lambda: "".join(map(chr, np.unique(self.codes))))
        return found

    def text(self, row: int) -> str:
        """A string, or its beginning, as messages show it."""
        codes = self.codes[self.bounds[row] : self.bounds[row + 1]]
        shown = "".join(map(chr, codes[:_SHOWN]))
        return repr(shown + "…" if len(codes) > _SHOWN else shown)

    def digits(self, letters: str) -> np.ndarray:
        """The place of every letter among `letters`, from 1; 0 if it is none of them."""
        return self.once(("digits", letters), lambda: self._digits(letters))

    def _digits(self, letters: str) -> np.ndarray:
        known = np.sort(np.array([ord(letter) for letter in letters], dtype=np.int64))
        codes = self.codes.astype(np.int64)
        places = np.searchsorted(known, codes)
        places[places == len(known)] = 0
        return np.where(known[places] == codes, places + 1, 0)

    def windows(self, span: int, letters: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Where `span` letters in a row begin, all of `letters` (None: any), and in which string.

        Both are of the same length, in the order of the strings.
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

    # -- what is refused -------------------------------------------------------------------

    def refuse_short(self, span: int, what: str) -> None:
        """Refuse a string with fewer letters than `span`, which is `what`."""
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
        """Refuse a letter that is not of an alphabet."""
        others = np.flatnonzero(self.digits(alphabet) == 0)
        if len(others) == 0:
            return
        row = int(np.searchsorted(self.bounds, others[0], side="right")) - 1
        letter = chr(self.codes[others[0]])
        case = ""
        if letter.swapcase() in alphabet:
            method = "upper" if letter.islower() else "lower"
            case = f"change its case, such as by X.str.{method}(); "
        raise ValueError(
            f"row {row} has the letter {letter!r} at position {others[0] - self.bounds[row]}, "
            f"which is not of the alphabet {alphabet!r} ({len(others)} letters are not): {case}"
            'pass unknown="skip" to leave out words with such letters, or alphabet=None, which '
            "takes all."
        )

    def refuse_empty(self, span: int, letters: str) -> None:
        """Refuse a string in which no `span` letters in a row are all of `letters`."""
        _, rows = self.windows(span, letters)
        counts = np.bincount(rows, minlength=len(self))
        if not counts.all():
            row = int(np.argmin(counts))
            raise ValueError(
                f"row {row} ({self.text(row)}) has no {span} letters in a row that are all of the "
                f"alphabet {letters!r}: leave it out, or compare shorter words."
            )


def _refuse_entry(entry: Any, row: int) -> None:
    """Refuse what is not a string."""
    if is_missing(entry):
        raise ValueError(
            f"X has a missing value (None, NaN or NA) at row {row}: leave the row out, or pass "
            'strings as one of several views, with missing="mean" for the estimator.'
        )
    way_out = ": pass entry.decode()" if isinstance(entry, bytes) else ""
    raise TypeError(f"the kernel compares strings, but row {row} is {entry!r}{way_out}.")


def letters_of(alphabet: str) -> str:
    """The letters of an alphabet, given by its name or by the letters themselves."""
    letters = ALPHABETS.get(alphabet, alphabet)
    if len(letters) < 2 or len(set(letters)) < len(letters):
        raise ValueError(
            f"alphabet={alphabet!r} is neither one of {', '.join(map(repr, ALPHABETS))} nor two "
            "or more letters, all different, such as 'ACGT'."
        )
    return "".join(sorted(letters))
