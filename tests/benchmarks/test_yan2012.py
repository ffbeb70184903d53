"""The benchmark beside Yan et al. (2012): what it measures, on small problems."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _command, _data, yan2012
from benchmarks import _yan2012_pyramid as pyramid
from benchmarks import _yan2012_random as noise
from benchmarks import _yan2012_speed as speed
from benchmarks import _yan2012_words as words


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def views(rng):
    y = np.arange(120) % 3
    sizes = {"a": 7, "b": 12}
    made = {n: rng.standard_normal((120, d)) + y[:, None] for n, d in sizes.items()}
    return made, y


# -- random kernels ------------------------------------------------------------------------


def test_sets_of_columns_are_a_division_of_the_views(views, rng):
    made, _ = views
    sets = noise.column_sets(made, rng)
    assert len(sets) == 10
    for name, view in made.items():
        columns = np.hstack([part for label, part in sets.items() if label[0] == name])
        assert sorted(map(tuple, columns.T)) == sorted(map(tuple, view.T))


def test_drawn_parts_do_not_overlap_and_may_be_everything(views):
    _, y = views
    for sizes in [(30, 30, 30), (60, 30, 30)]:
        rows = noise.drawn(y, sizes, 0)
        assert tuple(map(len, rows)) == sizes
        assert len(set(np.concatenate(rows))) == sum(sizes)
        for part in rows:
            assert set(np.bincount(y[part])) == {len(part) // 3}


def test_the_value_that_does_best_on_validation_rows_is_taken(views):
    made, y = views
    parts = noise.parts_of(made, y, noise.drawn(y, (30, 30, 60), 0))
    estimator, name = noise.METHODS["MK-FDA"]
    seen = {}

    def score(model, block, labels):
        value = float(model.score(block, labels))
        if len(labels) == 30:
            seen[model.reg] = value
        return value

    model, test = noise.best_on_validation(estimator, name, (1e-3, 1.0, 1e3), parts, score)
    assert seen[model.reg] == max(seen.values())
    assert test == 100 * model.score(parts.stacks[2], parts.labels[2])


def found_mixture(sparse, dense):
    values = {
        "p = 1": {"1": [sparse[0]], "30": [sparse[1]]},
        "p = 2": {"1": [dense[0]], "30": [dense[1]]},
    }
    values["p = ∞"] = values["p = 2"]
    same = {norm: {"1": [1.0], "30": [1.0]} for norm in values}
    return {"precision": values, "on_random": same, "n_used": same}


def test_verdicts_of_mixtures():
    lines = noise.mixture_verdicts(found_mixture((50.0, 90.0), (40.0, 95.0)))
    assert all("held" in line for line in lines)
    lines = noise.mixture_verdicts(found_mixture((40.0, 95.0), (50.0, 90.0)))
    assert all("MISSED" in line for line in lines)
    assert "ℓ1 − ℓ2 = -10.00" in lines[0]
    assert "| 30 " in noise.mixture_table(found_mixture((40.0, 95.0), (50.0, 90.0)))


def test_verdicts_of_added_kernels():
    def flat(first, last):
        sparse = {"0": [first, first], "16": [first, first]}
        return {"p = 1 + 2⁻⁶": sparse, "p = ∞": {"0": [first, first], "16": [last, last]}}

    found = {"MK-FDA": flat(90, 85), "OBSCURE": flat(89, 80), "MK-SVM": flat(70, 60)}
    lines = noise.added_verdicts(found)
    assert not any("MISSED" in line for line in lines)
    assert "cost MK-FDA 5.0 points and OBSCURE 9.0" in lines[2]
    assert noise.added_table(found).count("MK-FDA") == 2
    found["MK-FDA"]["p = 1 + 2⁻⁶"] = {"0": [90.0, 91.0], "16": [90.0, 89.0]}
    (row,) = noise.added_rows(found)
    assert (row.theirs, row.ours, row.error) == (0.3, 1.0, 0.0)


def test_pictures_to_train_on_and_to_judge_on_differ(monkeypatch):
    pictures = np.random.default_rng(0).random((400, 64, 64))
    monkeypatch.setattr(noise._data, "olivetti", lambda: (pictures, np.repeat(np.arange(40), 10)))
    monkeypatch.setattr(noise, "METHODS", {"MK-FDA": noise.METHODS["MK-FDA"]})
    seen = []

    def score(estimator, name, values, parts, score):
        seen.append([len(labels) for labels in parts.labels])
        kernels = parts.stacks[2]
        assert max(kernels.kernel(j).max() for j in range(kernels.n_kernels)) < 1.0
        return None, 50.0

    monkeypatch.setattr(noise, "best_on_validation", score)
    found = noise.added(quick=True)
    assert seen == [[200, 200, 200]] * 4
    assert found["MK-FDA"]["p = ∞"] == {"0": [50.0], "16": [50.0]}


# -- training time -------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_contenders_reach_the_gap(views, n_classes):
    made, y = views
    stack = speed.gaussian(made)
    found = speed.curve(
        (1,), lambda _: (stack, np.minimum(y, n_classes - 1)), multiclass=n_classes > 2
    )
    assert len(found) == (8 if n_classes > 2 else 10)
    assert all(timings[1].reached for timings in found.values())
    plain = speed.plain(found)
    assert speed.curve_of(plain) == found
    assert len(speed.curve_verdicts({"Fig. 0: small": plain})) == (3 if n_classes > 2 else 4)
    assert speed.curve_table(found).count("newton") == 4


def test_one_that_is_too_slow_is_not_asked_again(views, monkeypatch):
    made, y = views
    stack = speed.gaussian(made)
    monkeypatch.setattr(speed, "timed", lambda *_: speed.Timing(9.0, False))
    found = speed.curve((1, 2), lambda _: (stack, y), multiclass=True)
    assert all(list(timings) == [1] for timings in found.values())
    assert "> 9.0" in speed.curve_table(found)
    lines = speed.curve_verdicts({"Fig. 0: slow": speed.plain(found)})
    assert sum("undecided" in line for line in lines) == 2


def test_the_wrapper_is_judged_where_both_were_asked():
    seconds = {"sip": {1: 0.1, 2: 9.0}, "newton": {1: 0.1, 2: 0.2}, "interleaved": {1: 0.3}}
    found = {
        one: {k: speed.Timing(v, v < 4) for k, v in seconds[one.solver].items()}
        for norm in (1.0, 2.0)
        for one in speed.contenders(norm, True)
        if one.label != "MK-SVM, newton"
    }
    _, *lines = speed.curve_verdicts({"Fig. 0: both": speed.plain(found)})
    for line in lines:
        assert "wrapper 0.100 s, interleaved MK-SVM 0.300 s" in line
        assert "(held)" in line
        assert line.endswith("0.200 s")
    assert "—" in speed.curve_table(found)


def test_verdicts_of_the_race():
    def points(*values):
        return [{"setting": "ε", "seconds": s, "accuracy": a} for s, a in values]

    fda, online = points((0.1, 80.0), (0.2, 90.0)), points((0.05, 70.0), (0.5, 89.0))
    (line,) = speed.race_verdicts({"p = 2": {"MK-FDA": fda, "OBSCURE": online}})
    assert "88.5 % after 0.20 s and 0.50 s" in line
    assert line.count("held") == 2


# -- words ---------------------------------------------------------------------------------


def test_descriptors_are_gradients_of_unit_length():
    slope = np.tile(np.arange(32.0), (24, 1))
    found = words.descriptors(slope)
    assert found.shape == (2, 3, 128)
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1.0, rtol=1e-6)
    # All gradients point to the right: one of eight directions, in each of 16 cells.
    cells = found.reshape(-1, 8, 16)
    np.testing.assert_allclose(cells[:, 0], 0.25, rtol=1e-6)
    assert not cells[:, 1:].any()
    assert not words.descriptors(np.ones((24, 32))).any()


def test_soft_counts_are_hard_ones_in_the_limit(rng):
    squares = rng.random((30, 5))
    hard = words.hard_counts(squares)
    assert hard.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(words.soft_counts(squares, 1e-4), hard)
    np.testing.assert_allclose(words.soft_counts(squares, 1e4), 0.2, rtol=1e-6)
    one = words.soft_counts(np.array([[0.0, 2.0]]), 1.0)
    np.testing.assert_allclose(one, np.array([1.0, np.exp(-1)]) / (1 + np.exp(-1)))


def test_assignments_are_compared_on_the_same_halves(rng):
    y = np.repeat([0, 1], 20)
    pictures = [rng.standard_normal((15, 4)) + label for label in y]
    found = words.compare(pictures, y, np.vstack(pictures), (6,), 2)
    by = found["6"]
    assert set(map(len, by.values())) == {2}
    soft = np.array([by[name] for name in by if name.startswith("soft, σ")])
    assert (soft == by[words.CHOSEN]).any(axis=0).all()
    assert "| 6 " in words.table(found)
    assert len(words.verdicts(found)) == 1


def test_flower17(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    folder = tmp_path / "flower17_images"
    folder.mkdir()
    (folder / "labels.csv").write_text("file,class,name\nb.jpg,2,Snowdrop\na.jpg,1,Daffodil\n")
    paths, y = _data.flower17()
    assert paths == [folder / "17flowers" / "b.jpg", folder / "17flowers" / "a.jpg"]
    assert y.tolist() == [2, 1]


# -- page ----------------------------------------------------------------------------------


def test_page(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    found = found_mixture((50.0, 90.0), (40.0, 95.0))
    results = {"mixture": {"found": found, "seconds": 3.2}}
    _command.write_results("yan2012", results, yan2012.page, yan2012.PARTS)
    page = (tmp_path / "yan2012.md").read_text(encoding="utf-8")
    assert page.count("## Fig. 2") == 1
    assert "- Fig. 2, 1 informative" in page
    assert "VOC2008" in page.split("## Fig. 2")[1]
    assert "``" not in page
    assert yan2012.paper_rows(_command.read_results("yan2012")) == []


def test_missing_data_skip_the_part(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert yan2012.main(["--quick", "--sets", "words"]) == 1
    assert "17 Category Flower" in capsys.readouterr().err


# -- spatial pyramids ----------------------------------------------------------------------


@pytest.mark.parametrize("side", pyramid.GRIDS)
def test_words_are_counted_in_the_cells_of_a_grid(rng, side):
    nearest = rng.integers(3, size=(9, 6))
    counts = np.zeros((side, side, 3))
    for i in range(9):
        for j in range(6):
            counts[i * side // 9, j * side // 6, nearest[i, j]] += 1
    found = pyramid.cell_counts(nearest, 3, side)
    np.testing.assert_allclose(found, counts.ravel() / nearest.size)
    assert found.sum() == pytest.approx(1.0)


def test_places_of_words_help_where_only_they_differ(rng):
    # One word above and the other below, or the other way round; between them, either at random.
    y = np.repeat([0, 1], 16)
    descriptors = np.eye(2)
    pictures = []
    for kind in y:
        above = np.full((1, 4), kind)
        nearest = np.vstack([above, rng.integers(2, size=(2, 4)), 1 - above])
        pictures.append(descriptors[nearest])
    found = pyramid.compare(pictures, y, np.vstack([descriptors] * 10), 2, 2)
    assert found[pyramid.GIVEN] == found[pyramid.LEARNT] == [100.0, 100.0]
    assert max(found[pyramid.WHOLE]) < 90.0
    mean, _ = pyramid.difference(found, pyramid.GIVEN, pyramid.WHOLE)
    assert f"{mean:+.1f}" in pyramid.table(found)
    assert len(pyramid.verdicts(found)) == 3
