"""The benchmark on photographs: features of drawn pictures, and all methods on few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from sklearn.svm import SVC

from benchmarks import _data, flower
from benchmarks import _flower_features as features
from benchmarks._flower_methods import METHODS, ColumnSVM, tuned

KINDS, OF_EACH = 3, 16


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Pictures of three kinds: a red disc, a blue disc, and blue stripes, before green."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[-1:1:60j, -1:1:80j]
    found = []
    for number in range(KINDS * OF_EACH):
        kind = number // OF_EACH
        inside = np.hypot(x, y) < rng.uniform(0.4, 0.6)
        if kind == 2:
            inside &= np.sin(40 * x + rng.uniform(0, 6)) > 0
        picture = np.where(
            inside[..., None], [(200, 40, 40), (40, 40, 200)][kind > 0], (30, 90, 30)
        )
        noisy = np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)
        found.append(folder / f"image_{number:04d}.jpg")
        Image.fromarray(noisy).save(found[-1])
    return found


@pytest.fixture(scope="module", autouse=True)
def small_vocabularies():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "N_WORDS", dict.fromkeys(features.N_WORDS, 12))
        patch.setattr(features, "SHORTER_SIDE", 60)
        patch.setattr(features, "PART", 20)
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def matrices(paths, kept):
    return features.distances(paths, kept)


LABELS = np.repeat(np.arange(KINDS), OF_EACH)


# -- features -------------------------------------------------------------------------------


def test_photographs_are_made_small_and_keep_their_shape(tmp_path):
    Image.new("RGB", (90, 120), (255, 0, 51)).save(tmp_path / "one.png")
    photograph = features.Photograph.read(tmp_path / "one.png")
    assert photograph.rgb.shape == (80, 60, 3)
    np.testing.assert_allclose(photograph.rgb[0, 0], [1, 0, 0.2], atol=1e-6)


def test_the_flower_is_where_its_colour_is():
    words = np.zeros((40, 60), dtype=int)
    words[10:30, 20:40] = 1
    found = features.flower_map(words, 2)
    assert found[words == 1].mean() > 0.8
    assert found[:5].mean() < 0.2


def test_gradient_histograms_see_directions_and_not_contrast():
    ramp = np.tile(np.arange(40.0), (40, 1))
    described = features.gradient_histograms(np.array([ramp, ramp.T]), 4)
    n_points = len(range(8, 33, 6)) ** 2
    assert described.values.shape == (n_points, 256)
    right, down = described.values.reshape(n_points, 2, 16, 8).sum(axis=2).transpose(1, 0, 2)
    assert (right.argmax(axis=1) == 0).all()
    assert (down.argmax(axis=1) == 2).all()
    stronger = features.gradient_histograms(np.array([50 * ramp, 50 * ramp.T]), 4)
    np.testing.assert_allclose(stronger.values, described.values, atol=2e-3)


def test_the_nearest_word_is_the_nearest_centre():
    rng = np.random.default_rng(0)
    values, centres = rng.random((30, 4)), rng.random((7, 4))
    apart = ((values[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(features.nearest_words(values, centres), apart.argmin(axis=1))


def test_views_are_histograms(paths):
    vocabularies = features.learn_vocabularies(paths)
    assert {kind: len(words) for kind, words in vocabularies.items()} == features.N_WORDS
    views = features.views_of(features.Photograph.read(paths[0]), vocabularies)
    assert len(views) == 10
    for view in views.values():
        assert (view >= 0).all()
        assert view.sum() == pytest.approx(1)


def test_distances_tell_kinds_apart(matrices):
    for matrix in matrices.values():
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        assert not matrix.diagonal().any()
    same = LABELS[:, None] == LABELS
    colour = matrices["colour"]
    assert colour[same].mean() < 0.5 * colour[~same].mean()


def test_an_interrupted_run_goes_on_where_it_stopped(paths, kept, matrices, monkeypatch, capsys):
    (folder,) = kept.iterdir()
    (folder / "distances.npz").unlink()
    (folder / "features-00020.npz").unlink()
    read = []
    original = features.Photograph.read.__func__
    monkeypatch.setattr(
        features.Photograph, "read", classmethod(lambda cls, p: read.append(p) or original(cls, p))
    )
    again = features.distances(paths, kept)
    assert read == paths[20:40]
    assert again.keys() == matrices.keys()
    for name, matrix in matrices.items():
        np.testing.assert_array_equal(again[name], matrix)
    assert "48 of 48 photographs" in capsys.readouterr().err


def test_other_photographs_have_a_folder_of_their_own(paths, tmp_path):
    features.distances(paths[:20], tmp_path)
    features.distances(paths[20:40], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


# -- the protocol ---------------------------------------------------------------------------


def test_splits_have_every_kind_in_equal_parts_and_differ():
    y = np.repeat(np.arange(17), 80)
    first, second = (flower.split_photographs(y, seed) for seed in range(2))
    for part, n_of_each in zip(first, (40, 20, 20), strict=True):
        np.testing.assert_array_equal(np.bincount(y[part]), np.full(17, n_of_each))
    np.testing.assert_array_equal(np.sort(np.concatenate(first)), np.arange(len(y)))
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[0], flower.split_photographs(y, 0)[0])


def test_kernels_have_the_width_of_the_training_photographs(matrices):
    split = flower.make_split(matrices, LABELS, seed=0)
    train, _, test = flower.split_photographs(LABELS, 0)
    matrix = matrices["HOG"]
    expected = np.exp(-matrix[np.ix_(test, train)] / matrix[np.ix_(train, train)].mean())
    place = split.test.names.index("HOG")
    np.testing.assert_allclose(split.test.kernel(place), expected, rtol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_tuned(name, matrices):
    method = METHODS[name]
    small = {parameter: values[-2:] for parameter, values in method.grid.items()}
    found = tuned(replace(method, grid=small), flower.make_split(matrices, LABELS, seed=0))
    assert found.accuracy > 0.7
    assert found.right.shape == (12,)
    assert found.chosen.keys() >= small.keys()
    assert flower._chosen(found)


# -- the page -------------------------------------------------------------------------------


def part(*n_right, **changed):
    right = [np.arange(10) < n for n in n_right]
    return {
        "environment": {"versions": {"numpy": "2"}, "machine": "a machine"},
        "n_photographs": 20,
        "views": ["colour", "HOG"],
        "n_judged": 10,
        "accuracy": [100 * float(one.mean()) for one in right],
        "validation": [90.0] * len(right),
        "right": [np.packbits(one).tobytes().hex() for one in right],
        "chosen": ["λ 0.25, p ∞"] * len(right),
        "seconds": 2.0,
        **changed,
    }


def test_verdicts_count_photographs():
    results = {"averaging": part(7, 8), "product": part(9, 9), "ℓp MK-FDA": part(8, 8)}
    first, second, third = flower.verdicts(results)
    assert first == (
        "ℓp MK-FDA not below product: MISSED, -10.0 points; 0 photographs only ℓp MK-FDA knew, "
        "2 only the other; on the validation photographs +0.0 points"
    )
    assert "not below averaging: held, +5.0 points; 1 photographs" in second
    assert "as there: MISSED, -10.0 points beside product" in third


def test_the_page_has_the_figures_of_the_paper_beside_ours():
    results = {
        "best kernel, SVM": part(7, 8, alone=[50.0, 25.0]),
        "ℓp MK-FDA": part(8, 9, weights=[0.25, 0.75]),
    }
    text = flower.page(results)
    assert "87.2 ± 1.6" in text
    assert "λ 0.25, p ∞; λ 0.25, p ∞" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| HOG")]
    assert row.replace(" ", "") == "|HOG|25.0|0.750|"
    rows = flower.paper_rows(results)
    assert [(row.paper, row.theirs) for row in rows] == [
        ("Yan et al. 2012", 87.2),
        ("Yan et al. 2010", 86.7),
    ]
    # Deviations of 7.07 over two splits and 1.6 over three.
    assert rows[0].error == pytest.approx((25 + 1.6**2 / 3) ** 0.5)


def test_boosting_with_the_2_norm_is_a_linear_machine_of_all_columns(matrices):
    split = flower.make_split(matrices, LABELS, seed=0)
    model = ColumnSVM((split.validation, split.y_validation)).fit(split.train, split.y_train)
    columns, others = (
        np.hstack([stack.kernel(j) for j in range(stack.n_kernels)]) / model._size**0.5
        for stack in (split.train, split.test)
    )
    ((C,),) = np.atleast_2d(model.estimator_.C_)
    linear = SVC(C=C, kernel="linear", decision_function_shape="ovr").fit(
        columns, split.y_train == 0
    )
    np.testing.assert_array_equal(linear.predict(others), model.predict(split.test) == 0)


def test_the_whole_on_few_pictures(paths, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_data, "flower17", lambda: (paths, LABELS))
    folder = str(tmp_path / "kept")
    assert flower.main(["--quick", "--features", folder, "--methods", "averaging"]) == 0
    shown = capsys.readouterr().out
    assert "48 photographs, 12 judged in each of 1 splits" in shown
    assert "| averaging |" in shown


def test_missing_photographs_are_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(_data.VARIABLE, str(tmp_path))
    assert flower.main([]) == 1
    assert "robots.ox.ac.uk" in capsys.readouterr().err
