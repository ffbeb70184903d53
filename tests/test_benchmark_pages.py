"""Pages of benchmarks are what their measured values say; nothing is edited by hand."""

import re

import numpy as np
import pytest

from benchmarks import _command, certificates, pages
from benchmarks import gonen2013 as gonen
from benchmarks._tables import ABOVE, BELOW, WITHIN, PaperRow

NAMES = [name for name, _ in pages.converted()]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_made_of_its_measured_values(name):
    module = dict(pages.converted())[name]
    text = (_command.PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text == module.page(_command.read_results(name)), (
        f"docs/benchmarks/{name}.md and .json disagree: run python -m benchmarks.pages"
    )


def test_every_page_has_measured_values():
    others = {"index", pages.INDEX}
    assert {path.stem for path in _command.PAGES.glob("*.md")} - others == set(NAMES)


def test_make_bench_runs_every_benchmark_with_a_page():
    text = (_command.PAGES.parents[1] / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"python -m benchmarks\.(\w+)\n", text.split("\nbench:")[1])
    assert names[-1] == "pages"
    assert sorted(names[:-1]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_a_quick_form(name, capsys):
    with pytest.raises(SystemExit) as ended:
        dict(pages.converted())[name].main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"python -m benchmarks.{name} " in shown
    assert "--quick" in shown
    assert "--write" in shown


def test_the_indices_of_tables_are_made_of_all_rows():
    text = (_command.PAGES / f"{pages.INDEX}.md").read_text(encoding="utf-8")
    assert text == pages.index(), "run python -m benchmarks.pages"
    text = pages.METHODS.read_text(encoding="utf-8")
    assert text == pages.with_verdicts(text), "run python -m benchmarks.pages"
    with pytest.raises(ValueError, match="has no lines"):
        pages.with_verdicts("")


@pytest.mark.parametrize("name", NAMES)
def test_measured_values_say_what_they_were_measured_with(name):
    for part in _command.read_results(name).values():
        assert part["environment"]["versions"]["manykernels"]
        assert part["environment"]["machine"]


def test_every_row_beside_a_paper_is_there_once():
    rows = [row for _, row in pages.paper_rows()]
    assert all(isinstance(row, PaperRow) for row in rows)
    keys = [(row.paper, row.place, row.data, row.method) for row in rows]
    assert len(keys) == len(set(keys))


def test_the_readme_has_the_totals():
    rows = [row for _, row in pages.paper_rows() if row.same_data]
    numbers = [sum(row.outcome == outcome for row in rows) for outcome in (WITHIN, ABOVE, BELOW)]
    unexplained = sum(row.outcome != WITHIN and not row.reason for row in rows)
    within, above, below = numbers
    text = (_command.PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"of {len(rows)} printed figures on the same data {within} are within" in text
    assert f"{above} above and {below} below; for {unexplained} of these no test found why" in text


def test_every_table_and_figure_of_the_papers_has_a_row():
    places = {(row.paper, part) for _, row in pages.paper_rows() for part in _places(row.place)}
    for paper, numbers in pages.CONTENTS.items():
        for kind, number in numbers.items():
            for i in range(1, number + 1):
                place = (paper, f"{kind} {i}")
                assert (place in places) != (place in pages.WITHOUT_FIGURES), place


def _places(place):
    """Table 2 and Table 3 of "Tables 2, 3"."""
    if place.startswith("Tables "):
        return [f"Table {number}" for number in place.removeprefix("Tables ").split(", ")]
    return [place]


# -- figures that are repeated on the index, and in README ----------------------------------------


def importing(results):
    ratios = [row["seconds"] / row["reference"] for row in results["import"]["rows"]]
    return [f"takes {ratios[1]:.2f} times", f"MKFDA` {ratios[2]:.2f} times"]


def threads(results):
    seconds = {
        name: np.median(found["clock"]) for name, found in results["300"]["seconds"].items()
    }
    free, limited = (seconds[f"1 x {n}"] / seconds["1 x 1"] for n in ("2, not limited", "2"))
    apart = seconds["2 x 2"] / seconds["2 x 1"]
    return [f"takes {free:.0f} times", f"({limited:.1f} times)", f"({apart:.0f} times)"]


def strings(results):
    def span(*kinds):
        times = [row["gram"] for kind in kinds for row in results[kind]["rows"]]
        return f"in {min(times):.2g} to {max(times):.2g} s"

    return [f"k-mers {span('Spectrum')}", f"or gaps {span('Mismatch', 'Gapped')}"]


def building(results):
    ratios = [row["seconds"] / row["reference"] for row in results["fits"]["rows"]]
    return [f"takes {min(ratios):.1f} to {max(ratios):.1f} times"]


def survival(results):
    def mean(names, contender):
        indices = [np.mean(results[name]["indices"][contender]) for name in names]
        return f"{np.mean(indices):.3f}"

    cohorts = [name for name in results if "MKCoxCV, clinic alone" in results[name]["indices"]]
    tables = [name for name in results if name not in cohorts]
    ours, net, forest = "MKCoxCV", "Cox, elastic net", "random survival forest"
    return [
        f"mean concordance index {mean(cohorts, ours)}",
        f"elastic net {mean(cohorts, net)}",
        f"survival forest {mean(cohorts, forest)}",
        *([mean(tables, name) for name in (ours, net, forest)]),
    ]


def kernels_on_demand(results):
    rows = {row["model"]: row["seconds"] / 60 for row in results["100000"]["rows"]}
    return [f"{rows['MKFDA']:.1f} minutes with `MKFDA`, {rows['MKSVC']:.1f} with `MKSVC`"]


def regions(results):
    solves = [
        n for part in results.values() for row in part["solves"] for n in row["n_inner_solves"]
    ]
    *_, second, most = sorted(solves)
    return [f"in 1 to {second} solves (one case of {len(solves)}: {most})"]


def easymkl(results):
    def ratios(problem, start, end="seconds"):
        rows = {row["contender"]: row[end] for row in results[problem]["contenders"]}
        theirs = rows["easymkl-svc"]
        return sorted(value / theirs for name, value in rows.items() if name.startswith(start))

    machines, discriminants = ratios("binary", "mksvc"), ratios("binary", "mkfda")
    ten = [1.0 / ratio for ratio in ratios("ten", "mk")]
    assert ratios("ten", "mk", "fit_bytes")[-1] < 1 / 50
    return [
        f"in {machines[0]:.1f} to {machines[-1]:.1f} of its time with `MKSVC`",
        f"in {discriminants[0]:.1f} to {discriminants[-1]:.1f} times with `MKFDA`",
        f"{ten[-1]:.0f} to {ten[0]:.0f} times faster",
    ]


def choices(results):
    few, more = (
        {row["rule"]: row for row in results[f"Machines, {kind}"]["rules"]}
        for kind in ("few, unbalanced samples", "more samples")
    )
    loss = [rows['scoring="neg_log_loss"'] for rows in (few, more)]
    offsets = [rows["without offsets"] for rows in (few, more)]
    few_and_more = [f"{row['difference']:.1f} ± {row['error']:.1f}" for row in loss]
    gains = [f"{-row['difference']:.1f} ± {row['error']:.1f}" for row in offsets]
    return [
        f"log loss gains {few_and_more[0]} points with 40 rows and {few_and_more[1]} with 150",
        f"held-out samples gain {' and '.join(gains)} points",
    ]


def missing(results):
    rows = [row for part in results.values() for row in part["rows"]]
    gains = []
    for place in {(row["data"], row["what"]) for row in rows if row["what"].endswith("% missing")}:
        means = {
            row["contender"]: row["mean"] for row in rows if (row["data"], row["what"]) == place
        }
        ours = max(means.pop("mean"), means.pop("conditional"))
        gains.append(ours - max(means.values()))
    assert min(gains) > -1e-3
    return [f"up to {100 * max(gains):.1f} points better"]


def medium(results):
    return [f"in {results['large']['peak_bytes'] / 2**30:.1f} GiB of memory"]


def path(results):
    (part,) = results.values()
    folds, closed = (cost["seconds"] / cost["seconds_per_fit"] for cost in part["costs"])
    seconds = {choice["name"]: choice["seconds"] for choice in part["choices"]}
    search = seconds.pop("GridSearchCV, five folds")
    faster = " and ".join(f"{search / ours:.1f}" for ours in seconds.values())
    return [f"{folds:.0f} single fits", f"in closed form of {closed:.0f}", f"{faster} times"]


def gonen2013(results):
    values = [
        row for name in gonen.ROWS if name in results for row in gonen.value_rows(results, name)
    ]
    within = sum(row.outcome == WITHIN for row in values)
    statements = gonen.statements(results)
    agree = sum(gonen.agrees(statement, counts) for statement, counts in statements)
    return [
        f"{within} of {len(values)} accuracies and errors within",
        f"{agree} of {len(statements)} statements",
    ]


REPEATED = [
    importing,
    threads,
    strings,
    building,
    survival,
    kernels_on_demand,
    regions,
    easymkl,
    choices,
    missing,
    medium,
    path,
    gonen2013,
]


@pytest.mark.parametrize("figures", REPEATED, ids=lambda figures: figures.__name__)
def test_figures_on_the_index_are_those_of_the_pages(figures):
    name = figures.__name__
    text = (_command.PAGES / "index.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if f"]({name}.md)" in line)
    for figure in figures(_command.read_results(name)):
        assert figure in row


def test_figures_of_survival_in_the_readme_are_those_of_the_page():
    text = (_command.PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if "benchmarks.survival" in line)
    for figure in survival(_command.read_results("survival"))[:3]:
        assert figure in row


def test_figures_of_missing_views_are_those_of_the_page():
    means = {
        (row["data"], row["what"], row["contender"]): row["mean"]
        for part in _command.read_results("missing").values()
        for row in part["rows"]
    }
    text = (_command.PAGES.parent / "explanation" / "missing_views.md").read_text(encoding="utf-8")
    for data in ("mfeat", "bbc"):
        for share in ("20%", "40%"):
            found = {
                name: mean
                for (*place, name), mean in means.items()
                if place == [data, f"{share} missing"]
            }
            ours = [found.pop("mean"), found.pop("conditional")]
            cells = [means[data, "nothing missing", "all there"], *ours, max(found.values())]
            shown = " | ".join(f"{cell:.3f}" for cell in cells)
            assert f"{share.replace('%', ' %')} missing | {shown} |" in text


def test_counts_of_certificates_are_those_of_the_page():
    parts = _command.read_results("certificates")
    first = [part for name, part in parts.items() if name in certificates.DRAWN]
    others = [part for name, part in parts.items() if " of " in name]
    text = (_command.PAGES.parent / "explanation" / "certificates.md").read_text(encoding="utf-8")
    counts = [sum(int(certificates.totals(part)[k]) for part in first) for k in range(5)]
    more = sum(int(certificates.totals(part)[0]) for part in others)
    assert not any(part["wrong"] for part in [*first, *others])
    assert counts[4] == 0
    shown = [
        f"{count:,}".replace(",", " ") if count >= 10_000 else f"{count}"
        for count in (*counts, more)
    ]
    text = " ".join(text.split())
    assert f"None of the {shown[0]} certified fits" in text
    assert (
        f"{shown[1]} fits were limited by rounding, {shown[2]} stopped early, {shown[3]} were"
        in text
    )
    assert f"any of {shown[5]} certified fits with other seeds" in text
