"""Figures that the index, the README, explanations and guides repeat are those of the pages."""

import numpy as np
import pytest

from benchmarks import _command, certificates, comparison, defaults, localized, others, protein
from benchmarks import _svm_outer as outer
from benchmarks import _yan2012_pyramid as pyramid
from benchmarks import gonen2013 as gonen
from benchmarks._tables import WITHIN

WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
]

# -- on the index ---------------------------------------------------------------------------------


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
    gains = [
        (gain, error, name)
        for name, part in results.items()
        if name != "gauss4"
        for gain, error in zip(part["differences"], part["errors"], strict=True)
        if gain > 3.0 * error > 0.0
    ]
    gain, error, name = max(gains)
    assert {one for *_, one in gains} == {name}
    return [
        f"in 1 to {second} solves (one case of {len(solves)}: {most})",
        f"on one of {WORDS[len(results) - 1]} sets ({name}, R² {gain:+.3f} ± {error:.3f})",
    ]


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


# -- in the README, explanations and guides -------------------------------------------------------


def rank(some, name):
    ranks = [one.ranks() for one in some]
    return f"{np.mean([of_set[name] for of_set in ranks if name in of_set]):.1f}"


def on_sets(results):
    """Results of the page of defaults: all, those with classes, those of regression."""
    found = [defaults.Results.of(name, part) for name, part in results.items()]
    classes = [one for one in found if one.n_classes is not None]
    return found, classes, [one for one in found if one.n_classes is None]


def means(one):
    return {contender.name: one.values(contender).mean() for contender in one.scores}


def defaults_in_the_readme(results):
    classes = on_sets(results)[1]
    shown = {"extra trees": "", "a tuned SVC": "tuned SVC", "CatBoost": "", "LightGBM": ""}
    return [
        f"of eleven methods on {len(classes)} data sets with classes: {rank(classes, 'MKFDACV')}",
        *(f"{name} {rank(classes, known or name)}" for name, known in shown.items()),
    ]


def defaults_where_weights_matter(results):
    found, _, _ = on_sets(results)
    several = [one for one in found if one.n_views > 1]
    leads = [means(one)["plain sum"] - means(one)[one.best(ours=False).name] for one in several]
    (few,) = (means(one) for one in found if one.name == "breast_tcga")
    return [
        f"plain sum is {min(leads):.1f} to {max(leads):.1f} points better",
        f"Breast TCGA this costs {few['plain sum'] - few['MKFDACV']:.1f} points",
    ]


def defaults_of_something_else(results):
    found, classes, regressions = on_sets(results)
    shown = []
    for one in found:
        ours = means(one)["MKFDACV" if one.n_classes is not None else "MKRidgeCV"]
        best = one.best(ours=False)
        if one.values(best).mean() > ours:
            data = f"{one.title.split(',')[0]}{'' if one in classes else ' (R²)'}"
            shown.append(f"| {data} | {ours:.1f} |")
            shown.append(f" {means(one)[best.name]:.1f} |")
    behind = sum("(R²)" not in row for row in shown[::2])
    (motorcycle,) = (means(one) for one in regressions if one.name == "mcycle")
    (places,) = (means(one) for one in classes if one.name == "scene15")
    beside = np.mean([means(one)["MKFDACV"] - means(one)["tuned SVC"] for one in classes])
    return [
        *shown,
        f"On the other {WORDS[len(classes) - behind]} data sets with classes",
        f"R² is {motorcycle['CatBoost']:.1f} %, compared with {motorcycle['MKRidgeCV']:.1f} %",
        f"{places['tuned logistic'] - places['extra trees']:.1f} points behind logistic",
        f"mean rank of {rank(classes, 'MKFDACV')} of eleven methods and the tuned SVC "
        f"{rank(classes, 'tuned SVC')}, but the mean difference is only {beside:.1f} points",
        f"mean rank is {rank(classes, 'plain sum')} of eleven",
    ]


def defaults_of_evidence(results):
    _, classes, regressions = on_sets(results)
    return [
        f"mean rank of {rank(regressions, 'evidence')} on seven tables, where the whole grid has "
        f"{rank(regressions, 'MKRidgeCV')}",
        f"mean rank is {rank(classes, 'evidence')} and that of the norms "
        f"{rank(classes, 'MKFDACV')}",
    ]


def defaults_of_texts(results):
    (texts,) = (means(one) for one in on_sets(results)[0] if one.name == "bbc")
    return [f"accuracy of {texts['plain sum']:.1f} %", f"{texts['tuned logistic']:.1f} %"]


def differences_of_others(results, method, regression=False):
    """Return a method's mean difference on each data set that it was given."""
    return {
        name: others.differences(part, method).mean()
        for name, part in results.items()
        if part["regression"] is regression and method in part["scores"]
    }


def others_of_something_else(results):
    trees = differences_of_others(results, "stacked trees")
    logistic = differences_of_others(results, "stacked logistic")
    classes = differences_of_others(results, others.XRFM)
    values = differences_of_others(results, others.XRFM, regression=True)
    better = sum(difference > 0 for difference in classes.values())
    seconds = {
        name: {method: np.mean(scores, axis=0)[1] for method, scores in part["scores"].items()}
        for name, part in results.items()
    }
    times = [
        seconds[name][method] / seconds[name]["MKFDACV"]
        for method in ("stacked trees", "stacked logistic")
        for name in trees
    ]
    return [
        f"On {WORDS[len(trees)]} data sets of several tables",
        f"stacked extra trees were {-np.mean(list(trees.values())):.1f} points behind",
        f"Both took {min(times):.1f} to {max(times):.0f} times as long",
        f"from {-trees['scene15']:.1f} behind (Scene15) to {trees['mfeat']:.1f} ahead (Multiple",
        f"stacked logistic regressions were {-np.mean(list(logistic.values())):.1f} points behind",
        f"from {-min(logistic.values()):.1f} behind",
        f"to {logistic['bbc']:.1f} ahead (BBC news",
        f"on {WORDS[better]} of {WORDS[len(classes)]} sets with classes",
        f"Heart by {classes['heart']:.1f} points, Wine by {classes['wine']:.1f}",
        f"{-np.mean(list(classes.values())):.1f} points behind in the mean",
        f"{-classes['sonar']:.1f} on Sonar",
        f"{-values['friedman2']:.1f} (Friedman 2) to {-values['friedman1']:.1f} points (Friedman",
    ]


def mixtures(results):
    precision = results["mixture"]["found"]["precision"]
    first, last = (
        {n: np.mean(values) for n, values in precision[f"p = {p}"].items()} for p in ("1", "∞")
    )
    return [
        f"precision of {first['1']:.1f} % and the plain sum {last['1']:.1f} %",
        f"is {first['6']:.1f} and {last['6']:.1f} %, with all 30 it is {first['30']:.1f} and "
        f"{last['30']:.1f} %",
    ]


def views_of_targets(results):
    found = results["views"]["contenders"]
    one, shared, separate = (np.mean(found[name]["r2"]) for name in ("one", "norms", "candidates"))
    return one, shared, separate


def ridge_where_weights_matter(results):
    one, _, separate = views_of_targets(results)
    return [f"R² of {separate:.2f}, the plain sum {one:.2f}"]


def ridge_of_several_targets(results):
    _, shared, separate = views_of_targets(results)
    return [f"R² is {shared:.3f} with shared and {separate:.3f} with separate weights"]


def signed(row):
    return f"{row['difference']:+.1f} ± {row['error']:.1f}".replace("-", "−")


def choices_of_machines(results):
    few, more = (
        {row["rule"]: row for row in results[f"Machines, {kind}"]["rules"]}
        for kind in ("few, unbalanced samples", "more samples")
    )
    name, balanced = "without offsets", 'class_weight="balanced"'
    return [
        f"gain {-few[name]['difference']:.1f} ± {few[name]['error']:.1f} points",
        f"({-few[name]['least']['difference']:.1f} with texts)",
        f"and {-more[name]['difference']:.1f} ± {more[name]['error']:.1f} points with 150",
        f"by {signed(few[balanced])} points with 40 samples, better on "
        f"{WORDS[few[balanced]['n_better']]} data sets and worse on "
        f"{WORDS[few[balanced]['n_worse']]}",
        f"by {signed(more[balanced])} points with 150",
    ]


def choices_of_relevance(results):
    tables = results["RelevanceRBF, simulated regressions, R² in points"]["tables"]
    (row,) = (row for row in tables if row["table"] == "2 of 300 columns")
    without, with_it = (row["means"][f"{word} RelevanceRBF"] / 100 for word in ("without", "with"))
    times = [row["times"]["with RelevanceRBF"] for row in tables if "300" in row["table"]]
    assert 2 <= min(times) <= max(times) <= 3
    return [f"R² rises from {without:.2f} to {with_it:.2f}"]


def localized_estimators(results):
    found = {name: part["groups"] for name, part in results.items() if "groups" in part}
    first = localized.verdicts(found)[0].split(" localized")[0]
    return [f"{first} localized estimators on {len(found)} data sets"]


def factorisations(results):
    most = max(
        cell["n_inner_solves"] for part in results.values() for cell in part["result"]["cells"]
    )
    return [f"at most {most} factorisations for a gap of 1e-6"]


def false_discoveries(results):
    shares = [row["false"] for part in results.values() for row in part.get("settings", [])]
    return [f"[{100 * min(shares):.1f} to {100 * max(shares):.1f} %]"]


def proteins(results):
    (part,) = results.values()
    ours, theirs = (np.mean(protein.at_chosen_norm(part, name)) for name in ("MK-FDA", "MK-SVM"))
    return [f"MK-FDA is {theirs - ours:.1f} points better than MK-SVM"]


def flowers(results):
    ours, average = (
        np.mean(results[name]["accuracy"]) for name in ("ℓp MK-FDA", "averaging, FDA")
    )
    return [f"accuracy of {ours:.1f} %", f"plain averaging ({average:.1f} %)"]


def pyramids(results):
    found = results["pyramid"]["found"]
    learnt, given = (
        pyramid.difference(found, name, pyramid.WHOLE)[0]
        for name in (pyramid.LEARNT, pyramid.GIVEN)
    )
    return [
        f"gain {learnt:.1f} points over words without places",
        f"spatial pyramid match kernel gain {given:.1f}",
    ]


def letters(results):
    def span(*kinds):
        times = [row["gram"] for kind in kinds for row in results[kind]["rows"]]
        return f"{min(times):.1g} to {max(times):.2g} s"

    return [
        f"spectrum kernels take {span('Spectrum')}",
        f"or gaps {span('Mismatch', 'Gapped')}",
    ]


def numbers_of_landmarks(results):
    falls = []
    for part in results.values():
        (default,) = (row for row in part["curve"] if row["landmarks"] == 200)
        falls.append(part["exact"]["accuracy"] - default["accuracy"])
    return [f"accuracy was {min(falls):.2f} to {max(falls):.2f} points below exact kernels"]


def a_million_rows(results):
    (fit,) = (fit for fit in results["simulated 1e+06"]["fits"] if fit["method"] == "single")
    return [f"in {fit['seconds']:.0f} s and {fit['gib']:.0f} GiB"]


def an_incomplete_table(results):
    errors = min(results["breast_tcga"]["errors"].values())
    return [f"{errors} error on {results['breast_tcga']['n_test']} breast tumours"]


def means_of_survival(results):
    return survival(results)[:3]


def survival_of_forests(results):
    ours, _, forest = (figure.split()[-1] for figure in survival(results)[:3])
    return [f"concordance index of {forest} on the five cohorts of TCGA, `MKCoxCV` {ours}"]


def leads_of(some, name):
    leads = [one.lead(contender) for one in some for contender in one.scores]
    names = [contender.name for one in some for contender in one.scores]
    own = [lead for lead, contender in zip(leads, names, strict=True) if contender == name]
    return -min(own), max(own)


def defaults_on_the_index(results):
    _, classes, regressions = on_sets(results)
    behind, ahead = leads_of(classes, "MKFDACV")
    less, more = leads_of(regressions, "MKRidgeCV")
    return [
        f"on {len(classes)} sets of classes (`MKFDACV` from {behind:.1f} points behind the best "
        f"of six others to {ahead:.1f} ahead)",
        f"(`MKRidgeCV` from {less:.1f} behind to {more:.1f} ahead)",
    ]


def others_on_the_index(results):
    trees = differences_of_others(results, "stacked trees")
    logistic = differences_of_others(results, "stacked logistic")
    classes = differences_of_others(results, others.XRFM)
    values = differences_of_others(results, others.XRFM, regression=True)
    means = [-np.mean(list(one.values())) for one in (trees, logistic)]
    return [
        f"stacking on {WORDS[len(trees)]} sets of several views",
        "{:.1f} (extra trees) and {:.1f} points (logistic regression) behind".format(*means),
        f"xRFM on {WORDS[len(classes)]} sets of classes",
        f"(from {-min(classes.values()):.1f} points behind to {max(classes.values()):.1f} ahead)",
        f"({-max(values.values()):.1f} to {-min(values.values()):.1f} behind `MKRidgeCV`)",
    ]


def ridge_on_the_index(results):
    def beside(part, ours, theirs):
        found = results[part]["contenders"]
        time = np.mean(found[ours]["seconds"]) / np.mean(found[theirs]["seconds"])
        return time, np.mean(found[ours]["r2"]) - np.mean(found[theirs]["r2"])

    many = [beside(f"targets{n}", "candidates", "random50") for n in (100, 1000, 10000)]
    few = beside("views", "candidates", "random")
    single = [beside(part, "p1", "random")[1] for part in ("concrete", "diabetes")]
    return [
        "{:.2f}, {:.2f} and {:.2f} of its time".format(*(time for time, _ in many)),
        "R² higher by {:.3f}, {:.3f} and {:.3f};".format(*(gain for _, gain in many)),
        f"24 targets in {few[0]:.2f} of its time, R² higher by {few[1]:.3f}",
        "R² lower by {:.3f} and {:.3f}".format(*np.negative(single)),
    ]


def safety_on_the_index(results):
    ratios = [
        price["both"] / price["libsvm"] for part in results.values() for price in part["prices"]
    ]
    return [f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long as LIBSVM"]


def core_on_the_index(results):
    medians = {
        name: np.median([cell["ratio"] for cell in part["result"]["cells"]])
        for name, part in results.items()
    }
    small = medians.pop("sonar")
    return [
        *factorisations(results),
        f"in the median {min(medians.values()):.1f} to {max(medians.values()):.1f} times",
        f"with 208 rows {small:.0f} times",
    ]


def machines_of_newton(results):
    solvers = [
        outer.from_values(name, part["solvers"])
        for name, part in results.items()
        if "solvers" in part
    ]
    solves = [row.n_solves for one in solvers for row in one.newton]
    ratios = [
        row.seconds / one.newton_at(row.C).seconds
        for one in solvers
        for row in [*one.of("silp"), *one.of("reduced-gradient")]
        if row.reached
    ]
    return [
        f"trains {min(solves)} to {max(solves)} machines for a gap of 1e-4",
        f"take {min(ratios):.0f} to {max(ratios):.0f} times as long or do not reach the gap",
    ]


def svm_on_the_index(results):
    duels = [duel for part in results.values() for duel in part.get("duels", [])]
    ratios = [duel["libsvm"]["seconds"] / duel["cold"]["seconds"] for duel in duels]
    faster = f"SMO is {min(ratios):.1f} to {max(ratios):.1f} times faster than LIBSVM"
    return [faster, *machines_of_newton(results)]


def large_on_the_index(results):
    (exact,) = (fit for fit in results["fda"]["fits"] if fit["p"] == 2)
    (features,) = (fit for fit in results["landmarks"]["fits"] if fit["n_landmarks"] == 400)
    return [f"take {features['seconds']:.0f} s instead of {exact['seconds']:.0f} s"]


def comparison_on_the_index(results):
    methods = len(comparison.METHODS) - len(comparison.TWO_CLASSES)
    return [f"{methods} methods on {WORDS[len(results)]} multi-view data sets"]


def localized_on_the_index(results):
    behind = localized.verdicts({name: part["groups"] for name, part in results.items()})[0]
    loss = behind.split("(")[-1].rstrip(")").replace("-", "−")
    return [*localized_estimators(results), f"leaves: {loss})"]


def scale_on_the_index(results):
    single = {
        fit["rows"]: fit
        for name, part in results.items()
        for fit in part.get("fits", [])
        if fit["method"] == "single" and name.startswith("simulated")
    }
    return [
        f"a million in {single[10**6]['seconds']:.0f} s, ten million in "
        f"{single[10**7]['seconds'] / 60:.0f} minutes",
    ]


def approximation_on_the_index(results):
    falls = [
        np.mean([exact["score"] - features["score"] for exact, features in row["fits"]])
        for part in results.values()
        for row in part["rows"]
    ]
    return [f"scores up to {100 * max(falls):.1f} points lower"]


def flower_on_the_index(results):
    def shown(name):
        return f"{np.mean(results[name]['accuracy']):.1f}"

    return [
        f"MK-FDA {shown('ℓp MK-FDA')} %, averaging {shown('averaging')} with an SVM and "
        f"{shown('averaging, FDA')} with FDA",
        f"CG-Boost {shown('CG-Boost')}, with the 2-norm {shown('CG-Boost, 2-norm')}",
    ]


#: Documents, and the figures of the pages that they repeat.
TOLD = [
    ("README.md", "defaults", defaults_in_the_readme),
    ("README.md", "survival", means_of_survival),
    ("README.md", "scale", a_million_rows),
    ("README.md", "studies", an_incomplete_table),
    ("docs/benchmarks/index.md", "studies", an_incomplete_table),
    ("docs/benchmarks/index.md", "localized", localized_on_the_index),
    ("docs/benchmarks/index.md", "svm", svm_on_the_index),
    ("docs/benchmarks/index.md", "large", large_on_the_index),
    ("docs/benchmarks/index.md", "comparison", comparison_on_the_index),
    ("docs/benchmarks/index.md", "defaults", defaults_on_the_index),
    ("docs/benchmarks/index.md", "others", others_on_the_index),
    ("docs/benchmarks/index.md", "ridge", ridge_on_the_index),
    ("docs/benchmarks/index.md", "safety", safety_on_the_index),
    ("docs/benchmarks/index.md", "core", core_on_the_index),
    ("docs/benchmarks/index.md", "scale", scale_on_the_index),
    ("docs/benchmarks/index.md", "approximation", approximation_on_the_index),
    ("docs/benchmarks/index.md", "flower", flower_on_the_index),
    ("docs/explanation/when_weights_help.md", "defaults", defaults_where_weights_matter),
    ("docs/explanation/when_weights_help.md", "yan2012", mixtures),
    ("docs/explanation/when_weights_help.md", "ridge", ridge_where_weights_matter),
    ("docs/explanation/ridge.md", "ridge", ridge_of_several_targets),
    ("docs/explanation/ridge.md", "defaults", defaults_of_evidence),
    ("docs/explanation/machines.md", "choices", choices_of_machines),
    ("docs/explanation/machines.md", "svm", machines_of_newton),
    ("docs/explanation/localized.md", "localized", localized_estimators),
    ("docs/explanation/solvers.md", "core", factorisations),
    ("docs/how_to/something_else.md", "defaults", defaults_of_something_else),
    ("docs/how_to/something_else.md", "others", others_of_something_else),
    ("docs/how_to/something_else.md", "survival", survival_of_forests),
    ("docs/how_to/multi_omics.md", "columns", false_discoveries),
    ("docs/how_to/text.md", "defaults", defaults_of_texts),
    ("docs/how_to/sequences.md", "protein", proteins),
    ("docs/how_to/sequences.md", "strings", letters),
    ("docs/how_to/images.md", "flower", flowers),
    ("docs/how_to/images.md", "yan2012", pyramids),
    ("docs/how_to/million_rows.md", "landmarks", numbers_of_landmarks),
    ("docs/how_to/relevant_columns.md", "choices", choices_of_relevance),
]


@pytest.mark.parametrize(
    ("document", "name", "figures"), TOLD, ids=lambda value: getattr(value, "__name__", value)
)
def test_figures_that_documents_repeat_are_those_of_the_pages(document, name, figures):
    text = (_command.PAGES.parents[1] / document).read_text(encoding="utf-8")
    text = " ".join(text.split())
    for figure in figures(_command.read_results(name)):
        assert figure in text


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
