"""Maps of kernels of strings: counts of all words over an alphabet.

A kernel ``Σ_t c_t C_t C_tᵀ`` of counts with c_t ≥ 0 has the features ``√c_t C_t``, one for each
word over the letters of training, whether it occurs or not. Words with other letters have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Mismatch
from ..kernels._words import Term
from ..kernels.sequences import Sequences
from ..kernels.strings import StringKernel, Words
from .kernel_maps import KernelMap, Request, RowMap, map_of


@dataclass(frozen=True)
class WordsMap(RowMap):
    """Counts of words; `terms` are kinds of words, the factor and the number of each."""

    kernel: StringKernel
    terms: list[tuple[float, Term, int]]

    @property
    def n_features(self) -> int:
        return sum(n_words for _, _, n_words in self.terms)

    def _features(self, rows: Sequences) -> np.ndarray:
        found = self._counted(rows)
        if self.kernel.normalize:
            # By lengths that count words of other letters too, as the kernel does.
            found /= np.sqrt(self.kernel._squares(rows))[:, None]
        return found

    def _counted(self, strings: Sequences) -> np.ndarray:
        letters = self.kernel.letters_
        return np.hstack(
            [
                np.sqrt(factor) * _counts(term, strings, letters, n_words)
                for factor, term, n_words in self.terms
            ]
        )


def _counts(term: Term, strings: Sequences, letters: str, n_words: int) -> np.ndarray:
    """How often every string has every word over `letters`, (n_strings, n_words)."""
    places, weights = [], []
    for part in term.occurrences(strings, letters):
        word = np.zeros(len(part.rows), np.int64) if part.place is None else part.place
        known = np.ones(len(part.rows), dtype=bool)
        for digit in part.digits:
            # The digit 0 is any other letter.
            word = word * len(letters) + digit - 1
            known &= digit > 0
        places.append(part.rows[known] * n_words + word[known])
        weights.append(np.full(len(places[-1]), part.weight))
    total = np.bincount(
        np.concatenate(places), np.concatenate(weights), minlength=len(strings) * n_words
    )
    return total.reshape(len(strings), n_words)


def _n_words(term: Term, strings: Sequences, letters: str) -> int:
    """How many words over `letters` there are of a kind."""
    part = next(iter(term.occurrences(strings, letters)))
    return part.n_places * len(letters) ** len(part.digits)


def _with_numbers(
    terms: list[tuple[float, Term]], kernel: StringKernel, request: Request
) -> list[tuple[float, Term, int]]:
    """Kinds of words with the number of each, if it is small enough."""
    one = request.sample[:1]
    found = [(factor, term, _n_words(term, one, kernel.letters_)) for factor, term in terms]
    request.require(sum(n_words for _, _, n_words in found), kernel)
    return found


@map_of.register
def _of_words(kernel: StringKernel, request: Request) -> KernelMap:
    terms = kernel._terms()
    if any(factor < 0.0 for factor, _ in terms):
        return map_of.dispatch(object)(kernel, request)
    request = request.of_rows(kernel)
    return WordsMap(request.steps, kernel, _with_numbers(terms, kernel, request))


@dataclass(frozen=True)
class NearWordsMap(WordsMap):
    """Counts of words of k letters that differ from each word at no more than m places.

    The counts n of words as they are, with an axis of n_letters for each place, are spread over
    the places one after the other: with n_d those at d places so far, another letter at the next
    place makes one more,

        n_d ← n_d + (Σ_letters n_{d−1} − n_{d−1})

    along the axis of this place; in the end all n_d with d ≤ m count.
    """

    def _counted(self, strings: Sequences) -> np.ndarray:
        kernel: Mismatch = self.kernel  # type: ignore[assignment]
        counts = super()._counted(strings)
        shape = (len(counts), *[len(kernel.letters_)] * kernel.k)
        at = [counts.reshape(shape), *(np.zeros(shape) for _ in range(kernel.m))]
        for axis in range(1, kernel.k + 1):
            for d in range(kernel.m, 0, -1):
                at[d] = at[d] + at[d - 1].sum(axis=axis, keepdims=True) - at[d - 1]
        return sum(at).reshape(counts.shape)  # type: ignore[union-attr]


@map_of.register
def _of_near_words(kernel: Mismatch, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    words = Words(tuple(range(kernel.k)), kernel.k, kernel.letters_)
    return NearWordsMap(request.steps, kernel, _with_numbers([(1.0, words)], kernel, request))
