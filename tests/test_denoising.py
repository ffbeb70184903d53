"""The variance that ``Denoise("cv")`` keeps, and the errors it is chosen by."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from manykernels import Denoise, KernelStack
from manykernels.denoising import REGS
from manykernels.kernels.spectral import VARIANCES
from manykernels.utils.folds import stratified_folds
from tests.kernels.linear_stacks import assert_close, stack_of, values
from tests.problems import slow

N_TRAIN, N_KERNELS, N_DIMS = 14, 3, 6
LABELS = np.arange(N_TRAIN) % 3


@pytest.fixture
def train():
    rng = np.random.default_rng(0)
    sizes = np.array([0.1, 1.0, 10.0])[:, None, None] * 0.6 ** np.arange(N_DIMS)
    return stack_of(sizes * (1.0 + rng.normal(size=(N_KERNELS, N_TRAIN, N_DIMS))))


@pytest.mark.parametrize("reg", [None, *slow(0.3)])
@pytest.mark.parametrize("weights", [None, *slow(np.arange(N_TRAIN) % 4)])
def test_errors_are_those_of_fits_without_the_fold(train, weights, reg):
    denoise = Denoise("cv", reg=reg, folds=3).fit(train, LABELS, sample_weight=weights)
    w = np.ones(N_TRAIN) if weights is None else weights.astype(float)
    shares = np.bincount(LABELS, weights=w) / w.sum()
    H = ((LABELS[:, None] == np.arange(3)) - shares) / np.sqrt(shares)
    present = np.flatnonzero(w)
    regs = REGS if reg is None else [reg]
    for j in range(N_KERNELS):
        part = train.select([j])
        folds = stratified_folds(LABELS[present], np.arange(len(present)), 3, w[present])
        for i, variance in enumerate(VARIANCES):
            errors = np.zeros(len(regs))
            for fold in folds:
                out = present[fold]
                kept = np.setdiff1d(present, out)
                cut = Denoise(variance).fit(part[np.ix_(kept, kept)], sample_weight=w[kept])
                K = cut.transform(part[np.ix_(kept, kept)]).kernel(0)
                block = cut.transform(part[np.ix_(out, kept)]).kernel(0)
                scale = w[kept].sum() / (K.diagonal() @ w[kept])
                mean = np.average(H[kept], axis=0, weights=w[kept])
                for k, value in enumerate(regs):
                    A = scale * K + value * np.diag(1 / w[kept])
                    output = mean + scale * block @ np.linalg.solve(A, H[kept] - mean)
                    errors[k] += w[out] @ np.sum((H[out] - output) ** 2, axis=1)
            whole = w @ np.sum(H**2, axis=1)
            assert_allclose(denoise.cv_errors_[j, i], errors.min() / whole, rtol=1e-6)


def test_errors_are_those_of_new_samples():
    """In a flat spectrum single samples determine axes; none of a fold determine its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300))
    y = np.arange(400) % 2
    X[:, 0] += 4.0 * y
    F, G = X[None, :60], X[None, 60:]
    denoise = Denoise("cv", reg=1.0).fit(stack_of(F), y[:60])
    cut = Denoise(VARIANCES[0]).fit(stack_of(F))
    K, block = cut.transform(stack_of(F)).kernel(0), cut.transform(stack_of(G, F)).kernel(0)
    scale = 60 / np.trace(K)
    H = np.where(y == 1, 1.0, -1.0)
    output = scale * block @ np.linalg.solve(scale * K + np.eye(60), H[:60])
    true = np.mean((H[60:] - output) ** 2)
    assert abs(denoise.cv_errors_[0, 0] - true) < 0.1 * true


def test_classes_of_one_sample_cannot_be_judged():
    denoise = Denoise("cv").fit(KernelStack.from_arrays(np.eye(2)), [0, 1])
    assert np.isnan(denoise.cv_errors_).all()
    assert denoise.variance_ == 1.0


def test_the_best_variance_is_kept_of_equals_the_largest(train):
    denoise = Denoise("cv").fit(train, LABELS)
    for errors, chosen in zip(denoise.cv_errors_, denoise.variance_, strict=True):
        best = np.array(VARIANCES)[np.isclose(errors, errors.min(), rtol=1e-14)]
        assert chosen == best.max()
    assert_close(
        values(denoise.transform(train)),
        values(Denoise(denoise.variance_).fit_transform(train)),
    )
    # One axis alone: any variance keeps all of it.
    line = KernelStack.from_arrays(np.outer(np.arange(N_TRAIN), np.arange(N_TRAIN)))
    assert Denoise("cv").fit(line, LABELS).variance_ == 1.0


def test_noise_is_left_out():
    rng = np.random.default_rng(0)
    y = np.repeat(["left", "right"], 30)
    X = rng.normal(size=(60, 40))
    X[:, 0] = 3.0 * X[:, 0] + 9.0 * (y == "left")
    denoise = Denoise("cv", reg=1e-3).fit(stack_of(X[None]), y)
    assert denoise.variance_[0] <= 0.5
    # With so little regularisation forty axes of noise overfit fifty samples.
    assert denoise.cv_errors_[0].min() < 0.3 * denoise.cv_errors_[0, -1]


@pytest.mark.parametrize("reg", [0, -1.0, np.inf, np.nan, "joint"])
def test_regs_that_are_refused(train, reg):
    with pytest.raises(ValueError, match="reg must be a positive number or None, got"):
        Denoise("cv", reg=reg).fit(train, LABELS)


@pytest.mark.parametrize("folds", [1, 0, 2.5, "5"])
def test_folds_that_are_refused(train, folds):
    with pytest.raises(ValueError, match="folds must be an integer of at least 2, got"):
        Denoise("cv", folds=folds).fit(train, LABELS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, r"needs class labels: fit\(stack, y\)"),
        (LABELS[:-1], "There are 13 labels, but 14 training samples"),
        (np.zeros(N_TRAIN), r"At least 2 classes are needed, got \[0.0\]"),
        (np.linspace(0, 1, N_TRAIN), "Unknown label type: continuous"),
    ],
)
def test_labels_that_are_refused(train, y, message):
    with pytest.raises(ValueError, match=message):
        Denoise("cv").fit(train, y)
