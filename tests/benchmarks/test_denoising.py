"""The benchmark of denoising measures what it says, on small problems, and reads its data."""

import numpy as np
import pytest
from scipy import io, sparse
from sklearn.preprocessing import StandardScaler

from benchmarks import _data, denoising
from manykernels import Bands, Denoise
from manykernels.kernels import Linear


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def problem(rng):
    y = np.arange(90) % 3
    views = {name: rng.standard_normal((90, 6)) for name in ("a", "b")}
    views["a"][:, 0] += 2.0 * y
    return denoising.Problem("small", "a small problem", views, y, Linear(), True)


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    views = {"a": rng.standard_normal((90, 6)) + y[:, None], "b": rng.standard_normal((90, 6))}
    small = denoising.Problem("small", "a small problem", views, y, Linear(), True)
    return denoising.run(small, splits=2, n_train=45, regs=(1.0,))


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


@pytest.mark.parametrize(
    ("variant", "names"),
    [("", ["a", "b"]), ("+noise", ["a", "b", "a+noise", "b+noise"]), ("-noisy", None)],
)
def test_variants(variant, names, monkeypatch, rng):
    views = {"a": rng.standard_normal((5000, 2)) * [1, 10], "b": np.ones((5000, 1))}
    read = {"mfeat": lambda: ("title", views, np.zeros(5000), Linear(), True)}
    monkeypatch.setattr(denoising, "SOURCES", read)
    made = denoising.problem("mfeat", variant)
    assert list(made.views) == (names or ["a+noise", "b+noise"])
    assert made.name == f"mfeat{variant}"
    if variant:
        noise = made.views["a+noise"] - views["a"]
        np.testing.assert_allclose(noise.std(axis=0), [1, 10], rtol=0.05)
        np.testing.assert_array_equal(made.views["b+noise"], 1.0)


def test_kernels_know_the_training_rows_only(problem):
    train, test = np.arange(45), np.arange(45, 90)
    stack, block = problem.split(train, test)
    assert stack.shape == (45, 45, 2)
    a = problem.views["a"]
    scaled = (a - a[train].mean(axis=0)) / a[train].std(axis=0)
    np.testing.assert_allclose(stack.kernel("a"), scaled[train] @ scaled[train].T)
    np.testing.assert_allclose(block.kernel("a"), scaled[test] @ scaled[train].T)


# -- measurements and reports ----------------------------------------------------------------


def test_outcomes(problem):
    train, test = np.arange(60), np.arange(60, 90)
    stack, block = problem.split(train, test)
    outcome = denoising.evaluate(
        Bands(2), (stack, problem.y[train]), (block, problem.y[test]), (0.1, 10.0)
    )
    assert set(outcome.accuracy) == {"p = 1", "p = 2", "p = ∞", "tuned"}
    assert min(outcome.accuracy.values()) > 0.5
    assert outcome.n_kernels == len(outcome.weights) == 4
    assert outcome.p in denoising.NORMS
    assert outcome.variance is None


def test_reports(result):
    assert len(denoising.table(result).splitlines()) == 2 + len(denoising.METHODS)
    page = denoising.report([result])
    assert "## small: a small problem" in page
    assert "45 training rows" in page
    assert page.count("Against the original") == 1
    assert "a 0." in denoising.variances(result) or "a 1.00" in denoising.variances(result)


def outcomes(*accuracies, variance=(1.0, 0.5)):
    return [
        denoising.Outcome({"tuned": a}, 2, 2.0, np.array([0.9, 0.1]), np.array(variance))
        for a in accuracies
    ]


def judged(problem, **changed):
    by_method = {name: outcomes(0.80, 0.82, 0.81) for name in denoising.METHODS}
    by_method.update(changed)
    return denoising.Result(problem, 45, by_method, 1.0)


def test_verdicts(problem):
    same = judged(problem)
    assert denoising.compare(same, "Bands(3)", "original")[0] == "level"
    assert "level with Denoise(0.9)" in denoising.verdict(same)
    better = judged(problem, **{"Bands(3)": outcomes(0.90, 0.93, 0.92)})
    assert denoising.compare(better, "Bands(3)", "original") == ("better", "+10.67 ± 0.33")
    assert denoising.verdict(better).startswith(
        "small: best Bands(3) (91.67 %), ahead of all others."
    )
    worse = judged(problem, **{"Bands(3)": outcomes(0.70, 0.73, 0.72)})
    assert "Bands(3) worse (-9.33 ± 0.33)" in denoising.verdict(worse)
    noisy = judged(problem, **{"Bands(3)": outcomes(0.70, 0.99, 0.80)})
    assert denoising.compare(noisy, "Bands(3)", "original")[0] == "level"


def test_correlations(problem):
    assert denoising.correlation(judged(problem)) == "small: +1.00, positive in 3 of 3 splits."
    equal = outcomes(0.8, 0.8, variance=(0.5, 0.5))
    same = judged(problem, original=equal, **{'Denoise("cv")': equal})
    assert "the same variance for all kernels" in denoising.correlation(same)


def test_the_sum_is_cut_as_one_kernel(problem):
    train, test = np.arange(60), np.arange(60, 90)
    stack, block = problem.split(train, test)
    cut = denoising.SumThenDenoise().fit(stack, problem.y[train])
    assert cut.variance_.shape == (1,)
    cut.denoise_ = Denoise(1.0).fit(cut._sum(stack))
    # With all axes kept it is the plain sum of centred kernels of unit variance.
    views = problem.views.values()
    scaled = [StandardScaler().fit(view[train]).transform(view) for view in views]
    parts = [view / np.sqrt((view[train] ** 2).sum(axis=1).mean()) for view in scaled]
    for kernels, some in ((stack, train), (block, test)):
        expected = sum(part[some] @ part[train].T for part in parts)
        np.testing.assert_allclose(cut.transform(kernels).kernel("sum"), expected, atol=1e-12)


def test_order_of_steps(problem):
    def at_infinity(*accuracies):
        return [
            denoising.Outcome({"p = ∞": a}, 1, 2.0, np.ones(1), np.ones(1)) for a in accuracies
        ]

    found = judged(
        problem,
        original=at_infinity(0.8, 0.81, 0.82),
        **{
            denoising.SUMMED: at_infinity(0.79, 0.8, 0.81),
            'Denoise("cv")': at_infinity(0.85, 0.86, 0.88),
        },
    )
    line = denoising.order_of_steps(found)
    assert line.startswith("small: 81.00 / 80.00 / 86.33. Denoising the sum is worse")
    assert line.count("held") == 2


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert denoising.main(["--quick", "--sets", "bbc,bbc+noise"]) == 1
    assert "BBC news in four segments" in capsys.readouterr().err
