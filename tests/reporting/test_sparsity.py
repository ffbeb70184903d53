"""The sparsity report: weights of every norm, kernels compared, printed and drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA, KernelStack
from manykernels.domains import lp_domain
from manykernels.reporting import sparsity_report
from manykernels.reporting.sparsity import effective_number
from manykernels.solvers import Newton
from manykernels.solvers.path import PAPER_NORMS, walk_grid
from tests.problems import PAPER_PS, labels_for, random_gram_matrices, slow, square_loss

KEPT = [0.9, 0.8, 0.1, 0.5, 0.3]


@pytest.fixture(scope="module")
def stack():
    return KernelStack.from_arrays(random_gram_matrices(5, 60), names=list("abcde"))


@pytest.fixture(scope="module")
def report(stack):
    return sparsity_report(stack, labels_for(60, 3), kept_variance=KEPT)


# -- numbers -------------------------------------------------------------------------------


def test_norms_are_those_of_the_paper(report):
    assert list(PAPER_NORMS) == PAPER_PS
    np.testing.assert_array_equal(report.ps, PAPER_NORMS)
    assert report.weights.shape == (12, 5)


@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", "trace", None)])
def test_weights_are_those_of_an_estimator(stack, normalize):
    y = np.array(["x", "y", "z"])[labels_for(60, 3)]
    ps = [2.0, 1.0, np.inf, 1.25]
    report = sparsity_report(stack, y, ps=ps, reg=0.3, normalize=normalize, tol=1e-9)
    for p, weights in zip(ps, report.weights, strict=True):
        model = MKFDA("precomputed", p=p, reg=0.3, normalize=normalize, tol=1e-9).fit(stack, y)
        np.testing.assert_allclose(weights, model.weights_, atol=1e-3)


@pytest.mark.parametrize("reg", [1e-4, *slow(1.0, 100.0)])
def test_every_fit_is_certified_and_a_neighbour_is_a_good_start(stack, reg):
    report = sparsity_report(stack, labels_for(60, 3), reg=reg)
    assert report.rel_gaps.max() <= 1e-6
    loss = square_loss(stack.data, 3, reg)
    cold = sum(Newton().solve(loss, lp_domain(p)).n_inner_solves for p in PAPER_NORMS)
    assert report.n_inner_solves <= cold


def test_weights_live_in_their_domain(report):
    for p, weights in zip(report.ps, report.weights, strict=True):
        assert lp_domain(p).gauge(weights) == pytest.approx(1.0)
    np.testing.assert_allclose(report.shares.sum(axis=1), 1.0)


def test_alignments_are_those_of_the_stack(stack, report):
    np.testing.assert_allclose(report.alignment, stack.alignment())
    np.testing.assert_allclose(report.centered_alignment, stack.alignment(centered=True))


def test_the_order_of_norms_is_that_given(stack):
    y = labels_for(60, 2)
    forward = sparsity_report(stack, y, ps=[1, 2, 8])
    backward = sparsity_report(stack, y, ps=[8, 2, 1])
    np.testing.assert_array_equal(backward.ps, [8, 2, 1])
    np.testing.assert_array_equal(forward.weights, backward.weights[::-1])


def test_one_norm_and_one_kernel(stack):
    report = sparsity_report(stack.select([2]), labels_for(60, 2), ps=[1.5], kept_variance=[0.5])
    np.testing.assert_allclose(report.weights, [[1.0]])
    assert np.isnan(report.rank_correlation).all()
    assert "only one kernel" in str(report)


def test_a_fit_that_does_not_converge_warns(stack, monkeypatch):
    def impatient(*args, **options):
        return walk_grid(*args, **{**options, "max_iter": 0})

    monkeypatch.setattr("manykernels.model_selection.path.walk_grid", impatient)
    with pytest.warns(ConvergenceWarning, match="1 of 1 points of the path did not reach"):
        report = sparsity_report(stack, labels_for(60, 2), ps=[2])
    assert report.rel_gaps[0] > 1e-6


# -- effective numbers ---------------------------------------------------------------------

POSITIVE = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


@settings(deadline=None)
@given(weights=POSITIVE, factor=st.floats(1e-200, 1e200))
def test_effective_number_lies_between_one_and_all(weights, factor):
    number = effective_number(weights)
    assert 1 - 1e-12 <= number <= len(weights) * (1 + 1e-12)
    assert effective_number(np.multiply(weights, factor)) == pytest.approx(number)
    assert effective_number([*weights, 0.0]) == pytest.approx(number)
    assert effective_number([*weights, *weights]) == pytest.approx(2 * number)


def test_effective_number_grows_with_p_here(report):
    assert (np.diff(report.effective_numbers) > 0).all()
    assert report.effective_numbers[-1] == pytest.approx(5)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [], [[1.0], [0.0]]])
def test_weights_without_effective_number_are_refused(weights):
    with pytest.raises(ValueError, match="non-negative, and not all zero"):
        effective_number(weights)


def test_norms_that_could_not_be_solved_are_shown(report):
    weights = report.weights.copy()
    weights[0] = np.nan
    rel_gaps = np.where(np.arange(12) == 0, np.inf, report.rel_gaps)
    unsolved = replace(report, weights=weights, rel_gaps=rel_gaps)
    first, second = unsolved.as_table().splitlines()[1:3]
    assert first.split()[:4] == ["1", "nan", "0", "nan%"]
    assert "nan" not in second
    assert "nan" in str(unsolved)


# -- kept variance -------------------------------------------------------------------------


def test_rank_correlation_with_the_weights_themselves(stack, report):
    row = 8  # p = 3, where all weights differ
    for kept, expected in ((report.weights[row], 1.0), (-report.weights[row], -1.0)):
        again = sparsity_report(stack, labels_for(60, 3), kept_variance=kept)
        assert again.rank_correlation[row] == pytest.approx(expected)


def test_rank_correlation_of_equal_weights_is_not_defined(stack, report):
    assert np.isnan(report.rank_correlation[-1])
    assert np.isfinite(report.rank_correlation[:-1]).all()
    constant = sparsity_report(stack, labels_for(60, 3), ps=[2], kept_variance=np.full(5, 0.8))
    assert np.isnan(constant.rank_correlation).all()


def test_without_kept_variance_there_is_no_correlation(stack):
    report = sparsity_report(stack, labels_for(60, 2), ps=[1, 2])
    assert report.kept_variance is None
    assert report.rank_correlation is None
    assert "Spearman" not in str(report)


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg": 0.0}, "reg must be positive"),
        ({"reg": np.inf}, "reg must be positive"),
        ({"ps": []}, "sequence of norms"),
        ({"ps": [0.5]}, "p must be at least 1"),
        ({"normalize": "none"}, "normalize must be"),
        ({"kept_variance": [0.1]}, "5 finite numbers"),
        ({"kept_variance": [0.1, 0.2, np.nan, 0.3, 0.4]}, "5 finite numbers"),
    ],
)
def test_bad_options_are_refused(stack, options, message):
    with pytest.raises(ValueError, match=message):
        sparsity_report(stack, labels_for(60, 2), **options)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(60), "at least 2 classes"),
        (labels_for(50, 2), "inconsistent numbers"),
        (np.linspace(0, 1, 60), "Unknown label type"),
    ],
)
def test_bad_labels_are_refused(stack, y, message):
    with pytest.raises(ValueError, match=message):
        sparsity_report(stack, y)


def test_only_kernels_of_training_samples_are_taken(stack):
    for X in (np.eye(60), stack[:30]):
        with pytest.raises(ValueError, match="KernelStack of the training samples"):
            sparsity_report(X, labels_for(60, 2))


# -- words and pictures --------------------------------------------------------------------


def test_the_table_has_a_line_for_every_norm(report):
    lines = report.as_table().splitlines()
    assert lines[0].split() == ["p", "effective", "in", "use", "largest", "gap", "Spearman"]
    assert [line.split()[0] for line in lines[1:3]] == ["1", "1.015625"]
    assert lines[-1].split()[:4] == ["∞", "5.00", "5", "20.0%"]
    assert lines[-1].endswith("–")


def test_the_printed_report_names_the_kernels_that_are_most_alike():
    matrices = random_gram_matrices(3, 40)
    twins = KernelStack.from_arrays([*matrices, 2 * matrices[1]], names=list("abcd"))
    text = str(sparsity_report(twins, labels_for(40, 2), ps=[1, np.inf]))
    assert "alignment: mean" in text
    assert text.count("most 1.00 between b and d") == 2
    shares = [line.split() for line in text.splitlines() if line[:2] in ("a ", "b ", "c ", "d ")]
    assert [row[-1] for row in shares] == ["25.0"] * 4


@pytest.mark.parametrize(
    ("kept", "n_panels"), [(None, 3), pytest.param(KEPT, 4, marks=pytest.mark.slow)]
)
def test_the_picture(stack, kept, n_panels, tmp_path):
    figure = sparsity_report(stack, labels_for(60, 2), kept_variance=kept).plot()
    titled = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert len(titled) == n_panels
    assert [label.get_text() for label in titled[0].get_yticklabels()] == list("abcde")
    figure.savefig(tmp_path / "report.png")
