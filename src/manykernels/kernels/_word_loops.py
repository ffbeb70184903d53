"""The loop over pairs of strings that have a word in common, compiled."""

from __future__ import annotations

from .._compiled import compiled


@compiled(nogil=True)
def add_pairs(  # type: ignore[no-untyped-def]
    K, weight, start, stop, bounds, words, counts, list_bounds, strings, list_counts, gram
):
    """Add products of counts, row by row: for each word, the strings that have it.

    These are in order, so that those on and above the diagonal are the last.
    """
    for i in range(start, stop):
        for entry in range(bounds[i], bounds[i + 1]):
            word = words[entry]
            count = weight * counts[entry]
            for place in range(list_bounds[word + 1] - 1, list_bounds[word] - 1, -1):
                j = strings[place]
                if gram and j < i:
                    break
                K[i, j] += count * list_counts[place]
