"""The benchmark of denoising measures what it says, on small problems, and reads its data."""

import numpy as np
import pytest
from scipy import io, sparse
from sklearn.metrics import average_precision_score

from benchmarks import _data, denoising
from benchmarks._tables import ABOVE, WITHIN
from manykernels import KernelStack
from manykernels.kernels import Linear


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- data ----------------------------------------------------------------------------------


def test_pendigits_puts_the_training_part_first(tmp_path, monkeypatch, rng):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    (tmp_path / "pendigits4v").mkdir()
    written = {view: rng.integers(0, 100, (7, 3)) for view in ("dyn", "sta4", "sta8", "sta16")}
    written["label"] = np.array([[8], [2], [1], [10], [4], [1], [6]])
    for view, table in written.items():
        for part, rows in (("train", table[:5]), ("test", table[5:])):
            path = tmp_path / f"pendigits4v/pendigits_{view}_{part}.csv"
            np.savetxt(path, rows, fmt="%d", delimiter=",")
    views, y = _data.pendigits()
    np.testing.assert_array_equal(y, written.pop("label").ravel())
    assert list(views) == list(written)
    for view, table in written.items():
        np.testing.assert_array_equal(views[view], table)


def test_bbc(tmp_path, monkeypatch, rng):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    (tmp_path / "bbc").mkdir()
    counts = np.empty((1, 4), dtype=object)
    for i in range(4):
        counts[0, i] = sparse.csc_matrix(rng.poisson(0.3, (6, 5 + i)).astype(float))
    topics = np.array([[1], [2], [5], [1], [3], [4]], dtype=np.uint8)
    io.savemat(tmp_path / "bbc/BBC_4view_685.mat", {"X": counts, "Y": topics})
    views, y = _data.bbc()
    assert list(views) == ["seg1", "seg2", "seg3", "seg4"]
    for i, view in enumerate(views.values()):
        np.testing.assert_array_equal(view.toarray(), counts[0, i].toarray())
    np.testing.assert_array_equal(y, topics.ravel())
    assert y.dtype == int


@pytest.mark.parametrize(
    ("name", "source", "file"),
    [("pendigits", "mkl.ucsd.edu", "pendigits_sta16_test.csv"), ("bbc", "BBC news", ".mat")],
)
def test_missing_data_says_what_where_and_whence(name, source, file, tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as error:
        getattr(_data, name)()
    message = str(error.value)
    assert source in message
    assert file in message
    assert str(tmp_path) in message


def test_noisy_copies(rng):
    views = {"a": rng.standard_normal((5000, 2)) * [1, 10], "b": np.ones((5000, 1))}
    copies = denoising.noisy_copies(views)
    assert list(copies) == ["a+noise", "b+noise"]
    noise = copies["a+noise"] - views["a"]
    np.testing.assert_allclose(noise.std(axis=0), [1, 10], rtol=0.05)
    np.testing.assert_array_equal(copies["b+noise"], 1.0)


def test_kernels_know_the_training_rows_only(rng):
    views = {"a": rng.standard_normal((90, 6)), "b": rng.standard_normal((90, 6))}
    made = denoising.Problem("", views, np.arange(90) % 3, Linear(), True)
    train, test = np.arange(45), np.arange(45, 90)
    stack, block = made.split(train, test)
    a = views["a"]
    scaled = (a - a[train].mean(axis=0)) / a[train].std(axis=0)
    np.testing.assert_allclose(stack.kernel("a"), scaled[train] @ scaled[train].T)
    np.testing.assert_allclose(block.kernel("a"), scaled[test] @ scaled[train].T)


# -- in the paper's terms ------------------------------------------------------------------


@pytest.fixture
def scenes(rng, monkeypatch):
    y = rng.integers(1, 4, 2100)
    views = {f"view{k}": rng.standard_normal((2100, 4)) + k * y[:, None] for k in (1, 2)}
    monkeypatch.setattr(_data, "scene15", lambda: (views, y))
    return views, y


def test_one_division(scenes):
    found = denoising.division(0, quick=True)
    assert len(found["original"]) == len(found["denoised"]) == 3
    assert set(found["original"][0]) == set(denoising.TABLE2)
    assert np.shape(found["single"]) == (8, 2, len(denoising.SHARES))
    assert np.shape(found["variance"]) == (3, 8)
    assert np.min(found["variance"]) >= denoising.SHARES[0]
    assert np.mean([ap["ℓ∞"] for ap in found["original"]]) > 80.0


def test_ap_of_every_class_by_the_share_kept(scenes):
    stacks, targets = denoising.photographs(0, quick=True)
    labels = [(y[:, None] == [1, 2]).astype(int) for y in targets]
    curve = denoising.curves(denoising.select(stacks, [0]), labels)
    model = denoising.MKFDA(
        "precomputed", p=np.inf, reg=denoising.REG, denoise=denoising.Denoise(0.5)
    )
    model.fit(stacks[0].select([0]), labels[0][:, 1])
    scores = model.decision_function(stacks[2].select([0]))
    expected = 100 * average_precision_score(labels[2][:, 1], scores)
    assert curve[1, denoising.SHARES.index(0.5), 1] == pytest.approx(expected)


def test_the_share_is_chosen_on_validation_samples():
    curve = np.zeros((2, len(denoising.SHARES), 2))
    curve[0, 3, 0], curve[1, 3, 0], curve[1, 5, 0] = 70.0, 60.0, 90.0
    curve[1, -1, 1] = 50.0
    # Of equally good shares the largest, which denoises least.
    np.testing.assert_array_equal(denoising.chosen(curve), [60.0, 50.0])


def test_the_sum_is_one_kernel(rng):
    X = rng.standard_normal((5, 3))
    stack = KernelStack.from_arrays([X @ X.T, np.eye(5)])
    (summed,) = denoising.total((stack,))
    np.testing.assert_allclose(summed.kernel(0), X @ X.T + np.eye(5))


def images(gain):
    """Results of two divisions in which denoising gains so much at every norm."""
    before = dict.fromkeys(denoising.TABLE2, 50.0)
    after = dict.fromkeys(before, 50.0 + gain)
    division = {
        "original": [before] * 3,
        "p": [1.0] * 3,
        "variance": [[1.0, 0.5]] * 3,
        "single": np.full((2, 2, len(denoising.SHARES)), 40.0).tolist(),
        "sum": np.full((2, len(denoising.SHARES)), 45.0).tolist(),
    }
    divisions = [
        {
            **division,
            "denoised": [{norm: ap + noise for norm, ap in after.items()}] * 3,
            "sum denoised": [50.0 + noise] * 3,
            "spearman": [0.2 + noise, None, 0.2],
        }
        for noise in (-0.3, 0.3)
    ]
    environment = {"versions": {"manykernels": "0"}, "machine": "m"}
    facts = {"kernels": ["a", "b"], "shares": list(denoising.SHARES), "environment": environment}
    return {"scene15": {**facts, "divisions": divisions}}


def test_gains_beside_the_paper():
    rows = {row.method: row for row in denoising.paper_rows(images(1.2))}
    row = rows["ℓ2: denoised − original"]
    assert (row.ours, row.theirs) == (pytest.approx(1.2), pytest.approx(1.27))
    assert row.error == pytest.approx(0.3)
    assert row.outcome == WITHIN
    assert rows["ℓ1: denoised − original"].outcome == ABOVE
    assert not row.same_data
    assert rows["rank correlation of weights and variances"].ours == pytest.approx(0.2)


def test_a_larger_reg_explains_a_difference():
    results = images(-9.0)
    results[denoising.LARGER] = images(0.5)["scene15"]
    rows = {row.method: row for row in denoising.paper_rows(results)}
    assert rows["ℓ2: denoised − original"].verdict == "below: +0.50 with λ = 1"
    assert rows["rank correlation of weights and variances"].reason == ""
    assert "MAP with λ = 1" in denoising.page(results)


def test_page():
    results = images(1.2)
    accuracies = {name: [90.0, 91.0, 90.5] for name in denoising.METHODS}
    accuracies["Bands(3)"] = [91.0, 92.1, 91.4]
    results["bbc"] = {
        "title": "BBC",
        "n_train": 45,
        "accuracies": accuracies,
        "environment": results["scene15"]["environment"],
    }
    page = denoising.page(results)
    assert "positive for 3 of 6 classes and divisions, negative for 1" in page
    assert "+1.00 ± 0.06, better" in page
    assert "+0.00 ± 0.00" in page


def test_accuracies_of_all_methods(rng):
    y = np.arange(90) % 3
    views = {"a": rng.standard_normal((90, 6)) + y[:, None], "b": rng.standard_normal((90, 6))}
    found = denoising.tuned(denoising.Problem("", views, y, Linear(), True), 2, n_train=45)
    assert set(found["accuracies"]) == set(denoising.METHODS)
    assert min(map(min, found["accuracies"].values())) > 50.0


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert denoising.main(["--quick", "--sets", "bbc,bbc+noise,scene15"]) == 1
    assert "BBC news in four segments" in capsys.readouterr().err
