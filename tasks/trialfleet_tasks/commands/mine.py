"""`trialfleet tasks mine`."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import click
from rich.text import Text

from trialfleet_git.view import GitRepository
from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.display_text import one_line, printable_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.screen import Screen
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.uses import EnvironmentRoom
from trialfleet_repository.languages import LANGUAGES, PYTHON
from trialfleet_runner.exposure import refuse_folders
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.commands.output_folder import refuse_links_in, refuse_links_to
from trialfleet_tasks.commands.own_campaign import OWN
from trialfleet_tasks.mining import yield_table
from trialfleet_tasks.mining.choose_call import choose_python_call, describe_calls
from trialfleet_tasks.mining.environments import MinedEnvironments, ToolEnvironments
from trialfleet_tasks.mining.examine import Miner, PromptSource
from trialfleet_tasks.mining.findings import EXAMINED, RejectionReason
from trialfleet_tasks.mining.history import CandidateCommit, CandidateRules, open_repository, read_commits
from trialfleet_tasks.mining.issues import Issues, read_issues
from trialfleet_tasks.mining.mine import (
    IN_A_ROW,
    CandidateCommits,
    MiningEnd,
    MiningLimits,
    MiningProgress,
    candidates,
    open_candidates,
    run,
)
from trialfleet_tasks.mining.missing_programs import count_missing, drop_missing_programs
from trialfleet_tasks.mining.node_lock import NodeLocks
from trialfleet_tasks.mining.probe import PROBE_S, choose_probed, describe_probe, probe_repository
from trialfleet_tasks.mining.python_environment import PythonEnvironments
from trialfleet_tasks.mining.state import MiningState
from trialfleet_tasks.mining.task_file import refuse_foreign, task_file
from trialfleet_tasks.project_home import find_home

NAME = "mined.yaml"
LOCKS = "locks"
STATE = ".mining"


@click.group("tasks")
def tasks() -> None:
    """Make tasks of a repository's own history."""


@tasks.command("mine")
@click.argument("repository", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the task file, the locks and what is known so far.  [default: tasks/ in the "
    "nearest folder trialfleet/, at REPOSITORY or above, else in that of its root]",
)
@click.option("--want", default=30, show_default=True, type=click.IntRange(1), help="Stop when so many are kept.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Start no further commit after that time; a quarter of it later, those that still run are given up.",
)
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Commits examined at once.")
@click.option("--since", metavar="DATE", help="Only commits since then, as git reads dates.")
@click.option("--until", metavar="DATE", help="Only commits until then.")
@click.option(
    "--language",
    "languages",
    multiple=True,
    type=click.Choice(list(LANGUAGES), case_sensitive=False),
    help="Only commits in that language. Repeatable.  [default: those whose tests this machine can run]",
)
@click.option("--head", default="HEAD", show_default=True, metavar="COMMIT", help="The history to read.")
@click.option("--commits", default=3000, show_default=True, type=click.IntRange(1), help="How far back to read.")
@click.option("--paths", multiple=True, metavar="PATH", help="Only commits with source below PATH. Repeatable.")
@click.option("--grep", metavar="REGEX", help="Only commits whose message matches, in any letter case.")
@click.option(
    "--cutoff",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="When a model's training data ends (YYYY-MM-DD): say how many tasks are older.",
)
@click.option("--source-files", default=5, show_default=True, help="Most source files that a commit may change.")
@click.option("--source-lines", default=200, show_default=True, help="Most source lines that it may change.")
@click.option(
    "--prompt",
    "prompt_source",
    type=click.Choice(["failing_test", "commit_message", "issue"]),
    default="failing_test",
    show_default=True,
    help="What the tasks' prompts are made of.",
)
@click.option(
    "--issues",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Issues as `gh issue list --json number,title,body` prints them, for --prompt issue.",
)
@click.option(
    "--again",
    multiple=True,
    metavar="REASON",
    type=click.Choice([reason.value for reason in EXAMINED]),
    help="Examine commits once more that were rejected for REASON. Repeatable.",
)
@click.option("--wider", is_flag=True, help="Also keep tests of the changed packages as pass-to-pass.")
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1), help="Test runs per tree.")
@click.option("--timeout", "timeout_s", default=60.0, show_default=True, metavar="S", help="Limit of a test run.")
@click.option(
    "--build", is_flag=True, help="Permit building packages that have no wheel: their code runs in the sandbox."
)
@click.option(
    "--room",
    "room_gib",
    type=click.FloatRange(0, min_open=True),
    metavar="GIB",
    help="Environments may take so much more of the disk; beyond it, the longest unused ones are removed.  "
    "[default: half of what is free]",
)
@click.option("--no-sandbox", is_flag=True, help="Run the repository's tests where no sandbox isolates them.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def mine(repository: Path, out: Path | None, as_json: bool, no_sandbox: bool, **given: Any) -> None:
    """Make tasks of commits of REPOSITORY: their tests fail before the commit and pass after it.

    Commits that are known already are not examined again: call it again to go on.
    """
    started = time.monotonic()
    cutoff: date | None = given["cutoff"] and given["cutoff"].date()
    opened = open_repository(repository)
    git_dir = opened.git_dir
    folder = (out or find_home(opened, repository) / "tasks").absolute()
    root = repository.absolute() if opened.work_tree is None else opened.work_tree
    if folder.is_relative_to(root):
        refuse_links_to(folder, root)
    refuse_links_in(folder, root)
    refuse_foreign(folder / NAME)
    commits = read_commits(
        git_dir, head=given["head"], since=given["since"], until=given["until"], limit=given["commits"]
    )
    rules = CandidateRules(given["source_files"], given["source_lines"], given["paths"], given["grep"])
    here, obstacles = _environments(folder, build=given["build"])
    environments = _chosen(here, obstacles, given["languages"])
    lacking = [] if given["languages"] else [LANGUAGES[name] for name in obstacles]
    languages = [LANGUAGES[name] for name in environments]
    found = drop_missing_programs(candidates(commits, languages, rules, git_dir, lacking=lacking), git_dir)
    _say_what_is_lacking(found, obstacles)
    miner = _mine(root, opened, folder, environments, given, no_sandbox=no_sandbox)
    of_commit = {candidate.commit.sha: candidate.language.name for candidate in found.chosen}
    state = MiningState.load(folder / STATE / "findings.jsonl", _settings(given, environments), of_commit)
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    if not (folder / STATE / ".gitignore").exists():
        (folder / STATE / ".gitignore").write_text("*\n")
    order = [candidate.commit.sha for candidate in found.chosen]
    again = frozenset(map(RejectionReason, given["again"]))
    for line in describe_calls(choose_python_call(miner, open_candidates(found.chosen, state, again))):
        click.echo(f"trialfleet: {line}", err=True)
    _probe(miner, found.chosen, state, given)
    left = given["minutes"] and max(0.0, given["minutes"] - (time.monotonic() - started) / 60)
    limits = MiningLimits(given["want"], given["jobs"], left, again)
    with _ending(lambda: _write(miner, state, order)) as ending, _progress(state, order, limits.want) as progress:
        end = run(miner, found.chosen, state, limits, progress, ending.begin)
    examined = state.findings(order)
    minutes = (time.monotonic() - started) / 60
    if as_json:
        rows: dict[str, Any] = {"stages": dict(yield_table.stages(found, examined)), "minutes": round(minutes, 1)}
        if cutoff is not None:
            rows["cutoff"] = yield_table.by_cutoff(state.tasks(order), cutoff)
        findings = [finding.model_dump(mode="json") for finding in examined]
        click.echo(printable_json({**rows, "findings": findings}))
    else:
        _print(found, state, order, miner, minutes, cutoff, limits.want)
    _say_what_is_left(end, miner.room)
    _say_odd_pins(environments.get(PYTHON.name))
    if end.given_up:
        sys.stdout.flush()
        os._exit(CommandExit.INTERRUPTED if ending.begun else 0)  # what is under examination ends, too
    if ending.begun:
        raise click.exceptions.Exit(CommandExit.INTERRUPTED)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class _Ending:
    """`write` writes the tasks so far."""

    write: Callable[[], None]
    begun: bool = False

    def begin(self, running: int) -> None:
        """At the first signal."""
        self.begun = True
        self.write()
        for each in _SIGNALS:
            signal.signal(each, _end)
        click.echo(
            "trialfleet: interrupted; the same command goes on. "
            f"Commits that are still examined: {running} (Ctrl-C again ends at once)",
            err=True,
        )


def _end(*_: object) -> None:
    os._exit(CommandExit.INTERRUPTED)


@contextmanager
def _ending(write: Callable[[], None]) -> Generator[_Ending]:
    """At Ctrl-C and SIGTERM, what runs is finished; at a second one all ends at once. The tasks are written in any
    case."""
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield _Ending(write)
    finally:
        write()
        for each, handler in before.items():
            signal.signal(each, handler)


def _environments(folder: Path, *, build: bool) -> tuple[dict[str, MinedEnvironments], dict[str, OperatorError]]:
    """Of every language whose tests this machine can run, by the language's name; why it cannot run the others."""
    locks = NodeLocks(folder / LOCKS, Cache.default())
    tools = {
        language.name: ToolEnvironments(
            language,
            install_scripts=build and language.runs_scripts,
            locks=locks if language.lock else None,
        )
        for language in LANGUAGES.values()
        if language.preset is not None
    }
    tried = {name: environments.find_obstacle() for name, environments in tools.items()}
    obstacles = {name: obstacle for name, obstacle in tried.items() if obstacle is not None}
    usable = {name: environments for name, environments in tools.items() if name not in obstacles}
    return {PYTHON.name: PythonEnvironments(folder / LOCKS, build=build), **usable}, obstacles


def _chosen(
    environments: dict[str, MinedEnvironments], obstacles: Mapping[str, OperatorError], languages: tuple[str, ...]
) -> dict[str, MinedEnvironments]:
    missing = next((name for name in languages if name in obstacles), None)
    if missing is not None:
        raise OperatorError(
            f"tests in {missing} cannot be run: {obstacles[missing].message}",
            where="--language",
            hint="; or ".join(filter(None, (obstacles[missing].hint, f"choose from {', '.join(environments)}"))),
        )
    return {name: environments[name] for name in languages} if languages else environments


def _say_what_is_lacking(found: CandidateCommits, obstacles: Mapping[str, OperatorError]) -> None:
    """Why commits are left out whose tools this machine lacks."""
    rows = [row for row in found.rejected if row.outcome is RejectionReason.NO_TOOLCHAIN and not row.detail]
    for name, commits in Counter(row.language for row in rows).items():
        if name is not None:
            why = one_line(str(obstacles[name]))
            click.echo(f"trialfleet: {plural(commits, 'commit')} in {name} left out: {why}", err=True)
    unreadable = sum(row.outcome is RejectionReason.UNREADABLE for row in found.rejected)
    if unreadable:
        click.echo(
            f"trialfleet: {plural(unreadable, 'commit')} of {found.commits} left out: this clone lacks files that "
            "they change; fix: git fetch --refetch --no-filter",
            err=True,
        )
    for row, commits in count_missing(found).items():
        count = f"{plural(commits, 'commit')} in {row.language} left out"
        click.echo(f"trialfleet: {count}: {row.detail}; fix: {row.hint}", err=True)


def _probe(miner: Miner, chosen: Sequence[CandidateCommit], state: MiningState, given: Mapping[str, Any]) -> None:
    """Says what to expect where mining begins. It takes a quarter of `--minutes` at most."""
    probed = choose_probed(chosen, state)
    if probed is None:
        return
    limit_s = min(PROBE_S, 15 * given["minutes"]) if given["minutes"] else PROBE_S
    count = sum(candidate.language is probed.language for candidate in chosen)
    verdict = describe_probe(
        probe_repository(miner, probed, limit_s), candidates=count, repeats=given["repeats"], jobs=given["jobs"]
    )
    click.echo(f"trialfleet: {verdict}", err=True)


def _say_what_is_left(end: MiningEnd, room: EnvironmentRoom | None) -> None:
    """Commits whose examination was given up, languages that were left, and environments that were removed."""
    if room is not None and room.removed:
        gone = f"{plural(len(room.removed), 'environment')} ({sum(room.removed) / _GIB:.1f} GiB) removed"
        limit = f"to stay within --room {room.limit_bytes / _GIB:.1f}"
        click.echo(f"trialfleet: {gone} {limit}; what needs one builds it again", err=True)
    if end.given_up:
        count = plural(end.given_up, "commit")
        click.echo(f"trialfleet: the time is over; given up, to be examined by the next call: {count}", err=True)
    for language, finding in end.repeated.items():
        remedy = yield_table.remedy_of(finding)
        why = f"{finding.outcome}: {one_line(finding.detail)}" + (f"; fix: {remedy}" if remedy else "")
        count = plural(IN_A_ROW, "commit")
        click.echo(f"trialfleet: {count} in {language} in a row failed alike; no more began: {why}", err=True)


def _say_odd_pins(environments: MinedEnvironments | None) -> None:
    """Entries of locks that look like something else than a pin, which may be an attack."""
    odd = sorted(environments.odd_pins) if isinstance(environments, PythonEnvironments) else []
    if odd:
        named = "; ".join(one_line(entry, 120) for entry in odd[:_NAMED])
        more = f"; and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
        count = plural(len(odd), "entry")
        click.echo(
            f"trialfleet: {count} of locks were not used, for they have no valid name and version: {named}{more}; "
            "fix: read these locks; the packages are resolved as of the commit's month instead",
            err=True,
        )


def _mine(
    root: Path,
    repository: GitRepository,
    folder: Path,
    environments: Mapping[str, MinedEnvironments],
    given: dict[str, Any],
    *,
    no_sandbox: bool,
) -> Miner:
    sandbox = choose()
    if not sandbox.capabilities.maps_paths and not no_sandbox:
        raise OperatorError(
            "mining runs the repository's tests, and nothing here isolates them",
            where=sandbox.name,
            hint="install bubblewrap (apt-get install bubblewrap), or pass --no-sandbox for code that you trust",
        )
    refuse_folders(sandbox)
    cache = Cache.default()
    return Miner(
        git_dir=repository.git_dir,
        url=os.path.relpath(root, folder) if folder.is_relative_to(root) else str(root),
        file=folder / NAME,
        environments=environments,
        prompt_source=cast("PromptSource", given["prompt_source"]),
        issues=_issues(given["issues"], given["prompt_source"], repository),
        logs=folder / STATE / "logs",
        cache=cache,
        objects=Objects(cache.objects),
        sandbox=sandbox,
        repeats=given["repeats"],
        timeout_s=given["timeout_s"],
        wider=given["wider"],
        room=_room(cache, given["room_gib"]),
    )


_GIB = 2**30
_NAMED = 3  # odd entries in a message


def _room(cache: Cache, gib: float | None) -> EnvironmentRoom:
    free = shutil.disk_usage(cache.environments).free
    return EnvironmentRoom(cache, free // 2 if gib is None else int(gib * _GIB))


def _settings(given: dict[str, Any], environments: Mapping[str, MinedEnvironments]) -> Callable[[str], str]:
    """What a finding depends on besides the commit itself, by language: options, our version, the tools'."""
    facts = {name: given[name] for name in ("prompt_source", "repeats", "timeout_s", "build", "wider")}
    issues = given["issues"]
    facts |= {
        "issues": None if issues is None else sha256(issues.read_bytes()),
        "trialfleet": version("trialfleet"),
    }

    @functools.cache
    def digest_of(language: str) -> str:
        found = environments.get(language)
        return digest({**facts, "tools": None if found is None else dict(found.find_versions())})

    return digest_of


def _issues(file: Path | None, prompt_source: str, repository: GitRepository) -> Issues:
    if prompt_source != "issue":
        return Issues()
    if file is None:
        raise OperatorError(
            "--prompt issue needs the issues",
            where="--issues",
            hint="gh issue list --state all --limit 5000 --json number,title,body",
        )
    return read_issues(file, repository)


def _write(miner: Miner, state: MiningState, order: list[str]) -> None:
    state.refresh()  # two minings at once write the same file: neither may leave out what the other kept
    kept = state.tasks(order)
    if kept:
        own = miner.file.parent.parent / "contexts" / OWN  # `trialfleet init` writes it
        contexts = {OWN: f"../contexts/{OWN}"} if own.is_dir() else {}
        write_whole(miner.file, task_file(miner.url, kept, contexts).encode(), mode=0o644)


@contextmanager
def _progress(state: MiningState, order: list[str], want: int) -> Generator[MiningProgress]:
    """A live line on a terminal; otherwise a line for each commit that has been examined."""
    console = Screen(stderr=True)
    known = {finding.commit for finding in state.findings(order)}

    def numbers() -> str:
        findings = state.findings(order)
        kept = sum(finding.kept for finding in findings)
        return f"{kept} of {want} kept, {len(findings)} of {plural(len(order), 'candidate')} examined"

    def tell() -> None:
        for finding in state.findings(order):
            if finding.commit not in known:
                known.add(finding.commit)
                why = f": {one_line(finding.detail)}" if finding.detail else ""
                click.echo(f"{finding.commit[:12]} {finding.outcome}{why}", err=True)

    if not console.is_terminal:
        yield lambda _: tell()
        tell()
        return
    with console.status(numbers()) as status:
        yield lambda doing: status.update(
            Text(numbers() + "; " + ", ".join(f"{commit[:8]} {step}" for commit, step in doing.items()))
        )


def _print(
    found: CandidateCommits,
    state: MiningState,
    order: list[str],
    miner: Miner,
    minutes: float,
    cutoff: date | None,
    want: int,
) -> None:
    console = Screen(width=None if sys.stdout.isatty() else 180)
    examined = state.findings(order)
    for table in (
        *yield_table.tables(found, examined, miner.logs),
        yield_table.describe_lost_tests(state.tasks(order)),
    ):
        if table.row_count:
            console.print(table)
            console.print()
    each = sum(finding.seconds for finding in examined) / 60
    console.print(
        f"{minutes:.1f} minutes now; {each:.1f} minutes for all "
        f"{plural(len(examined), 'candidate')} examined so far"
    )
    temporary = sum(finding.temporary for finding in examined)
    if temporary:
        console.print(
            f"{plural(temporary, 'commit')} failed for a reason outside of the repository (no network, a busy "
            "machine, a missing program): the next call examines them again"
        )
    for line in yield_table.summarise_causes(examined):
        console.print(Text(line))
    kept = sum(finding.kept for finding in examined)
    if kept:
        dated = yield_table.age(state.tasks(order), cutoff)
        count = plural(kept, "task") if kept >= want else f"{kept:,} of the {plural(want, 'task')} wanted"
        console.print(Text(f"{count} in {miner.file}" + (f"; {dated}" if dated else "")))
    else:
        console.print(Text("no task was kept: the logs above say why"))
    for line in _next_commands(miner.file, kept, want, len(order) - len(examined)):
        console.print(Text(line))


def _next_commands(file: Path, kept: int, want: int, left: int) -> Iterator[str]:
    """What to call now. `left`: candidates that were not examined."""
    if kept < want and left:
        yield f"Next: the same command examines more of the {plural(left, 'candidate')} that are left"
    campaign = file.parent.parent / "campaign.yaml"  # `trialfleet init` writes it
    if kept and campaign.is_file():
        yield f"Next: trialfleet power {shlex.quote(os.path.relpath(campaign))}"
    elif kept:
        yield f"Next: trialfleet init, which writes a campaign for {shlex.quote(os.path.relpath(file))}"
