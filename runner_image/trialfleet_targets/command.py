"""`trialfleet targets`: which files a request is about. Nothing slow is imported before it is needed."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, cast

import click

from trialfleet_targets.errors import TargetsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trialfleet_targets.evaluation.run import Answer
    from trialfleet_targets.index import Index
    from trialfleet_targets.methods import MethodName

METHODS = ("default", "clarte")
LONGEST_PROMPT = 2**20  # characters; what follows is not read
_NEEDED = ("tree_sitter", "numpy", "scipy", "networkx", "snowballstemmer")
_AT = click.option(
    "--at", metavar="COMMIT", help="A commit, branch or tag; nothing later is read. [default: HEAD]"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")


class Refused(click.ClickException):
    """What the operator can mend."""

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
    """Read REPOSITORY at one commit and keep what queries need.

    Needed by nobody: `predict` does it too. It shows what was read, and what could not be.
    """
    with _refusing():
        from trialfleet_targets.showing import describe

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
    """Name at most five files of REPOSITORY that PROMPT wants edited, or say why not.

    PROMPT is text; `-` reads it from standard input. Test files are never named. Piped, each file is a line:
    score, path, symbols with their lines, between tabs.
    """
    with _refusing():
        from trialfleet_targets.predict import predict
        from trialfleet_targets.showing import show

        asked = _asked(prompt)
        found = _index(repository, at, [method])
        show(found, predict(found, asked, method=cast("MethodName", method)), explain=explain, as_json=as_json)


@targets.command("evaluate")
@click.argument("repositories", nargs=-1, required=True, metavar="REPOSITORY…")
@click.option("--commits", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
              help="The newest N of each repository that can be asked for.")  # fmt: skip
@_JSON
def evaluate_command(repositories: Sequence[str], commits: int, as_json: bool) -> None:
    """Ask for commits that REPOSITORY… already has, and count how often the right file was named.

    A commit can be asked for when it modifies 1–5 source files in at most 200 lines and its message, of 5 words or
    more, names no path. Each is answered from its parent alone; tests are no targets. Besides the methods there
    are baselines on the same commits.
    """
    with _refusing():
        from trialfleet_targets.cache import cache_folder
        from trialfleet_targets.evaluation.run import evaluate
        from trialfleet_targets.repository import Repository, plain
        from trialfleet_targets.showing_evaluation import show_evaluation

        answers: list[Answer] = []
        opened = [Repository.open(name) for name in repositories]
        for one in opened:
            with _waiting(f"evaluating {one.name}"):
                found = list(evaluate(one, plain(str(one.folder)), most=commits, cache=cache_folder()))
            if not found:
                _say(f"{one.name}: no commit can be asked for")
            answers += found
        if not answers:
            raise TargetsError(
                "no commit of these repositories can be asked for",
                where=" ".join(one.name for one in opened),
                hint="name repositories with a history of small commits whose messages say what changed",
            )
        show_evaluation(answers, as_json=as_json)


def _asked(prompt: str) -> str:
    if prompt != "-":
        return prompt[:LONGEST_PROMPT]
    if sys.stdin.isatty():
        click.echo("the request, then Ctrl-D:", err=True)
    return sys.stdin.buffer.read(4 * LONGEST_PROMPT).decode("utf-8", "replace")[:LONGEST_PROMPT]


def _index(repository: str, at: str | None, methods: Sequence[str]) -> Index:
    """Found or built, with a word to a person who waits."""
    from trialfleet_targets.cache import cache_folder
    from trialfleet_targets.index import index_at

    with _waiting("reading the repository"):
        return index_at(repository, at, cache=cache_folder(), methods=methods, say=_say)


def _say(words: str) -> None:
    click.echo(f"trialfleet: {words}", err=True)


@contextmanager
def _waiting(words: str) -> Generator[None]:
    """Something that moves, on a terminal; it is wiped away at the end."""
    from rich.console import Console

    screen = Console(stderr=True, highlight=False, markup=False)
    if not screen.is_terminal:
        yield
        return
    with screen.status(words):
        yield


@contextmanager
def _refusing() -> Generator[None]:
    """What the operator can mend ends with 2 and the way out."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise Refused(
            "targets: what it reads code with is not installed\n  way out: pip install 'trialfleet[targets]'"
        )
    try:
        yield
    except TargetsError as error:
        raise Refused(f"{error}\n  way out: {error.hint}" if error.hint else str(error)) from None
