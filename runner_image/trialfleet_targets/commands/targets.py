"""`trialfleet targets`: predict which files a request is about. Slow imports happen inside the commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

import click

from trialfleet_targets.errors import TargetsError
from trialfleet_targets.prediction import METHODS
from trialfleet_targets.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trialfleet_targets.evaluation.run import CaseResult
    from trialfleet_targets.index import Index

LONGEST_PROMPT = 2**20  # characters; the rest is ignored
_NEEDED = ("tree_sitter", "numpy", "scipy", "networkx", "snowballstemmer")
_AT = click.option(
    "--at", metavar="COMMIT", help="A commit, branch or tag; nothing later is read. [default: HEAD]"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")


class TargetsCommandError(click.ClickException):
    """An error that the operator can fix."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"trialfleet: {self.format_message()}", err=True, file=file)


@click.group("targets", context_settings={"help_option_names": ["-h", "--help"]})
def targets() -> None:
    """Predict which files of a repository a request is about, without a model, a key or a network.

    \b
    trialfleet targets predict . "the session cookie is not renewed"
    git log -1 --format=%B | trialfleet targets predict . - --at HEAD~1 --explain

    Python, TypeScript and JavaScript, Go, Rust, Java. The first prediction reads the whole repository; the next
    ones read what has changed since.
    """


@targets.command("index")
@click.argument("repository")
@_AT
@click.option("--method", type=click.Choice(METHODS), help="Prepare for this method alone. [default: both]")
@_JSON
def index_command(repository: str, at: str | None, method: str | None, as_json: bool) -> None:
    """Build the index of REPOSITORY at one commit and store it in the cache.

    Optional: `predict` builds the index itself. This command shows what was read and what was left out.
    """
    with _operator_errors():
        from trialfleet_targets.cli_output import describe

        began = time.perf_counter()
        found = _index(repository, at, [method] if method else METHODS)
        describe(found, seconds=time.perf_counter() - began, as_json=as_json)


@targets.command("predict")
@click.argument("repository")
@click.argument("prompt")
@_AT
@click.option("--method", type=click.Choice(METHODS), default="default", show_default=True)
@click.option("--explain", is_flag=True, help="Show what each score came from.")
@_JSON
def predict_command(
    repository: str, prompt: str, at: str | None, method: str, explain: bool, as_json: bool
) -> None:
    """Predict at most five files of REPOSITORY that PROMPT wants edited, or explain why none.

    PROMPT is text; `-` reads it from standard input. Test files are never predicted. In a pipe, each file is one
    line: score, path and symbols with their lines, separated by tabs.
    """
    with _operator_errors():
        from trialfleet_targets.cli_output import show
        from trialfleet_targets.predict import predict

        asked = _asked(prompt)
        found = _index(repository, at, [method])
        show(found, predict(found, asked, method=method), explain=explain, as_json=as_json)


@targets.command("evaluate")
@click.argument("repositories", nargs=-1, required=True, metavar="REPOSITORY…")
@click.option("--commits", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
              help="The newest N usable commits of each repository.")  # fmt: skip
@_JSON
def evaluate_command(repositories: Sequence[str], commits: int, as_json: bool) -> None:
    """Measure how often the methods predict the files that commits of REPOSITORY… changed.

    A commit is used when it modifies 1–5 source files in at most 200 lines and its message has 5 words or more and
    names no path. Each prediction uses the parent commit alone; tests are not targets. Baselines run on the same
    commits.
    """
    with _operator_errors():
        from trialfleet_targets.cache import claim_cache
        from trialfleet_targets.cli_output import show_evaluation
        from trialfleet_targets.evaluation.run import evaluate
        from trialfleet_targets.repository import Repository, printable

        answers: list[CaseResult] = []
        opened = [Repository.open(name) for name in repositories]
        for one in opened:
            with show_progress(f"evaluating {one.name}"):
                found = list(evaluate(one, printable(str(one.folder)), most=commits, cache=claim_cache()))
            if not found:
                _say(f"{one.name}: no usable commit")
            answers += found
        if not answers:
            raise TargetsError(
                "no usable commit in these repositories",
                where=" ".join(one.name for one in opened),
                hint="name repositories with a history of small commits whose messages say what changed",
            )
        show_evaluation(answers, as_json=as_json)


def _asked(prompt: str) -> str:
    if prompt != "-":
        return prompt[:LONGEST_PROMPT]
    if sys.stdin.isatty():
        click.echo("Enter the request, then press Ctrl-D:", err=True)
    return sys.stdin.buffer.read(4 * LONGEST_PROMPT).decode("utf-8", "replace")[:LONGEST_PROMPT]


def _index(repository: str, at: str | None, methods: Sequence[str]) -> Index:
    """The index from the cache, or a new one; says what takes long."""
    from trialfleet_targets.cache import claim_cache
    from trialfleet_targets.index import index_at

    with show_progress("reading the repository") as report:
        return index_at(repository, at, cache=claim_cache(), methods=methods, say=_say, report=report)


def _say(words: str) -> None:
    click.echo(f"trialfleet: {words}", err=True)


@contextmanager
def _operator_errors() -> Generator[None]:
    """Turn errors that the operator can fix into exit code 2 with a hint."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise TargetsCommandError(
            "targets: its parsers are not installed\n  fix: install trialfleet again, with its dependencies"
        )
    try:
        yield
    except TargetsError as error:
        raise TargetsCommandError(f"{error}\n  fix: {error.hint}" if error.hint else str(error)) from None
