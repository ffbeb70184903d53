"""Commands, options and help texts of the command line.

The tests run every line of help that begins with ``manykernels``.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated

import typer

from ..utils.versions import __version__
from . import without_extra
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
        help="A view; repeat the option for each view. Examples: a=a.csv, a=a.csv:age,dose, "
        "a=a.csv:age:rbf(gamma=0.5). Files are .csv, .tsv, also with .gz or .zst, .xlsx, "
        ".parquet, .fasta, .h5ad, .h5mu, or kernel matrices in .npy, .npz or .mat. Without a "
        "kernel, default kernels are chosen by the type of the data.",
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the names of the samples, in every file. Without it, rows are matched "
        "by their order.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of text files, such as latin-1 or cp1252. By default UTF-16 is detected by "
        "its byte-order mark, other files are UTF-8, or latin-1 with a note.",
    ),
]
Transpose = Annotated[
    str | None,
    typer.Option(
        metavar="all|VIEWS",
        help="Views whose tables have a column per sample: the first row has the names of the "
        "samples, the first column those of the features.",
    ),
]
MatchIds = Annotated[
    str | None,
    typer.Option(
        metavar="case,number",
        help="Match names of samples that are written differently. case: S1 is s1. number: 007 "
        "and 7.0 are 7, and s007 is s7. Results have the names after these changes.",
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to predict, in the file of any view, or FILE:COLUMN. It is never used as a "
        "feature. Repeat the option for several numbers, or for several labels that are 0 or 1; "
        "FILE:* are all columns of a file.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="In place of --target, for survival times: column with the time of the event, or of "
        "the last observation. Fits a Cox model.",
    ),
]
Event = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[=VALUE]",
        help="With --time: column that is true or 1 if the event was observed, and false or 0 if "
        "the sample was censored. Other values of observed events are named: status=dead.",
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="With --time: column with the time at which a sample came under observation.",
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="For survival times: column with parts of the samples, such as centres, that have "
        "baseline hazards of their own. Samples are compared within them.",
    ),
]
Scoring = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Score, as in scikit-learn: accuracy, balanced_accuracy, roc_auc, neg_log_loss, r2, "
        "neg_mean_absolute_error, concordance_index and others. Larger is better.",
    ),
]
Sets = Annotated[
    str | None,
    typer.Option(
        metavar="[VIEW=]FILE.gmt",
        help="Gene sets: a kernel for the columns of each set, in place of other kernels of the "
        "view, which need not be named if there is one. The kernel of the view, such as rbf, is "
        "that of every set; by default linear.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the group of each sample, such as the patient, in the file of any view, "
        "or FILE:COLUMN. Samples of one group are never divided between training and test. It is "
        "never used as a feature.",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="error|mean|conditional",
        help="How to treat samples that lack a view: stop with an error (default), use the mean, "
        "or reconstruct the view from the others.",
    ),
]
Indefinite = Annotated[
    str | None,
    typer.Option(
        metavar="error|clip",
        help="How to treat kernel matrices in files that have negative eigenvalues: stop with an "
        "error (default), or set these eigenvalues to zero.",
    ),
]
Impute = Annotated[
    bool | None,
    typer.Option(
        "--impute",
        help="Fill empty cells with the median of the column, or with its most frequent text.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="auto|classification|regression",
        help="Kind of target. By default, texts and up to 20 distinct integers are classes.",
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        metavar="fisher|svm|logistic|poisson",
        help="fisher: Fisher discriminant analysis, or ridge regression for numbers (default). "
        "svm: support vector machine. logistic: logistic regression of classes. poisson: "
        "regression of counts.",
    ),
]
Norm = Annotated[
    str | None,
    typer.Option(
        "--p",
        metavar="auto|NUMBERS",
        help="Norms p of the kernel weights to try, such as 1 (sparse), 2 or 1,2,inf.",
    ),
]
Reg = Annotated[
    str | None,
    typer.Option(
        "--reg", metavar="auto|NUMBERS", help="Regularisation parameters λ to try, such as 0.1,1."
    ),
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
        help="Approximate kernel matrices by N Nyström landmarks or N random features, for many "
        "samples. auto: landmarks if there are more than 5000 samples.",
    ),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="File with the same options. Options on the command line take precedence.",
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In .csv and .tsv files, put an apostrophe before texts that begin with = + - or @, "
        "which spreadsheet programs would evaluate as formulas.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file written by fit.")]
Table = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Table to write: .csv, .tsv or .parquet."),
]


def _request(context: typer.Context, model: Path | None = None) -> Request:
    """Return the request given by the options that several commands share.

    With a model, options that are not given are those of its fit.
    """
    given, noted = context.params, None
    options = {name: value for name, value in given.items() if name in OPTIONS}
    options["target"] = options.get("target") or None
    if model is not None:
        from .prediction import samples_of_model

        noted = samples_of_model(model, given)
    return Request.of(given["view"] or (), given.get("spec"), noted, **options)


def _show_version(requested: bool) -> None:
    if requested:
        print(f"manykernels {__version__}")
        raise typer.Exit


@app.callback()
def manykernels(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Multiple kernel learning: combine several tables of the same samples, with learnt weights.

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
        Path, typer.Option("--output", metavar="FILE.skops", help="Model file to write.")
    ],
    view: View = None,
    index: Index = None,
    encoding: Encoding = None,
    transpose: Transpose = None,
    match_ids: MatchIds = None,
    target: Target = None,
    time: Time = None,
    event: Event = None,
    entry: Entry = None,
    strata: Strata = None,
    groups: Groups = None,
    sets: Sets = None,
    missing: Missing = None,
    indefinite: Indefinite = None,
    impute: Impute = None,
    task: Task = None,
    machine: Machine = None,
    scoring: Scoring = None,
    p: Norm = None,
    reg: Reg = None,
    C: Penalty = None,
    approximation: Approximate = None,
    spec: Spec = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Report to write, for a browser.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Table to write with held-out predictions: for every sample, the prediction of a "
            "model trained without it.",
        ),
    ] = None,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
) -> None:
    """Fit a model to files and save it.

    The norm p and the regularisation are chosen by cross-validation, and the held-out score is
    printed. Rows of the files are matched by the column --index. In Python, manykernels.load
    opens the model.

    \b
    Examples:
      manykernels fit --view a=a.csv --view b=b.csv --index id --target label --output model.skops
      manykernels fit --view a=a.csv --view b=gaps.csv --missing mean \\
        --index id --target label --output gaps.skops
      manykernels fit --view "a=a.csv:x,y:rbf(gamma='median')" \\
        --index id --target label --output rbf.skops
      manykernels fit --view a=a.csv --view b=b.csv --index id --target label \\
        --groups patients.csv:patient --output patients.skops
      manykernels fit --view a=a.csv:x,y --view b=b.csv --index id \\
        --time clinic.csv:months --event clinic.csv:died --output cox.skops
      manykernels fit --view a=a.csv --sets sets.gmt --index id --target label --p 1 \\
        --output sets.skops
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
    context: typer.Context,
    model: Model,
    view: View = None,
    index: Index = None,
    encoding: Encoding = None,
    transpose: Transpose = None,
    match_ids: MatchIds = None,
    strata: Strata = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="0.9",
            help="For numbers: also predict intervals that contain the target with this "
            "probability, such as 0.9.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIMES",
            help="For survival times: times, such as 12,24,60, at which the probability of no "
            "event is predicted.",
        ),
    ] = None,
    output: Table = None,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
) -> None:
    """Predict for new samples.

    The result is a table of classes with their probabilities, of numbers, or of risks: logarithms
    of relative hazards. The files must have the columns of the training data; additional columns,
    such as the target, are ignored. Samples are matched by the column --index, by default the one
    that was passed to fit. Without --output, the table is printed.

    \b
    Examples:
      manykernels predict model.skops --view a=a_new.csv --view b=b_new.csv \\
        --output predictions.csv
      manykernels predict model.skops --view a=a_new.csv --view b=b_new.csv
      manykernels predict cox.skops --view a=a_new.csv --view b=b_new.csv --at 12,24
    """
    from .prediction import predict as run

    run(
        model,
        _request(context),
        at=at,
        coverage=coverage,
        output=output,
        escape_formulas=escape_formulas,
        force=force,
    )


@app.command()
def inspect(
    model: Model, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Describe a model.

    Shows the estimator, its parameters, views, weights and certificate, and the versions that
    wrote the file. No code in the file is executed.

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
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL]",
            help="Model file written by fit, in place of the options of a fit. The files of its "
            "samples are read again.",
        ),
    ] = None,
    view: View = None,
    index: Index = None,
    encoding: Encoding = None,
    transpose: Transpose = None,
    match_ids: MatchIds = None,
    target: Target = None,
    time: Time = None,
    event: Event = None,
    entry: Entry = None,
    strata: Strata = None,
    groups: Groups = None,
    sets: Sets = None,
    missing: Missing = None,
    indefinite: Indefinite = None,
    impute: Impute = None,
    task: Task = None,
    machine: Machine = None,
    scoring: Scoring = None,
    p: Norm = None,
    reg: Reg = None,
    C: Penalty = None,
    spec: Spec = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Measure the columns of the views, not the views.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=0, help="Number of half-samples for the spread of the results.")
    ] = 50,
    output: Table = None,
    force: Force = False,
) -> None:
    """Measure the importance of each view, or of each column, with confidence intervals.

    Shows how much the score falls without each view, the score of the view alone, and the spread
    of its weight. With --columns, shows the columns that tell something beyond all others, at a
    false discovery rate of 5 %.

    \b
    Examples:
      manykernels importance --view a=a.csv --view b=b.csv --index id --target label --p 2 --reg 1
      manykernels importance model.skops --scoring balanced_accuracy
      manykernels importance --view a=a.csv --index id --target label --columns
    """
    from .commands import importance as run

    run(
        _request(context, model),
        model,
        columns=columns,
        resamples=resamples,
        output=output,
        force=force,
    )


@app.command()
def compare(
    context: typer.Context,
    view: View = None,
    index: Index = None,
    encoding: Encoding = None,
    transpose: Transpose = None,
    match_ids: MatchIds = None,
    target: Target = None,
    time: Time = None,
    event: Event = None,
    entry: Entry = None,
    strata: Strata = None,
    groups: Groups = None,
    missing: Missing = None,
    indefinite: Indefinite = None,
    impute: Impute = None,
    task: Task = None,
    scoring: Scoring = None,
    p: Norm = None,
    reg: Reg = None,
    spec: Spec = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Comma-separated methods: fisher, svm, logistic, poisson, cox (learnt weights), "
            "sum (equal weights), single (each view alone); of scikit-learn constant (most "
            "frequent class, or mean), linear (logistic or ridge regression), boosting (gradient "
            "boosted trees). sum and single are of the first machine. By default fisher, sum, "
            "single and those of scikit-learn, for survival times cox, sum and single.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")] = 5,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of finished fits, with which an interrupted run continues."),
    ] = None,
    output: Table = None,
    force: Force = False,
) -> None:
    """Compare methods on the same cross-validation splits.

    Shows whether combining the views, and learning their weights, improves the score.

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
        Path, typer.Option("--output", metavar="FOLDER", help="Folder to write.")
    ] = Path("manykernels-demo"),
    force: Force = False,
) -> None:
    """Write example tables of digits and fit a model.

    Writes views of handwritten digits as files, a model and its report, and prints the commands
    that do the same.

    \b
    Examples:
      manykernels demo
    """
    from .commands import demo as run

    run(output, force=force)


# -- Run a command, print errors in one line --------------------------------------------


# Exit codes; `DataError` and its subclasses have their own.
_REFUSED, _MISUSED = 1, 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
# Advice about a column of text that is not categorical.
_TEXT_ADVICE = (
    "Select the other columns, --view a=file.csv:age,dose; or put it into a view of its own with "
    "a string kernel, --view b=file.csv:column:spectrum, or as categories, "
    "--view b=file.csv:column:categorical. Convert numbers and dates in the file; if the column "
    "names the samples, pass it as --index."
)
# Advice about a kernel of a table that is not positive semi-definite.
_KERNEL_ADVICE = "Choose another kernel for the view, such as rbf, or other parameters."
# Exceptions that unsuitable data and parameters cause. Any other exception is a bug.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError)


def run(arguments: list[str]) -> int:
    """Run a command, print its error, and return its exit code."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark instead.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # Deprecations concern programmers.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = _print_warning
        try:
            return _run(arguments)
        except BaseException as error:
            if debug:
                for line in traceback.format_exc().splitlines():
                    print(printable(line), file=sys.stderr)
            return _print_error(error)


def _run(arguments: list[str]) -> int:
    code = app(arguments, prog_name="manykernels", standalone_mode=False)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or 0)


def _print_error(error: BaseException) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, DataError):
        return _print(str(error), error.code)
    if isinstance(error, KeyboardInterrupt):
        return _print("interrupted; nothing was written.", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        # The reader of the pipe has closed it; discard the buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _REFUSED
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, ImportError) and (message := without_extra(error)) is not None:
        return _print(message, _MISUSED)
    if hasattr(error, "format_message"):
        return _print_misuse(error)
    if advice := getattr(error, "advice", ""):  # advice for Python
        no_kernel = type(error).__name__ in ("IndefiniteKernelError", "NoKernelError")
        other = _KERNEL_ADVICE if no_kernel else _TEXT_ADVICE
        return _print(str(error).replace(advice, other), _REFUSED)
    if isinstance(error, _EXPECTED):
        return _print(str(error) or type(error).__name__, _REFUSED)
    return _print(
        f"{type(error).__name__}: {error} (this should not happen; --debug shows the traceback)",
        _REFUSED,
    )


def _print_misuse(error: BaseException) -> int:
    """Print an error of the option parser with a pointer to the help, or the help itself."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        return _MISUSED
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "manykernels"
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    if getattr(error, "option_name", None) in ("--kernel", "--kernels"):
        message = (
            f"No such option: {error.option_name}. "  # type: ignore[attr-defined]
            "Kernels are written behind the file of a view: --view a=a.csv:polynomial"
        )
    return _print(f"{message}. Help: {command} --help", _MISUSED)


def _print(message: str, code: int) -> int:
    print(f"manykernels: {sentence(_for_terminal(message))}", file=sys.stderr)
    return code


# Advice in Python, and what it is on the command line.
_ON_THE_TERMINAL = (
    (
        r' are available\. .*approximation="nystrom".*',
        " are available. Pass --approximation nystrom with --machine fisher, which learns from "
        "landmarks, or use fewer samples or kernels: --view name=file:rbf has one.",
    ),
    (r"there is MK(FDA|Ridge)CV, which", "there is --machine fisher, which"),
    (r'approximation="nystrom"', "--approximation nystrom"),
)


def _for_terminal(message: str) -> str:
    """Replace parameters of Python in a message by options."""
    for pattern, replacement in _ON_THE_TERMINAL:
        message = re.sub(pattern, replacement, message, flags=re.DOTALL)
    return message


def _print_warning(message: Warning | str, *args: object, **kwargs: object) -> None:
    """Print a warning without the line of code that caused it."""
    print(f"note: {sentence(_for_terminal(str(message)))}", file=sys.stderr)
