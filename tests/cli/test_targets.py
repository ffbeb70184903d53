"""What is predicted: classes or numbers, several targets, labels, strata, scores and intervals."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import manykernels as mk
from tests.cli.conftest import BOTH, QUICK, N, clinic, frames
from tests.problems import slow

TIMES = ("--time", "clinic.csv:months", "--event", "clinic.csv:died")
VIEWS = ("--view", "a=a.csv:x,y", "--view", "b=b.csv", "--index", "id")
NEW = ("--view", "a=a_new.csv", "--view", "b=b_new.csv")


@pytest.fixture
def targets(folder):
    """Columns of several kinds, in a file of their own."""
    a, b, label = frames()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "grade": np.clip(np.round(2 + a["x"]), 1, 4).astype(int),
            "dose": (3 * a["x"]).round(2),
            "weight": (60 + b["age"] / 5 + rng.normal(size=len(a))).round(1),
            "cough": (a["x"] > 0.7).astype(int),
            "fever": (a["y"] > 0.7).astype(int),
            "pain": np.where(a["y"] > 0.5, "yes", "no"),
            "centre": [f"{number % 2:02d}" for number in range(len(a))],
            "since": 0.0,
            "label": label,
        },
        index=a.index,
    )
    frame[:N].to_csv("targets.csv")
    frame[N:].to_csv("targets_new.csv")
    clinic(a)[:N].to_csv("clinic.csv")
    return frame


# -- classes or numbers --------------------------------------------------------------------------


def test_few_integers_are_classes_and_the_first_line_says_how_to_change_it(targets, run):
    options = (*VIEWS, "--target", "targets.csv:grade", *QUICK, "--output", "m.skops")
    code, out, _ = run("fit", *options)
    assert code == 0
    first = out.splitlines()[0]
    assert first.startswith("40 samples, target 'grade': 4 classes (")
    assert first.endswith("; pass --task regression to learn numbers")
    code, out, _ = run("fit", *options, "--task", "regression", "--force")
    assert code == 0
    assert out.splitlines()[0] == "40 samples, target 'grade': numbers from 1 to 4"
    code, out, _ = run("fit", *options, "--task", "classification", "--force")
    assert out.splitlines()[0].endswith(")")


@pytest.mark.slow
def test_other_targets_need_no_advice(targets, run):
    for target, end in [("dose", "numbers from"), ("cough", "2 classes ("), ("pain", "2 classes")]:
        options = (*VIEWS, "--target", f"targets.csv:{target}", *QUICK, "--output", "m.skops")
        first = run("fit", *options, "--force")[1].splitlines()[0]
        assert end in first
        assert "--task" not in first


# -- several targets -----------------------------------------------------------------------------


def test_several_numbers(targets, run):
    options = (*VIEWS, "--target", "targets.csv:dose", "--target", "targets.csv:weight", *QUICK)
    code, out, err = run("fit", *options, "--output", "m.skops", "--predictions", "left.csv")
    assert (code, err) == (0, "")
    assert "40 samples, 2 targets" in out
    assert "target 'dose': numbers from" in out
    assert "mean R² of the targets" in out
    a, b, _ = frames()
    same = mk.MKRidgeCV(ps=[2], regs=[1]).fit(
        {"a": a[:N], "b": b[:N]}, targets.loc[a.index[:N], ["dose", "weight"]]
    )
    left = pd.read_csv("left.csv", index_col="id", dtype={"id": str})
    assert list(left) == ["target_dose", "target_weight", "prediction_dose", "prediction_weight"]
    assert_allclose(left.iloc[:, 2:], same.left_out_predictions_, rtol=1e-6)
    code, _, _ = run("predict", "m.skops", *NEW, "--coverage", "0.8", "--output", "new.csv")
    assert code == 0
    new = pd.read_csv("new.csv", index_col="id", dtype={"id": str})
    X = {"a": a[N:], "b": b[N:]}
    assert_allclose(new[["prediction_dose", "prediction_weight"]], same.predict(X), rtol=1e-6)
    ends = same.predict_interval(X, 0.8)
    assert_allclose(new[["low_weight", "high_weight"]], ends[:, 1], rtol=1e-6)


@pytest.mark.parametrize("machine", ["fisher", *slow("svm", "logistic")])
def test_several_labels(targets, run, machine):
    quick = ("--C", "1") if machine == "svm" else ("--reg", "1")
    options = (*VIEWS, "--target", "targets.csv:cough", "--target", "targets.csv:fever")
    options = (*options, "--p", "2", *quick, "--machine", machine)
    code, out, err = run("fit", *options, "--output", "m.skops", "--predictions", "left.csv")
    assert (code, err) == (0, "")
    n_cough = targets["cough"][:N].sum()
    assert f"target 'cough': a label, that {n_cough} samples have" in out
    assert "mean accuracy of the labels" in out
    assert "prediction_fever" in pd.read_csv("left.csv")
    code, out, _ = run("predict", "m.skops", *NEW)
    assert code == 0
    header = "id,prediction_cough,prediction_fever,probability_cough,probability_fever"
    assert out.splitlines()[0] == header
    assert set(out.splitlines()[1].split(",")[1:3]) <= {"0", "1"}


@pytest.mark.parametrize(
    ("columns", "more", "sentence"),
    [
        (
            ("cough", "pain"),
            (),
            "Several targets are labels, which are 0 and 1, or numbers; 'pain' has 'no', 'yes'. "
            "Write 0 and 1 into the file, pass --task regression if the targets are numbers, or "
            "fit a model for each.",
        ),
        (
            ("cough", "dose"),
            (),
            "The target 'cough' has classes and 'dose' has numbers: pass --task regression if "
            "both are numbers, or fit a model for each.",
        ),
        (("dose", "dose"), (), "The target 'dose' is passed twice."),
        (("dose", "since"), (), "The target 'since' has classes"),
        (
            ("dose", "weight"),
            ("--machine", "svm"),
            "--machine svm learns one target, and there are 2: use --machine fisher",
        ),
    ],
)
def test_several_targets_that_cannot_be_learnt(targets, run, columns, more, sentence):
    given = [part for name in columns for part in ("--target", f"targets.csv:{name}")]
    code, _, err = run("fit", *VIEWS, *given, *more, "--output", "m.skops")
    assert code in (1, 2)
    if columns == ("dose", "since"):
        assert "'since' has classes" in err
    else:
        assert sentence in err


@pytest.mark.parametrize(("pattern", "names"), [("[dw]*", ["dose", "weight"]), ("dos*", ["dose"])])
def test_targets_by_a_pattern(targets, run, pattern, names):
    given = ("--target", f"targets.csv:{pattern}", "--groups", "targets.csv:centre")
    code, out, err = run("fit", *VIEWS, *given, *QUICK, "--output", "m.skops")
    assert (code, err) == (0, "")
    assert all(f"target '{name}'" in out for name in names)
    assert f"{len(names)} targets" in out or len(names) == 1


def test_a_pattern_of_classes_and_numbers(targets, run):
    """A pattern takes texts, but not the column of the groups."""
    given = ("--target", "targets.csv:*e*", "--groups", "targets.csv:centre")
    code, _, err = run("fit", *VIEWS, *given, *QUICK, "--output", "m.skops")
    assert code == 1
    assert "centre" not in err
    assert "classes and 'dose' has numbers" in err or "are labels" in err


def test_a_pattern_without_columns(targets, run):
    given = ("--target", "targets.csv:z*")
    code, _, err = run("fit", *VIEWS, *given, *QUICK, "--output", "m.skops")
    assert code == 1
    assert "'targets.csv' has no columns 'z*' to predict; it has 'id', 'grade', 'dose'" in err


@pytest.mark.slow
def test_several_targets_in_a_specification(targets, folder, run):
    text = 'index = "id"\ntarget = ["targets.csv:dose", "targets.csv:weight"]\n'
    folder.joinpath("two.toml").write_text(text + '[views]\nb = "b.csv"\n')
    code, out, _ = run("fit", "--spec", "two.toml", *QUICK, "--output", "m.skops")
    assert code == 0
    assert "2 targets" in out


# -- prediction intervals ------------------------------------------------------------------------


def test_intervals_of_numbers(targets, run):
    views = ("--view", "a=a.csv:x,y:linear", "--view", "b=b.csv:age:linear", "--index", "id")
    options = (*views, "--target", "targets.csv:dose", *QUICK, "--output", "m.skops")
    assert run("fit", *options)[0] == 0
    code, out, _ = run("predict", "m.skops", *NEW, "--coverage", "0.8")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "id,prediction,low,high"
    prediction, low, high = map(float, lines[1].split(",")[1:])
    assert low < prediction < high
    code, _, err = run("predict", "m.skops", *NEW, "--coverage", "80")
    assert code == 1
    assert "coverage must be between 0 and 1, such as 0.9" in err
    code, _, err = run("predict", "m.skops", *NEW, "--coverage", "0.99")
    assert code == 1
    assert "coverage=0.99 needs 199 independent left-out samples or more, but there are 40" in err


def test_classes_have_no_intervals(targets, run):
    assert run("fit", *BOTH, "--output", "m.skops")[0] == 0
    code, _, err = run("predict", "m.skops", *NEW, "--coverage", "0.9")
    assert code == 2
    assert "--coverage is for predictions of numbers" in err


# -- scores --------------------------------------------------------------------------------------


def test_parameters_are_chosen_by_a_score(targets, run):
    options = (*VIEWS, "--target", "a.csv:label", "--p", "1,2", "--reg", "0.1,10")
    code, out, _ = run("fit", *options, "--scoring", "balanced_accuracy", "--output", "m.skops")
    assert code == 0
    model = mk.load("m.skops")
    assert model.scoring == "balanced_accuracy"
    expected = f"by balanced_accuracy, which is {model.left_out_score_:.3f} for held-out samples"
    assert expected in out


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("auc", "Did you mean roc_auc"),
        ("balanced-accuracy", "Did you mean balanced_accuracy"),
        ("nothing at all", "there is no such score. Names are those of scikit-learn"),
    ],
)
def test_scores_that_do_not_exist(targets, run, name, advice):
    code, _, err = run("fit", *BOTH, "--scoring", name, "--output", "m.skops")
    assert code == 2
    assert f"--scoring {name!r}: there is no such score." in err
    assert advice in err


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("r2", ("--target", "a.csv:label"), "a score of numbers, and the target has classes"),
        ("roc_auc", ("--target", "a.csv:x"), "a score of classes, and the target has numbers"),
        ("mean_class_mcc", ("--target", "a.csv:x"), "of classes, and the target has numbers"),
        ("concordance_index", ("--target", "a.csv:x"), "of survival times, and the target has nu"),
        ("accuracy", TIMES, "classes, and the target has survival times: choose another, such as"),
    ],
)
def test_scores_of_other_targets(targets, run, name, target, said):
    options = ("--view", "a=a.csv:y", "--index", "id", *target, "--p", "2", "--reg", "1")
    code, _, err = run("fit", *options, "--scoring", name, "--output", "m.skops")
    assert code == 2
    assert f"--scoring {name!r} is a score of" in err
    assert said in err


@pytest.mark.slow
def test_several_scores_are_for_compare(targets, run):
    few = ("--methods", "fisher", "--folds", "2")
    code, out, _ = run("compare", *BOTH, *few, "--scoring", "accuracy,roc_auc")
    assert code == 0
    assert "roc_auc" in out
    code, _, err = run("fit", *BOTH, "--scoring", "accuracy,roc_auc", "--output", "m.skops")
    assert code == 2
    assert "fit chooses by one score" in err


# -- importance of a model -----------------------------------------------------------------------


@pytest.mark.parametrize("score", ["balanced_accuracy", *slow("roc_auc", "neg_log_loss")])
def test_the_importance_of_the_views_of_a_model(folder, run, monkeypatch, score):
    folder.joinpath("models").mkdir()
    assert run("fit", *BOTH, "--output", "models/m.skops")[0] == 0
    monkeypatch.chdir(folder / "models")  # paths are relative to the model
    options = ("--resamples", "2", "--scoring", score)
    code, out, _ = run("importance", "m.skops", *options)
    assert code == 0
    assert f"{score}, 5 folds held out" in out
    monkeypatch.chdir(folder)
    assert run("importance", *BOTH, *options)[1] == out


@pytest.mark.slow
def test_the_model_of_an_importance_is_not_changed(folder, run):
    run("fit", *BOTH, "--output", "m.skops")
    code, _, err = run("importance", "m.skops", "--p", "1")
    assert code == 2
    assert "--p is part of the model 'm.skops': remove the option." in err
    folder.joinpath("b.csv").unlink()
    code, _, err = run("importance", "m.skops")
    assert code == 1
    assert "There is no file 'b.csv'" in err


def test_a_model_of_python_does_not_tell_its_files(folder, run):
    a, _, label = frames()
    mk.save(mk.MKFDACV(ps=[2], regs=[1]).fit({"a": a[:N]}, label[:N]), "m.skops")
    code, _, err = run("importance", "m.skops")
    assert code == 1
    assert "'m.skops' does not tell which files it was fitted to: pass --view" in err


@pytest.mark.slow
def test_string_kernels_of_the_model_are_those_of_its_fit(folder, run):
    rng = np.random.default_rng(0)
    a, _, label = frames()
    texts = ["".join(rng.choice(list("AC" if ill == "ill" else "AG"), 12)) for ill in label]
    pd.DataFrame({"text": texts}, index=a.index)[:N].to_csv("texts.csv")
    views = ("--view", "a=a.csv", "--view", "t=texts.csv:text:spectrum(k=2)", "--index", "id")
    assert run("fit", *views, "--target", "label", *QUICK, "--output", "m.skops")[0] == 0
    code, out, _ = run("importance", "m.skops", "--resamples", "0")
    assert code == 0
    assert "fall without" in out


# -- what a model remembers ----------------------------------------------------------------------


def kernel_file(path, rows, columns, ids, **more):
    a, _, _ = frames()
    matrix = np.exp(-0.5 * ((a.to_numpy()[rows][:, None] - a.to_numpy()[columns]) ** 2).sum(-1))
    np.savez(path, gaussian=matrix, person=np.asarray(ids, dtype=str), **more)


def test_ids_of_kernels_are_kept(folder, run):
    a, _, label = frames()
    known, new = np.arange(N), np.arange(N, len(a))
    kernel_file("k.npz", known, known, a.index[:N], label=np.asarray(label[:N], dtype=str))
    kernel_file("k_new.npz", new, known, a.index[N:])
    options = ("--view", "k=k.npz", "--index", "person", "--target", "label", *QUICK)
    assert run("fit", *options, "--output", "m.skops", "--predictions", "left.csv")[0] == 0
    assert list(pd.read_csv("left.csv", dtype=str)["person"]) == list(a.index[:N])
    code, out, _ = run("predict", "m.skops", "--view", "k=k_new.npz")
    assert code == 0
    assert out.splitlines()[0].startswith("person,prediction")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == list(a.index[N:])
    # New kernels that do not go with the model.
    kernel_file("k_new.npz", new, known[:30], a.index[N:])
    code, _, err = run("predict", "m.skops", "--view", "k=k_new.npz")
    assert code == 1
    assert err == (
        "manykernels: The kernel 'gaussian' has 30 columns, but the model was fitted to 40 "
        "samples: the kernel of new samples has a row for each of them, and a column for each "
        "sample of the fit, in the same order.\n"
    )
    np.save("k_new.npy", np.zeros((1, 5, N)))
    code, _, err = run("predict", "m.skops", "--view", "k=k_new.npy")
    assert code == 1
    assert "'k_new.npy' has no names of samples: write the kernels into an .npz" in err
    assert "with the names in an array 'person'." in err


@pytest.mark.slow
def test_what_inspect_tells_of_the_samples(targets, run):
    options = (*VIEWS, "--target", "targets.csv:dose", "--target", "targets.csv:weight", *QUICK)
    assert run("fit", *options, "--output", "m.skops")[0] == 0
    told = json.loads(run("inspect", "m.skops", "--json")[1])
    assert told["samples"]["target"] == ["targets.csv:dose", "targets.csv:weight"]
    assert told["samples"]["views"]["a"] == {"file": "a.csv", "columns": ["x", "y"], "kernels": []}


# -- survival times ------------------------------------------------------------------------------


def test_strata_and_entries(targets, run):
    options = (*VIEWS, *TIMES, "--strata", "targets.csv:centre", "--entry", "targets.csv:since")
    code, out, err = run("fit", *options, *QUICK, "--output", "m.skops", "--report", "r.html")
    assert (code, err) == (0, "")
    assert "2 strata by 'centre'" in out
    a, b, _ = frames()
    X, y = {"a": a[:N], "b": b[:N]}, clinic(a)[:N].astype({"died": bool})[["died", "months"]]
    about = {"strata": targets["centre"][:N], "entry": targets["since"][:N]}
    same = mk.MKCoxCV(ps=[2], regs=[1]).fit(X, y, **about)
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)
    held = same.left_out_predictions_
    index = mk.metrics.concordance_index(
        y["died"], y["months"], held, strata=targets["centre"][:N]
    )
    assert f"concordance index {index:.3f}" in out
    new = (*NEW, "--at", "6,12", "--strata", "targets_new.csv:centre")
    code, out, _ = run("predict", "m.skops", *new, "--output", "new.csv")
    assert code == 0
    curves = same.predict_survival_function({"a": a[N:], "b": b[N:]}, targets["centre"][N:])
    table = pd.read_csv("new.csv", index_col="id", dtype={"id": str})
    assert_array_equal(table.index, a.index[N:])
    assert_allclose(table["survival_12"], [curve(12.0) for curve in curves], rtol=1e-5)
    code, out, _ = run("importance", "m.skops", "--resamples", "0")
    assert code == 0
    assert "concordance_index" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--target", "a.csv:label", "--strata", "b.csv:site"),
            "--strata is for survival times: pass --time and --event, not --target.",
        ),
        ((*TIMES, "--strata", "nothing"), "No file has a column 'nothing' of strata"),
        (
            (*TIMES, "--entry", "b.csv:site"),
            "The entry 'site' of '000' is 'south': entries must be numbers",
        ),
    ],
)
def test_strata_and_entries_that_are_refused(targets, run, options, sentence):
    code, _, err = run("fit", *VIEWS[:2], "--index", "id", *options, "--output", "m.skops")
    assert code in (1, 2)
    assert sentence in err.replace("'north'", "'south'")
