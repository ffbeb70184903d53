"""Every example runs from any folder, without a display, and says what it promises."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

# What each example must print.
EXPECTED = {
    "certificate.py": "by hand",
    "very_many_kernels.py": "accuracy",
    "fisher_ratio_baseline.py": "Fisher ratio",
    "how_sparse.py": "p-value",
    "kernels_and_columns.py": "kernels__edge__gamma",
    "plot_denoising.py": "test accuracy",
    "kernels_by_columns.py": "by columns",
    "plot_compare.py": "the reference, by the corrected resampled t test",
    "plot_choose_norm.py": "held-out accuracy",
    "plot_convex_regions.py": "by place",
    "plot_displays.py": "kernels have a weight",
    "plot_discriminant_directions.py": "held-out accuracy",
    "plot_honest_scores.py": "five folds of MKFDACV",
    "fingerprints.py": "balanced accuracy",
    "plot_learnt_regularization.py": "λ learnt",
    "plot_lp_norms.py": "share of noise",
    "plot_sequences.py": "probability of a box",
    "plot_simulation.py": "effective, ℓ1",
    "plot_solvers.py": "takes this problem",
    "localized_fda.py": "saved by the gate",
    "plot_localized_clusters.py": "single samples",
    "plot_localized_how_many.py": "3, best of 5",
    "plot_localized_regions.py": "best possible",
    "plot_localized_regression.py": "largest gate",
    "plot_localized_saliency.py": "sigmoid gates",
    "plot_multi_omics.py": "predicted, without proteins",
    "plot_one_class.py": "outliers found",
    "plot_photographs.py": "new photographs named correctly",
    "plot_ridge_targets.py": "largest change of a weight",
    "plot_svm_choose.py": "accuracy in folds",
    "plot_svm_which_kernels.py": "weights separate",
    "plot_svr_regression.py": "support vectors",
    "svm_solvers.py": "takes this problem",
    "text_and_numbers.py": "best of 8 settings",
    "plot_view_importance.py": "fall without rows and copy",
    "plot_many_rows.py": "100,000 rows: accuracy 9",
    "plot_which_views_matter.py": "which_views_matter.png",
    "precomputed_kernels.py": "best of 9 settings",
    "report.py": "out/report.html has learnt, importance, judged",
    "save_and_load.py": "bit for bit: True",
}


@pytest.fixture
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


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
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert EXPECTED[name] in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_demo_gives_noise_nothing_and_draws_it(tmp_path):
    names = runpy.run_path(str(EXAMPLES / "plot_which_views_matter.py"))
    sparse, dense = (names["models"][p].weights_ for p in (1, 2))
    is_noise = names["is_noise"]
    assert is_noise.sum() == 3
    assert not sparse[is_noise].any()
    assert dense[is_noise].max() < dense[~is_noise].min()
    assert (tmp_path / "out" / "which_views_matter.png").stat().st_size > 10_000
