"""The commands, their options and their help.

Every line of help that begins with ``manykernels`` is an example that the tests run.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..utils.versions import __version__
from .console import DataError, printable, sentence
from .request import OPTIONS, Request

app = typer.Typer(
    name="manykernels",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

View = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="NAME=FILE[:COLUMNS][:KERNEL]",
        help="A view, once for each: a=a.csv, a=a.csv:age,dose or a=a.csv:age:rbf(gamma=0.5). "
        "Files are .csv, .tsv, .parquet, .fasta, .h5ad, .h5mu, or kernels in .npz or .mat. "
        "Without a kernel a view has default ones, by what it holds.",
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that names the samples, in every file. Without it rows are matched by order.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to predict, in the file of any view, or FILE:COLUMN. It is never a feature.",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="error|mean|conditional",
        help="What becomes of samples that lack a view: refused (default), the mean in its place, "
        "or reconstructed from their other views.",
    ),
]
Impute = Annotated[
    bool | None,
    typer.Option(
        "--impute",
        help="Fill in single empty cells: the median of a column, of texts the most frequent one.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="auto|classification|regression",
        help="By default texts and up to 20 different whole numbers are classes.",
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        metavar="fisher|svm",
        help="Fisher discriminant, or ridge regression for numbers (default); or support vectors.",
    ),
]
Norm = Annotated[
    str | None,
    typer.Option(
        "--p",
        metavar="auto|NUMBERS",
        help="Norms of the weights to try, such as 1 (few kernels), 2 or 1,2,inf.",
    ),
]
Reg = Annotated[
    str | None,
    typer.Option("--reg", metavar="auto|NUMBERS", help="Regularisations λ to try, such as 0.1,1."),
]
Penalty = Annotated[
    str | None,
    typer.Option("--C", metavar="auto|NUMBERS", help="With --machine svm: values of C to try."),
]
Approximate = Annotated[
    str | None,
    typer.Option(
        "--approximation",
        metavar="exact|auto|nystrom[:N]|random[:N]",
        help="Explicit features in place of kernel matrices, for many samples: by landmarks or at "
        "random; auto: landmarks for more than 5000 samples.",
    ),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="The same options from a file; those of the command line win.",
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In .csv and .tsv, put an apostrophe before texts that spreadsheet programs would "
        "take for formulas: those that begin with = + - or @.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that fit has written.")]
Table = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Where to write it: .csv, .tsv or .parquet."),
]


def _request(context: typer.Context) -> Request:
    """What the options of a command ask for, those that it shares with others."""
    given = {name: value for name, value in context.params.items() if name in OPTIONS}
    return Request.of(context.params["view"] or (), context.params["spec"], **given)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"manykernels {__version__}")
        raise typer.Exit


@app.callback()
def manykernels(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from.")
    ] = False,
) -> None:
    """Learn from several tables of the same samples how much each of them matters.

    \b
    Examples:
      manykernels demo
      manykernels fit --view a=a.csv --view b=b.csv --index id --target label --output model.skops
      manykernels predict model.skops --view a=a_new.csv --view b=b_new.csv
    """


@app.command()
def fit(
    context: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE.skops", help="Where to write the model.")
    ],
    view: View = None,
    index: Index = None,
    target: Target = None,
    missing: Missing = None,
    impute: Impute = None,
    task: Task = None,
    machine: Machine = None,
    p: Norm = None,
    reg: Reg = None,
    C: Penalty = None,
    approximation: Approximate = None,
    spec: Spec = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Where to write a report, to open in a browser."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Where to write, for every sample, the prediction of a model that has not seen "
            "it (with --machine fisher).",
        ),
    ] = None,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
) -> None:
    """Learn a model from files.

    It is written to a file, after a word about how good it is. Norm and regularisation are chosen
    by cross-validation. Rows of the files are matched by the column --index. In Python the model
    is opened by manykernels.load.

    \b
    Examples:
      manykernels fit --view a=a.csv --view b=b.csv --index id --target label --output model.skops
      manykernels fit --view a=a.csv --view b=gaps.csv --missing mean \\
        --index id --target label --output gaps.skops
      manykernels fit --view "a=a.csv:x,y:rbf(gamma='median')" \\
        --index id --target label --output rbf.skops
      manykernels fit --spec model.toml --p 1,2 --output spec.skops --predictions left_out.csv
    """
    from .commands import fit as run

    run(
        _request(context),
        output=output,
        report=report,
        predictions=predictions,
        escape_formulas=escape_formulas,
        force=force,
    )


@app.command()
def predict(
    model: Model,
    view: View = None,
    index: Index = None,
    output: Table = None,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
) -> None:
    """Predict for new samples.

    The table has classes with their probabilities, or numbers. Files have the columns of
    training; others, such as the target, are left aside. Samples are matched by the column that
    fit was given as --index, unless another one is named. Without --output the table goes to
    standard output.

    \b
    Examples:
      manykernels predict model.skops --view a=a_new.csv --view b=b_new.csv \\
        --output predictions.csv
      manykernels predict model.skops --view a=a_new.csv --view b=b_new.csv
    """
    from .commands import predict as run

    run(
        model,
        view or (),
        index=index,
        output=output,
        escape_formulas=escape_formulas,
        force=force,
    )


@app.command()
def inspect(
    model: Model,
    json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Tell what a model is.

    Its estimator, parameters, views, weights, certificate, and the versions that wrote it.
    Nothing in the file is executed.

    \b
    Examples:
      manykernels inspect model.skops
      manykernels inspect model.skops --json
    """
    from .commands import inspect as run

    run(model, as_json=json)


@app.command()
def importance(
    context: typer.Context,
    view: View = None,
    index: Index = None,
    target: Target = None,
    missing: Missing = None,
    impute: Impute = None,
    task: Task = None,
    machine: Machine = None,
    p: Norm = None,
    reg: Reg = None,
    C: Penalty = None,
    spec: Spec = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Half-samples that tell the spread of weights.")
    ] = 50,
    output: Table = None,
    force: Force = False,
) -> None:
    """Tell which views matter, with intervals.

    How much the score falls without each view, its score alone, and the spread of its weight.

    \b
    Examples:
      manykernels importance --view a=a.csv --view b=b.csv --index id --target label --p 2 --reg 1
    """
    from .commands import importance as run

    run(_request(context), resamples=resamples, output=output, force=force)


@app.command()
def compare(
    context: typer.Context,
    view: View = None,
    index: Index = None,
    target: Target = None,
    missing: Missing = None,
    impute: Impute = None,
    task: Task = None,
    p: Norm = None,
    reg: Reg = None,
    spec: Spec = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Some of fisher, svm (learnt weights), sum (equal weights), single (each view).",
        ),
    ] = "fisher,sum,single",
    folds: Annotated[int, typer.Option(min=2, help="Parts that are held out in turn.")] = 5,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keeps what is finished; after an interruption it is found again."),
    ] = None,
    output: Table = None,
    force: Force = False,
) -> None:
    """Compare methods on the same splits.

    Does it help to combine views, and to learn their weights?

    \b
    Examples:
      manykernels compare --view a=a.csv --view b=b.csv --index id --target label --p 2 --reg 1
      manykernels compare --spec model.toml --methods fisher,sum --folder finished \\
        --output table.csv
    """
    from .commands import compare as run

    run(_request(context), methods=methods, folds=folds, folder=folder, output=output, force=force)


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="The folder to write.")
    ] = Path("manykernels-demo"),
    force: Force = False,
) -> None:
    """Write tables of digits and fit a model.

    Views of handwritten digits as files, a model of them, its report, and the commands to go on.

    \b
    Examples:
      manykernels demo
    """
    from .commands import demo as run

    run(output, force=force)


# -- ``main``: runs a command, and tells in one sentence what went wrong --------------------------


# Exit codes; `DataError` and its kind have their own.
_REFUSED, _MISUSED = 1, 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
# Packages of the extra: without one of them there is no command line.
_EXTRA = {"typer", "rich", "pandas", "pyarrow", "skops"}
# What can be done about a column of text that is no category.
_TEXT_ADVICE = (
    "Name the other columns, --view a=file.csv:age,dose; or compare it in a view of its own by a "
    "kernel of strings, --view b=file.csv:column:spectrum, or as categories all the same, "
    "--view b=file.csv:column:categorical. Numbers and dates are converted in the file; a column "
    "that names the samples is told by --index."
)
# What data and parameters that do not fit make a library raise. Others are mistakes of ours.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``manykernels``; by default that of the command line.

    Returns
    -------
    code : int
        0, or 1 if data or a model cannot be used, 2 if the command was not understood, 130 after
        an interruption.

    Examples
    --------
    >>> from manykernels.cli import main
    >>> main(["inspect", "nothing.skops"])
    1
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter shows a question mark instead.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # Those are for whoever writes code.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = _told
        try:
            return _run(given)
        except BaseException as error:
            if debug:
                for line in traceback.format_exc().splitlines():
                    print(printable(line), file=sys.stderr)
            return _outcome(error)


def _run(arguments: list[str]) -> int:

    code = app(arguments, prog_name="manykernels", standalone_mode=False)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or 0)


def _outcome(error: BaseException) -> int:
    """Tell what was wrong, and return the exit code for it."""
    if isinstance(error, DataError):
        return _say(str(error), error.code)
    if isinstance(error, KeyboardInterrupt):
        return _say("interrupted; nothing was written.", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        # Whoever reads the output has seen enough; what is buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _REFUSED
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ImportError) and package in _EXTRA:
        return _say(
            f"the command line needs {package}, which is not installed: "
            'pip install "manykernels[cli]"',
            _MISUSED,
        )
    if hasattr(error, "format_message"):
        return _misused(error)
    if advice := getattr(error, "advice", ""):  # what to do in Python about a column of text
        return _say(str(error).replace(advice, _TEXT_ADVICE), _REFUSED)
    if isinstance(error, _EXPECTED):
        return _say(str(error) or type(error).__name__, _REFUSED)
    return _say(
        f"{type(error).__name__}: {error} (this should not happen; --debug shows where it did)",
        _REFUSED,
    )


def _misused(error: BaseException) -> int:
    """What the parser of options says, and where there is help; all of the help if it is that."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        return _MISUSED
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "manykernels"
    said = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    return _say(f"{said}. Help: {command} --help", _MISUSED)


def _say(message: str, code: int) -> int:
    print(f"manykernels: {sentence(message)}", file=sys.stderr)
    return code


def _told(message: Warning | str, *where: object, **more: object) -> None:
    """A warning of a library, without the line of code that it is about."""
    print(f"note: {sentence(str(message))}", file=sys.stderr)
