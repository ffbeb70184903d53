"""Every example runs from any folder, without a display, and says what it promises."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

# What each example must print.
EXPECTED = {
    "start/kernels_and_columns.py": "kernels__edge__gamma",
    "start/plot_choose_norm.py": "held-out accuracy",
    "start/plot_displays.py": "kernels have a weight",
    "start/plot_lp_norms.py": "share of noise",
    "start/plot_which_views_matter.py": "which_views_matter.png",
    "start/precomputed_kernels.py": "best of 9 settings",
    "start/report.py": "out/report.html has learnt, importance, judged",
    "start/save_and_load.py": "bit for bit: True",
    "data/fingerprints.py": "balanced accuracy",
    "data/plot_sequences.py": "probability of a box",
    "data/plot_gene_sets.py": "sets with a weight",
    "data/plot_multi_omics.py": "predicted, without proteins",
    "data/plot_skrub.py": "with TableVectorizer",
    "data/plot_table_missing_at_test.py": "trained without",
    "data/plot_photographs.py": "new photographs named correctly",
    "data/text_and_numbers.py": "best of 8 settings",
    "judging/how_sparse.py": "p-value",
    "judging/plot_column_importance.py": "selected: [0, 1, 2]",
    "judging/plot_prediction_intervals.py": "of the targets of new patients",
    "judging/plot_compare.py": "the reference, by the corrected resampled t test",
    "judging/plot_honest_scores.py": "five folds of MKFDACV",
    "judging/plot_logistic_probabilities.py": "log loss of held-out samples",
    "judging/plot_scikit_learn_tools.py": "largest: signal1",
    "judging/plot_simulation.py": "effective, ℓ1",
    "judging/plot_view_importance.py": "fall without rows and copy",
    "machines/fisher_ratio_baseline.py": "Fisher ratio",
    "machines/plot_counts.py": "D² of held-out training samples",
    "machines/plot_denoising.py": "test accuracy",
    "machines/plot_many_targets.py": "eigendecompositions",
    "machines/plot_evidence.py": "The evidence is stationary",
    "machines/plot_discriminant_directions.py": "held-out accuracy",
    "machines/plot_learnt_regularization.py": "λ learnt",
    "machines/plot_one_class.py": "outliers found",
    "machines/plot_relevant_columns.py": "with RelevanceRBF",
    "machines/plot_ridge_targets.py": "largest change of a weight",
    "machines/plot_survival.py": "true risks",
    "machines/plot_svm_choose.py": "accuracy in folds",
    "machines/plot_svm_which_kernels.py": "weights separate",
    "machines/plot_svr_regression.py": "support vectors",
    "regions/plot_convex_regions.py": "by place",
    "regions/localized_fda.py": "saved by the gate",
    "regions/plot_localized_clusters.py": "single samples",
    "regions/plot_localized_how_many.py": "3, best of 5",
    "regions/plot_localized_regions.py": "best possible",
    "regions/plot_localized_regression.py": "largest gate",
    "regions/plot_localized_saliency.py": "sigmoid gates",
    "scale/very_many_kernels.py": "accuracy",
    "scale/kernels_by_columns.py": "by columns",
    "scale/plot_many_rows.py": "100,000 rows: accuracy 9",
    "solvers/certificate.py": "by hand",
    "solvers/plot_solvers.py": "takes this problem",
    "solvers/svm_solvers.py": "takes this problem",
}


@pytest.fixture
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_example_is_run_here():
    assert {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_every_example_has_a_title(name):
    """Or else the gallery could not list it."""
    head, title, line = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()[:3]
    assert head == '"""'
    assert line == "=" * len(title)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.usefixtures("in_a_folder_of_its_own")
@pytest.mark.parametrize("name", EXPECTED)
def test_example(name, capsys):
    plt.close("all")
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert EXPECTED[name] in capsys.readouterr().out
    assert plt.get_fignums(), "the gallery shows a picture of every example"
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_demo_gives_noise_nothing_and_draws_it(tmp_path):
    names = runpy.run_path(str(EXAMPLES / "start" / "plot_which_views_matter.py"))
    sparse, dense = (names["models"][p].weights_ for p in (1, 2))
    is_noise = names["is_noise"]
    assert is_noise.sum() == 3
    assert not sparse[is_noise].any()
    assert dense[is_noise].max() < dense[~is_noise].min()
    assert (tmp_path / "out" / "which_views_matter.png").stat().st_size > 10_000
