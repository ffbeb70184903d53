"""What goes wrong is one sentence, with the way out; exit codes; files stay as they were."""

import builtins
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import manykernels as mk
from manykernels.cli import commands, main
from tests.cli.conftest import BOTH, QUICK, N, frames

FIT = ("fit", *BOTH)
OUT = ("--output", "m.skops")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*FIT], 2, "Missing option '--output'. Help: manykernels fit --help"),
        (["fit", *OUT, "--target", "label"], 2, "There is no view: pass --view name=file"),
        (["fit", *OUT, "--view", "a=a.csv"], 2, "There is no target: pass --target"),
        ([*FIT, *OUT, "--view", "a=b.csv"], 2, "There are several views 'a'"),
        ([*FIT, *OUT, "--view", "c=c.csv"], 1, "There is no file 'c.csv'."),
        (
            [*FIT, *OUT, "--view", "c=c.doc"],
            1,
            "format of 'c.doc' is not supported; supported are .csv",
        ),
        ([*FIT, *OUT, "--view", "c=a.csv:z"], 1, "'a.csv' has no column 'z'; it has 'id', 'x'"),
        ([*FIT, *OUT, "--view", "c=a.csv:rbg(k=1)"], 2, "There is no kernel 'rbg'; there are lin"),
        ([*FIT, *OUT, "--view", "c=a.csv:rbf(gama=1)"], 2, "no parameter 'gama'; it has gamma"),
        ([*FIT, *OUT, "--index", "name"], 1, "'a.csv' has no column 'name' to match samples by"),
        ([*FIT, *OUT, "--target", "z"], 1, "No file has a column 'z' to predict; columns are"),
        ([*FIT, *OUT, "--task", "ranking"], 2, "task must be auto, classification or regression"),
        ([*FIT, *OUT, "--task", "regression"], 1, "The target of a regression must be numbers"),
        ([*FIT, *OUT, "--p", "two"], 2, "p must be auto or one or more numbers"),
        ([*FIT, *OUT, "--p", "0.5"], 2, "p must be at least 1: 1 (sparse weights), 2, inf"),
        ([*FIT, *OUT, "--reg", "0"], 2, "reg must be positive; got '0'"),
        ([*FIT, *OUT, "--kernel", "poly"], 2, "No such option: --kernel. Kernels are written be"),
        ([*FIT, *OUT, "--view", "c=a.csv:poly"], 1, "If a kernel is meant, its name is polynom"),
        ([*FIT, *OUT, "--view", "c=a.csv:gauss(x=1)"], 2, "If a kernel is meant, its name is rbf"),
        ([*FIT, *OUT, "--view", "c=a.csv:x:chi2"], 2, "If a kernel is meant, its name is chisq"),
        ([*FIT, *OUT, "--C", "1"], 2, "C is an option of --machine svm; with --machine fisher, u"),
        ([*FIT, *OUT, "--machine", "svm"], 2, "reg is an option of --machine fisher"),
        ([*FIT, *OUT, "--sets", "sets.gmt"], 2, "which view the sets belong to: write --sets a="),
        ([*FIT, *OUT, "--sets", "c=sets.gmt"], 2, "there is no view 'c', only a, b"),
        ([*FIT, *OUT, "--sets", "a="], 2, "--sets 'a=' has no file"),
        ([*FIT, *OUT, "--sets", "a=none.gmt"], 1, "none.gmt"),
        ([*FIT, *OUT, "--sets", "b=sets.gmt"], 1, "view 'b': No name in the sets matches"),
        ([*FIT, *OUT, "--sets", "a=a.csv"], 1, "a.csv, line 1: a set must be a name"),
        ([*FIT, *OUT, "--approximation", "fast"], 2, "approximation must be exact, auto, nystrom"),
        ([*FIT, "--output", "m.pkl"], 2, "--output 'm.pkl' must end with .skops"),
        ([*FIT, "--output", "no/m.skops"], 1, "There is no folder 'no' for --output"),
        ([*FIT, *OUT, "--predictions", "a.csv"], 2, "--predictions 'a.csv' is read by the same"),
        ([*FIT, *OUT, "--report", "a.txt"], 2, "--report 'a.txt' must end with .html"),
        (["fit", *OUT, "--spec", "no.toml"], 2, "'no.toml' cannot be read"),
        (["predict", "no.skops", "--view", "a=a.csv"], 1, "There is no model file 'no.skops'"),
        (["compare", *BOTH, "--methods", "magic"], 2, "There is no method 'magic'; there are f"),
        (["compare", *BOTH, "--folds", "1"], 2, "--folds"),
        (["importance", *BOTH[:2], *BOTH[4:]], 1, "Importance is a comparison"),
        (["magic"], 2, "magic"),
    ],
)
def test_a_sentence(folder, run, arguments, code, said):
    before = sorted(folder.iterdir())
    found, _, err = run(*arguments)
    assert found == code
    assert said in err
    assert err.startswith("manykernels: ")
    assert len(err.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("targt = 'label'\n", "has an unknown key 'targt'; known are task"),
        ("[views.a]\nfile = 'a.csv'\ncolumn = 'x'\n", "'odd.toml' has an unknown key 'column'"),
        ("[views.a]\ncolumns = ['x']\n", "views.a in 'odd.toml' has no file"),
        ("[views]\na = 3\n", "views.a in 'odd.toml' must be a file, or a table"),
        ("views = 3\n", "views in 'odd.toml' must be a table"),
        ("impute = 'yes'\n", "impute in 'odd.toml' must be true or false"),
        ("index = 3\n", "index in 'odd.toml' must be a text"),
        ("[views.a]\nfile = 'a.csv'\ncolumns = [1]\n", "must be a list of texts"),
        ("p = [true]\nviews.a = 'a.csv'\n", "p must be auto or one or more numbers"),
        ("p = [\n", "cannot be read"),
    ],
)
def test_a_specification_that_is_wrong(folder, run, spec, said):
    (folder / "odd.toml").write_text(spec)
    code, _, err = run("fit", "--spec", "odd.toml", "--target", "label", *OUT)
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "cannot be read: it is empty"),
        ("id,x,label\n", "it has no rows"),
        ("id,x,x,label\n1,2,3,a\n", "several columns are called 'x'"),
        ("id,x,label\n1,2,a\n1,3,b\n", "has several rows whose id is '1'"),
        ("id,x,label\n1,2,a\n,3,b\n", "has no id in row 2"),
        ("id,x,label\n1,2,a\n2,3,a\n", "All samples have the same target, 'a'"),
        ("id,x,label\n1,2,\n2,3,\n", "No sample has a value of 'label'"),
        ("id,label\n1,a\n2,b\n", "has no feature columns for view 'a'"),
        ("id,x,label\n1,,a\n2,,b\n", "has no values for view 'a'"),
        ("id,x,label\n1,2,a\n2,3,b,4,5\n", "cannot be read"),
    ],
)
def test_a_table_that_is_wrong(folder, run, lines, said):
    (folder / "odd.csv").write_text(lines)
    code, _, err = run("fit", "--view", "a=odd.csv", *BOTH[4:], *OUT)
    assert code == 1
    assert said in err


def test_predictions_that_cannot_be_made(folder, run):
    assert run(*FIT, *OUT)[0] == 0
    a, _, _ = frames()
    a[["x"]].to_csv("few.csv")
    for arguments, said in [
        (["--view", "a=few.csv", "--view", "b=b.csv"], "no column 'y', which view 'a' had in"),
        (["--view", "c=a.csv"], "The model has no view 'c'; it has 'a', 'b'"),
        (["--view", "a=a.csv"], "View 'b' is missing: pass --view b=file"),
        (["--view", "a=a.csv:rbf", "--view", "b=b.csv"], "Kernels are part of the model"),
        (["--view", "a=a.csv", "--view", "b=gaps.csv"], "fitted without --missing"),
        ([], "There is no view"),
    ]:
        code, _, err = run("predict", "m.skops", *arguments)
        assert code in (1, 2)
        assert said in err


def test_columns_that_the_model_does_not_know(folder, run):
    assert run(*FIT, *OUT)[0] == 0
    code, out, err = run("predict", "m.skops", "--view", "a=a.csv", "--view", "b=b.csv")
    assert code == 0
    assert "that the model does not use: 'label'" in err
    assert len(out.splitlines()) == N + 1


# -- files -----------------------------------------------------------------------------------


def test_an_existing_file_is_not_replaced(folder, run):
    Path("m.skops").write_text("mine")
    code, _, err = run(*FIT, *OUT)
    assert code == 1
    assert "'m.skops' exists already. Pass --force to replace it." in err
    assert Path("m.skops").read_text() == "mine"
    assert run(*FIT, *OUT, "--force")[0] == 0
    assert mk.load("m.skops").p_ == 2.0


def test_symbolic_links_that_lead_nowhere(folder, run):
    Path("loop.csv").symlink_to("loop.csv")
    Path("loop.skops").symlink_to("loop.skops")
    Path("nowhere.csv").symlink_to("nothing.csv")
    for name in ("loop.csv", "nowhere.csv"):
        code, _, err = run("fit", "--view", f"a={name}", "--target", "label", *OUT)
        assert (code, err) == (
            1,
            f"manykernels: '{name}' is a symbolic link to a file that does not exist.\n",
        )
    code, _, err = run(*FIT, "--output", "loop.skops", "--force")
    assert (code, err) == (
        1,
        "manykernels: --output 'loop.skops' is a symbolic link to itself.\n",
    )
    code, _, err = run("inspect", "loop.skops")
    assert (code, err) == (1, "manykernels: There is no model file 'loop.skops'.\n")
    code, _, err = run("demo", "--output", "loop.csv/demo")
    assert code == 1
    assert "should not happen" not in err


def test_a_link_to_what_is_read_is_not_written(folder, run):
    Path("link.skops").symlink_to("a.csv")
    code, _, err = run(*FIT, "--output", "link.skops", "--force")
    assert code == 2
    assert "'link.skops' is read by the same command" in err


def test_a_report_that_fails_leaves_no_model(folder, run, monkeypatch):
    def failing(*given):
        raise RuntimeError("no ink")

    monkeypatch.setattr(commands, "write_report", failing)
    before = sorted(folder.iterdir())
    code, _, err = run(*FIT, *OUT, "--report", "report.html")
    assert code == 1
    assert "no ink" in err
    assert sorted(folder.iterdir()) == before


def test_an_interruption(folder, run, monkeypatch):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(mk.MKFDACV, "fit", interrupted)
    before = sorted(folder.iterdir())
    code, _, err = run(*FIT, *OUT)
    assert code == 130
    assert err == "manykernels: interrupted; nothing was written.\n"
    assert sorted(folder.iterdir()) == before


def test_debug_shows_where(folder, run):
    code, _, err = run(*FIT, *OUT, "--target", "z", "--debug")
    assert code == 1
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("manykernels: No file has a column 'z'")


def test_warnings_are_notes(folder, run, monkeypatch):
    a, _, label = frames()
    # A kernel that is constant is told of by a warning.
    a.assign(label=label, flat=1.0)[:N].to_csv("a.csv")
    code, _, err = run(
        "fit", "--view", "a=a.csv", "--view", "c=a.csv:flat:linear", *BOTH[4:], *OUT
    )
    assert code in (0, 1)
    assert "Warning" not in err
    assert all(line.startswith(("note: ", "manykernels: ")) for line in err.splitlines())


# -- packages that are not there -------------------------------------------------------------


@pytest.mark.parametrize("package", ["typer", "rich", "pandas"])
def test_without_the_extra(run, monkeypatch, package):
    for name in [name for name in sys.modules if name.startswith("manykernels.cli.")]:
        if not name.endswith((".running", ".errors")):
            monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    assert run("demo") == (
        2,
        "",
        f"manykernels: the command line needs {package}, which is not installed: "
        'pip install "manykernels[cli]"\n',
    )


def test_without_mudata(folder, run, monkeypatch):
    real = builtins.__import__

    def without(name, *given, **more):
        if name in ("mudata", "anndata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    Path("cells.h5mu").write_bytes(b"x")
    code, _, err = run("fit", "--view", "rna=cells.h5mu", *BOTH[4:], *OUT)
    assert code == 1
    assert 'needs mudata: pip install "manykernels[cli,omics]"' in err


def test_modalities(folder, run, monkeypatch):
    """As mudata would give them."""
    a, b, label = frames()
    single = {
        name: SimpleNamespace(X=table.to_numpy(), obs_names=table.index, to_df=lambda t=table: t)
        for name, table in {"rna": a, "atac": b[["age"]]}.items()
    }
    data = SimpleNamespace(mod=single, obs=pd.DataFrame(index=label.index), obs_names=label.index)
    data.pull_obs = lambda: setattr(data, "obs", label.to_frame())
    package = ModuleType("mudata")
    package.read_h5mu = lambda path: data
    package.set_options = lambda pull_on_update: nullcontext()
    monkeypatch.setitem(sys.modules, "mudata", package)
    Path("cells.h5mu").write_bytes(b"x")
    views = ("--view", "rna=cells.h5mu:rna", "--view", "atac=cells.h5mu:atac")
    code, out, err = run("fit", *views, "--target", "label", *QUICK, *OUT)
    assert code == 0, err
    assert "50 samples" in out
    assert np.allclose(mk.load("m.skops").X_fit_["rna"], a)
    code, _, err = run(
        "fit", "--view", "r=cells.h5mu", "--target", "label", *QUICK, *OUT, "--force"
    )
    assert code == 1
    assert "has several tables: select one, as in --view rna=cells.h5mu:rna" in err


def test_columns_of_sparse_modalities_have_names(folder, run, monkeypatch):
    """As anndata would give them; new cells have another order of genes."""
    a, _, label = frames()

    def cells(table):
        return SimpleNamespace(
            X=sparse.csr_matrix(table.to_numpy()),
            obs_names=table.index,
            var_names=table.columns,
            obsm={},
            obs=label.to_frame(),
        )

    files = {"old.h5ad": cells(a), "new.h5ad": cells(a[["y", "x"]])}
    package = ModuleType("anndata")
    package.read_h5ad = lambda path: files[Path(path).name]
    monkeypatch.setitem(sys.modules, "anndata", package)
    for name in files:
        Path(name).write_bytes(b"x")
    options = ("--target", "label", "--sets", "sets.gmt", *QUICK, *OUT)
    code, _, err = run("fit", "--view", "rna=old.h5ad", *options)
    assert code == 0, err
    model = mk.load("m.skops")
    assert model.kernel_names_ == ["rna:FIRST", "rna:BOTH"]
    code, _, err = run("predict", "m.skops", "--view", "rna=new.h5ad", "--output", "new.csv")
    assert code == 0, err
    expected = model.predict_proba({"rna": a})[:, 0]
    assert np.allclose(pd.read_csv("new.csv")["probability_ill"], expected)


def test_a_layer_of_single_cells(folder, run, monkeypatch):
    """As anndata would give it."""
    a, _, label = frames()
    cells = SimpleNamespace(
        **{"X": sparse.csr_matrix(a.shape), "obsm": {}},
        layers={"counts": sparse.csr_matrix(a.to_numpy())},
        **{"obs_names": a.index, "var_names": a.columns, "obs": label.to_frame()},
    )
    package = ModuleType("anndata")
    package.read_h5ad = lambda path: cells
    monkeypatch.setitem(sys.modules, "anndata", package)
    Path("cells.h5ad").write_bytes(b"x")
    options = ("--target", "label", *QUICK, *OUT)
    code, _, err = run("fit", "--view", "rna=cells.h5ad:counts:linear", *options)
    assert code == 0, err
    assert mk.load("m.skops").kernel_names_ == ["rna"]
    code, _, err = run("fit", "--view", "rna=cells.h5ad:raw", *options, "--force")
    assert code == 1
    assert "'cells.h5ad' has no table 'raw', only 'X', 'counts'." in err


@pytest.mark.parametrize(
    ("file", "reader"), [("a.csv", "read_csv"), ("a.parquet", "read_parquet")]
)
def test_a_file_larger_than_memory(folder, run, monkeypatch, file, reader):
    frames()[0].reset_index().to_parquet("a.parquet")
    monkeypatch.setattr(import_module("manykernels.cli.files"), "available_memory", lambda: 100)
    code, _, err = run("fit", "--view", f"a={file}", "--target", "x", *OUT)
    assert code == 1
    assert f"'{file}' takes" in err
    assert f"dask.dataframe.{reader}('{file}')" in err
    assert "manykernels[dask]" in err


def test_kernels_that_do_not_fit_into_memory(folder, run, monkeypatch):
    monkeypatch.setattr("manykernels.utils.numerics.available_memory", lambda: 1000)
    code, _, err = run(*FIT, *OUT)
    assert code == 1
    assert err == (
        "manykernels: The kernel stack of shape (15, 40, 40) needs 0.0 GiB, but 0.0 GiB are "
        "available. Pass --approximation nystrom with --machine fisher, which learns from "
        "landmarks, or use fewer samples or kernels: --view name=file:rbf has one.\n"
    )


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (("--reg", "1"), "or more. --approximation nystrom learns from landmarks in a fraction"),
        (
            ("--machine", "svm", "--C", "1"),
            "there is --machine fisher, which with --approximation nystrom learns from landmarks.",
        ),
    ],
)
def test_a_long_fit_is_announced(folder, run, monkeypatch, machine, said):
    monkeypatch.setattr("manykernels.estimators.feature_data._SECONDS_OF_FACTORS", 1e-3)
    code, _, err = run("fit", *BOTH[:-4], "--p", "2", *machine, *OUT)
    assert code == 0
    assert err.startswith("note: MK")
    assert said in err


def test_the_version(run):
    assert run("--version") == (0, f"manykernels {mk.__version__}\n", "")


@pytest.mark.slow
def test_the_package_is_a_command():
    answer = subprocess.run(
        [sys.executable, "-m", "manykernels", "inspect", "none.skops"],
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1
    assert answer.stderr == "manykernels: There is no model file 'none.skops'.\n"


@pytest.mark.slow
def test_the_exit_code_of_a_process(folder):
    code = "import sys\nfrom manykernels.cli import main\nsys.exit(main())"
    answer = subprocess.run(
        [sys.executable, "-c", code, "inspect", "a.csv"], capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("manykernels: a.csv cannot be loaded")
    assert main(["inspect", "a.csv"]) == 1
    assert len(pd.read_csv("a.csv")) == N


# -- what newcomers write --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--view", "a=a.csv:x,y:poly"), 2, "'poly' is not a kernel"),
        (("--view", "a=a.csv:x,y:poly"), 2, "If a kernel is meant, its name is polynomial."),
        (("--view", "a=a.csv:poly"), 1, "If a kernel is meant, its name is polynomial."),
        (("--view", "a=a.csv", "--p", "0.5"), 2, "p must be at least 1: 1 (sparse weights), 2"),
        (("--view", "a=nothing.csv"), 1, "There is no file 'nothing.csv'."),
        (("--view", "a"), 2, "--view 'a' has no file. A view is name=file"),
    ],
)
def test_what_newcomers_write(folder, run, options, code, sentence):
    found, _, err = run("fit", *options, "--index", "id", "--target", "label", *OUT)
    assert found == code
    assert sentence in err


def test_names_with_spaces_and_pipes(folder, run):
    a, _, label = frames()
    table = a.assign(label=label).rename(columns={"x": "first dose"})[:N]
    table.to_csv("my table.csv", sep="|")
    views = ("--view", "my view=my table.csv:first dose,y")
    code, out, err = run("fit", *views, *BOTH[4:], *OUT)
    assert (code, err) == (0, "")
    assert "view my view: 2 columns" in out


def test_infinite_cells_are_not_imputed(folder, run):
    a, _, label = frames()
    table = a.assign(label=label)[:N]
    table.iloc[2, 0] = np.inf
    table.to_csv("a.csv")
    code, _, err = run("fit", "--view", "a=a.csv", *BOTH[4:], *OUT, "--impute")
    assert code == 1
    assert (
        "column 'x' of view 'a' has inf in row 3 ('002'), which is infinite: write another" in err
    )
