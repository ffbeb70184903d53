"""The experiments of Yan et al. (2012) that other pages do not hold: Figs. 2 and 6 to 9, words.

    python -m benchmarks.yan2012 [--quick] [--sets mixture,added,time,race,words,pyramid]
        [--write]

Each part says what the paper did and what is done here on public data: its kernels are not
available. Bounds are the paper's statements, and those that do not hold here are reported as
missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import _yan2012_pyramid as pyramid
from benchmarks import _yan2012_random as noise
from benchmarks import _yan2012_speed as speed
from benchmarks import _yan2012_words as words
from benchmarks._command import Results, command_line, load, with_environment, write_results
from benchmarks._tables import PaperRow, environments, markdown

#: Figures and tables of the paper, and where they are reproduced.
INDEX = [
    ["Fig. 1, section 3.1", "simulation, ℓ1 and ℓ2", "[simulation](simulation.md)"],
    ["Fig. 2, section 3.2", "VOC2008: random kernels in the place of informative ones", "below"],
    ["Table 1, Figs. 3–5", "VOC2007: norms for each object", "on other data: [voc](voc.md)"],
    ["Fig. 6, section 3.4", "Caltech101: random kernels beside informative ones", "below"],
    ["Table 2, section 3.5", "Flower17, seven kernels", "photographs: [flower](flower.md)"],
    [
        "Table 3, section 3.6",
        "protein localisation, 69 kernels",
        "other proteins: [protein](protein.md)",
    ],
    ["Fig. 7, section 3.7.1", "training time, two classes", "below; [svm](svm.md)"],
    ["Fig. 8, section 3.7.2", "training time, many classes", "below; [solvers](solvers.md)"],
    ["Fig. 9, section 3.7.2", "accuracy by training time, OBSCURE", "below"],
    ["Section 3.2", "spatial pyramid match kernels", "below"],
    ["Section 3.3", "soft assignment of visual words", "below"],
]


@dataclass(frozen=True)
class Part:
    """A part of the page: how it is measured, shown and judged."""

    title: str
    measure: Callable[[bool], Any]
    show: Callable[[Any], str]
    judge: Callable[[Any], list[str]]


PARTS = {
    "mixture": Part(
        "Fig. 2: 30 kernels, some of them random",
        noise.mixture,
        noise.mixture_table,
        noise.mixture_verdicts,
    ),
    "added": Part(
        "Fig. 6: random kernels added, accuracy in per cent",
        noise.added,
        noise.added_table,
        noise.added_verdicts,
    ),
    "time": Part(
        "Figs. 7 and 8: training time", speed.curves, speed.curve_tables, speed.curve_verdicts
    ),
    "race": Part(
        "Fig. 9: accuracy by training time", speed.race, speed.race_table, speed.race_verdicts
    ),
    "words": Part("Soft assignment of words", words.run, words.table, words.verdicts),
    "pyramid": Part("Spatial pyramids of words", pyramid.run, pyramid.table, pyramid.verdicts),
}
NOTES = {"mixture": noise, "time": speed, "words": words, "pyramid": pyramid}


def measured(part: Part, quick: bool) -> dict[str, Any]:
    """One part as plain values, and its seconds."""
    begin = time.process_time()
    found = part.measure(quick)
    return {"found": found, "seconds": time.process_time() - begin}


def paper_rows(results: Results) -> list[PaperRow]:
    """Figures of the paper that are printed as numbers, beside ours."""
    return noise.added_rows(results["added"]["found"]) if "added" in results else []


def page(results: Results) -> str:
    """The page of the documentation."""
    lines = [line for name, found in results.items() for line in PARTS[name].judge(found["found"])]
    parts = [
        "# Random kernels, training time and words, beside Yan et al. (2012)",
        "Written by `python -m benchmarks.yan2012 --write`. The figures of the paper that other "
        "pages do not have. Its kernels are not available, so its questions are asked of other "
        "public data, and its statements are the bounds: the paper prints pictures, few numbers. "
        "Kernels are Gaussian with the median distance as width, unless said otherwise; λ and C "
        "are five values from 4⁻⁵ to 4³ where they are chosen. Seeds are 0, 1, ….",
        environments(results),
        "## Summary",
        "\n".join(f"- {line}" for line in lines),
        "## All figures and tables of the paper",
        markdown(["there", "what", "where"], INDEX, n_left=3),
    ]
    for name, found in results.items():
        parts.append(f"## {PARTS[name].title}")
        if name in NOTES:
            note = (NOTES[name].__doc__ or "").split("\n\n", 1)[1]
            parts.append(note.replace("``", "`").strip())
        parts += [PARTS[name].show(found["found"]), f"{found['seconds']:.0f} s in all."]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a part were missing."""
    parser = command_line("yan2012", "Figs. 2 and 6 to 9 of Yan et al. (2012).", list(PARTS))
    options = parser.parse_args(arguments)
    results: Results = {}
    for name in options.sets:
        found = load(name, lambda part=PARTS[name]: measured(part, options.quick))  # type: ignore[misc]
        if found is None:
            continue
        results[name] = found
        if options.write:
            write_results("yan2012", {name: found}, page, PARTS)
    if results and not options.write:
        print(page(with_environment(results)))
    return int(len(results) < len(options.sets))


if __name__ == "__main__":
    sys.exit(main())
