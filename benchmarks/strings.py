"""Seconds for Gram matrices of string kernels.

    python -m benchmarks.strings [--quick] [--sets Spectrum,Gapped] [--write]

Strings are random, with the frequencies of amino acids in proteins. For words of k letters the
same numbers are computed by scikit-learn's CountVectorizer and a product of sparse matrices, and
compared. Seconds are those of the processor, medians of some repetitions; the clock of a machine
with several cores shows less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, report
from benchmarks._tables import environments, markdown
from manykernels.kernels import Gapped, Mismatch, Spectrum, WeightedDegree

STRINGS, LETTERS, NEW = 5000, 400, 500
REPETITIONS = 3
# Per cent of the amino acids in known proteins, in alphabetical order of their letters.
_FREQUENCIES = [
    *(8.3, 1.4, 5.5, 6.7, 3.9, 7.1, 2.3, 5.9, 5.8, 9.6),
    *(2.4, 4.1, 4.7, 3.9, 5.5, 6.6, 5.3, 6.9, 1.1, 2.9),
]
_AMINO_ACIDS = list("ACDEFGHIKLMNPQRSTVWY")

KERNELS: dict[str, Any] = {
    **{f"Spectrum({k})": Spectrum(k) for k in (1, 2, 3, 4, 5, 6, 15)},
    **{f"Mismatch({k}, 1)": Mismatch(k, 1, alphabet="protein") for k in (3, 4, 5)},
    "Mismatch(5, 2)": Mismatch(5, 2, alphabet="protein"),
    **{f"Gapped({k}, {g})": Gapped(k, g) for k, g in ((2, 4), (3, 5), (4, 6))},
    "Gapped(3, 5, 0.5)": Gapped(3, 5, 0.5),
    "WeightedDegree(10)": WeightedDegree(10),
}
KINDS = ["Spectrum", "Mismatch", "Gapped", "WeightedDegree"]


def proteins(n: int, length: int, seed: int) -> list[str]:
    """Random strings of amino acids."""
    shares = np.array(_FREQUENCIES) / sum(_FREQUENCIES)
    letters = np.random.default_rng(seed).choice(_AMINO_ACIDS, (n, length), p=shares)
    return ["".join(row) for row in letters]


def by_vectorizer(strings: list[str], k: int) -> np.ndarray:
    """Spectrum(k) by scikit-learn."""
    vectorizer = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False)
    counts = normalize(vectorizer.fit_transform(strings).astype(np.float64))
    return (counts @ counts.T).toarray()


@dataclass(frozen=True)
class Row:
    """Seconds of a kernel: Gram matrix, block of new strings, and scikit-learn's way."""

    name: str
    gram: float
    block: float
    reference: float | None
    difference: float | None


def measure(name: str, strings: list[str], new: list[str], repetitions: int) -> Row:
    """Medians, and the largest difference from scikit-learn's way."""
    kernel = KERNELS[name]
    with threadpool_limits(1):
        kernel.fit(strings[:50])(strings[:50])  # compiled before
        gram, K = _timed(lambda: kernel(strings), repetitions)
        block, _ = _timed(lambda: kernel(new, strings), repetitions)
        if not isinstance(kernel, Spectrum):
            return Row(name, gram, block, None, None)
        reference, expected = _timed(lambda: by_vectorizer(strings, kernel.k), 1)
    return Row(name, gram, block, reference, float(np.abs(K - expected).max()))


def _timed(work: Callable[[], np.ndarray], repetitions: int) -> tuple[float, np.ndarray]:
    """Median of the seconds, and the last result."""
    times = []
    for _ in range(repetitions):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return float(np.median(times)), result


def _cells(row: Row) -> list[str]:
    known = row.reference is not None
    return [
        row.name,
        f"{row.gram:.2f}",
        f"{row.block:.2f}",
        f"{row.reference:.1f}" if known else "",
        f"{row.reference / row.gram:.0f}" if row.reference is not None else "",
        f"{row.difference:.0e}" if known else "",
    ]


def page(results: Results) -> str:
    """The page of the documentation."""
    n, length, n_new = next(iter(results.values()))["sizes"]
    rows = [Row(**row) for part in results.values() for row in part["rows"]]
    header = ["kernel", f"{n} × {n}", f"{n_new} × {n}", "CountVectorizer", "times", "difference"]
    parts = [
        "# String kernels",
        "Written by `python -m benchmarks.strings --write`. Seconds of the processor "
        f"for the Gram matrix of {n} random proteins of {length} letters, and for {n_new} new "
        f"ones with these; medians of {REPETITIONS}. Everything is counted in that time: letters, "
        "words, products, normalisation. CountVectorizer is the same matrix by scikit-learn's "
        "character n-grams and a product of sparse matrices, once; *times* is how many times as "
        "long it takes, *difference* the largest between both.",
        environments(results),
        markdown(header, [_cells(row) for row in rows]),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("strings", "Gram matrices of string kernels.", KINDS)
    options = parser.parse_args(arguments)
    n, length, n_new = (200, 60, 20) if options.quick else (STRINGS, LETTERS, NEW)
    strings, new = proteins(n, length, 0), proteins(n_new, length, 1)
    results = {}
    for kind in options.sets:
        rows = []
        for name in KERNELS:
            if name.split("(")[0] == kind:
                rows.append(measure(name, strings, new, 1 if options.quick else REPETITIONS))
                print(_cells(rows[-1]), file=sys.stderr, flush=True)
        results[kind] = {"sizes": [n, length, n_new], "rows": rows}
    report("strings", results, page, options.write, KINDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
