"""Cells that cannot be used are named with file, view, column, row and value."""

import numpy as np
import pytest

import manykernels as mk
from tests.cli.conftest import QUICK, N, frames

OPTIONS = ("--index", "id", "--target", "label", *QUICK, "--output", "m.skops", "--force")
CELL = "'odd.csv': column 'x' of view 'a' has {} in row 4 ('003')"


def written(values):
    """Write a table with other values of x; a single text replaces the fourth value."""
    a, _, label = frames()
    table = a.assign(label=label)[:N].astype({"x": object})
    table["x"] = [*table["x"][:3], values, *table["x"][4:]] if isinstance(values, str) else values
    table.to_csv("odd.csv")


@pytest.mark.parametrize("options", [(), ("--impute",)])
@pytest.mark.parametrize(
    ("value", "shown", "said"),
    [
        (
            "<0.1",
            "'<0.1'",
            ": these are numbers with limits of a measurement, read as text; write",
        ),
        ("n/d", "'n/d'", ", but most rows have numbers: write a number in the file, or leave the"),
        ("1,234.5", "'1,234.5'", "commas between thousands, read as text; remove these commas"),
        ("1 234.5", "'1 234.5'", "spaces between thousands, read as text; remove these spaces"),
        ("12 %", "'12 %'", ": these are percentages, read as text; remove the percent signs"),
        ("inf", "inf", ", which is infinite: write another number in the file, or leave the cell"),
        ("1e300", "1e+300", ", which is too large to compute with: write another number in"),
    ],
)
def test_a_cell_among_numbers(folder, run, value, shown, said, options):
    written(value)
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS, *options)
    assert code == 1
    assert err.startswith(f"manykernels: {CELL.format(shown)}")
    assert said in err
    assert len(err.splitlines()) == 1


def test_numbers_with_decimal_commas(folder, run):
    written(
        [f"{10000 * x:,.1f}".replace(",", " ").replace(".", ",") for x in frames()[0]["x"][:N]]
    )
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 1
    assert "these are numbers with a decimal comma, read as text; write decimal points" in err
    assert "or separate its columns by semicolons" in err


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("{:.2f} mg/l", "these are numbers with the unit 'mg/l', read as text; remove the unit"),
        ("€ {:.2f}", "these are numbers with the unit '€', read as text; remove the unit in the"),
        ("{:,.0f}", "these are numbers with apostrophes between thousands, read as text; remove"),
    ],
)
def test_numbers_with_units_or_apostrophes(folder, run, form, said):
    values = 1000 + 100 * frames()[0]["x"][:N]
    written([form.format(x).replace(",", "'") for x in np.round(values)])
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 1
    assert said in err
    # Few of them may be categories.
    written([form.format(x).replace(",", "'") for x in np.where(values > 1000, 2000, 3000)])
    assert run("fit", "--view", "a=odd.csv", *OPTIONS)[0] == 0


def test_a_text_among_few_numbers(folder, run):
    values = np.round(frames()[0]["x"][:N])
    written([*values[:3], "#DIV/0!", *values[4:]])
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 1
    assert f"{CELL.format(repr('#DIV/0!'))}, but most rows have numbers: write a number" in err


def test_numbers_stored_as_text(folder, run):
    a, _, label = frames()
    a.assign(label=label, x=a["x"].map("{:.3f}".format))[:N].to_parquet("odd.parquet")
    code, _, err = run("fit", "--view", "a=odd.parquet", *OPTIONS)
    assert code == 1
    assert "has '0.357' in row 1 ('000'): these are numbers stored as text; store them as" in err


def test_texts_that_differ_by_spaces_or_case(folder, run):
    a, _, label = frames()
    wards = np.where(np.arange(N) % 2, "north", np.where(np.arange(N) % 4, "south", "South "))
    table = a[:N].assign(label=label, x=wards)
    table.iloc[1:9, -1] += " "
    table.to_csv("odd.csv")
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 0
    assert "note: 'odd.csv': entries of column 'x' look the same but for spaces or case" in err
    assert "'South ', 'south'. If they are one, write it in one way in the file." in err
    assert "note: classes of the target 'label' look the same but for spaces or case: 'w" in err


def test_few_percentages_may_be_categories(folder, run):
    written(np.where(frames()[0]["x"][:N] > 1, "12 %", "15 %"))
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 0
    assert "these are percentages, read as categories. If they are not, remove the percent" in err
    code, _, err = run("fit", "--view", "a=odd.csv:x:categorical", *OPTIONS)
    assert (code, err) == (0, "")


def test_a_kernel_that_needs_numbers(folder, run):
    written("<0.1")
    code, _, err = run("fit", "--view", "a=odd.csv:rbf", *OPTIONS)
    assert code == 1
    assert CELL.format("'<0.1'") + ", but the kernel rbf needs numbers: write a number" in err


def test_a_table_of_texts(folder, run):
    a, _, label = frames()
    texts = {f"my {name}": [f"{name}{i} word" for i in range(len(a))] for name in "ab"}
    a.assign(label=label, **texts)[:N].drop(columns=["x", "y"]).to_csv("my texts.csv")
    code, _, err = run("fit", "--view", "a=my texts.csv", *OPTIONS)
    assert code == 1
    assert "column 'my a' of view 'a' is text, and 40 of 40 entries are different" in err
    assert "string kernel, --view 'text=my texts.csv:my a:spectrum' (of SMILES 'text=my" in err
    assert "'text=my texts.csv:my a:molecules'), or as categories" in err
    assert "select the other columns, --view 'a=my texts.csv:my b'." in err
    assert "If it names the samples, pass --index 'my a'." in err
    # The advice is followed.
    assert run("fit", "--view", "text=my texts.csv:my a:spectrum", *OPTIONS)[0] == 0
    assert mk.load("m.skops").kernel_names_ == ["text"]


@pytest.mark.parametrize("options", [(), ("--impute",)])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("<0.1", "has '<0.1' in row 3 ('042'), but the training data have numbers: write a numb"),
        ("inf", "has inf in row 3 ('042'), which is infinite: write another number in the file"),
        ("1e300", "has 1e+300 in row 3 ('042'), which is too large to compute with"),
    ],
)
def test_a_cell_of_new_samples(folder, run, value, said, options):
    assert run("fit", "--view", "a=a.csv", *OPTIONS, *options)[0] == 0
    new = frames()[0][N:].astype(object)
    new.iloc[2, 0] = value
    new.to_csv("new.csv")
    code, _, err = run("predict", "m.skops", "--view", "a=new.csv")
    assert code == 1
    assert f"'new.csv': column 'x' of view 'a' {said}" in err


def test_an_empty_cell_of_new_samples(folder, run):
    new = frames()[0][N:].astype(object)
    new.iloc[2, 0] = ""
    new.to_csv("new.csv")
    assert run("fit", "--view", "a=a.csv", *OPTIONS)[0] == 0
    code, _, err = run("predict", "m.skops", "--view", "a=new.csv")
    assert code == 1
    assert err == (
        "manykernels: View 'a' has empty cells (1), the first in column 'x' of '042': fill them "
        "in, or fit the model with --impute.\n"
    )
    assert run("fit", "--view", "a=a.csv", *OPTIONS, "--impute")[0] == 0
    assert run("predict", "m.skops", "--view", "a=new.csv")[0] == 0


def test_an_index_with_spaces_is_quoted(folder, run):
    a, _, label = frames()
    a.assign(label=label)[:N].rename(index=lambda i: f"p{i}").rename_axis("my id").to_csv(
        "odd.csv"
    )
    _, _, err = run("fit", "--view", "a=odd.csv", "--target", "label", *OPTIONS[4:])
    assert "if it names the samples, pass --index 'my id'." in err


# -- targets ---------------------------------------------------------------------------------


def test_a_text_among_the_numbers_of_a_target(folder, run):
    a, _, _ = frames()
    target = [f"{value:.3f}" for value in a["x"][:N]]
    for value, said in [("<0.1", "one of numbers with limits"), ("n/d", "a text among numbers")]:
        a[:N].assign(label=[*target[:5], value, *target[6:]]).to_csv("odd.csv")
        code, _, err = run("fit", "--view", "a=odd.csv:y", *OPTIONS)
        assert code == 1
        assert f"The target of '005' is '{value}', {said}" in err
        code, _, err = run("fit", "--view", "a=odd.csv:y", *OPTIONS, "--task", "regression")
        assert code == 1
        assert f"must be numbers, but that of '005' is '{value}': write a number" in err
    # Classes may have such names.
    levels = [f"{value}%" for value in range(10, 31)] * 2
    a[: len(levels)].assign(label=levels).to_csv("odd.csv")
    assert run("fit", "--view", "a=odd.csv", *OPTIONS)[0] == 1
    code, out, err = run("fit", "--view", "a=odd.csv", *OPTIONS, "--task", "classification")
    assert code == 0, err
    assert "21 classes" in out


def test_a_regression_of_truth_values(folder, run):
    a, _, label = frames()
    a.assign(label=label == "ill")[:N].to_csv("odd.csv")
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS, "--task", "regression")
    assert code == 1
    assert "must be numbers, but that of '000' is " in err


def test_a_matrix_that_is_not_symmetric(folder, run):
    np.save("k.npy", np.arange(N * N).reshape(N, N))
    code, _, err = run("fit", "--view", "k=k.npy", "--target", "a.csv:label", *OPTIONS[4:])
    assert code == 1
    assert "Kernel 'kernel' is not symmetric: entries" in err
    assert "write their mean in both orders into the file, (K + K') / 2." in err
    assert "gram=" not in err


def test_a_kernel_written_as_a_table(folder, run):
    a, _, _ = frames()
    (a @ a.T).iloc[:N, :N].to_csv("odd.csv")
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS[:2], "--target", "a.csv:label",
                       *OPTIONS[4:])  # fmt: skip
    assert code == 0
    assert "note: 'odd.csv' is a symmetric matrix, of which view 'a' compares the columns" in err


def test_kernels_that_are_indefinite(folder, run):
    code, _, err = run("fit", "--view", "a=a.csv:polynomial(coef0=-5)", *OPTIONS)
    assert code == 1
    assert "is not positive semi-definite: its eigenvalues go from -" in err
    assert "Choose another kernel for the view, such as rbf, or other parameters." in err
    assert "from_arrays" not in err
