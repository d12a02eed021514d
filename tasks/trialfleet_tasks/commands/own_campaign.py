"""Writes a campaign about a repository's own context files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from trialfleet_agents.context_files import is_context_file
from trialfleet_deliveries.secret_files import SecretPlace, find_secrets
from trialfleet_git.view import GitRepository
from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.display_text import one_line, printable_json
from trialfleet_ledger.plurals import plural
from trialfleet_repository.git import GitError
from trialfleet_repository.trees import EntryKind, Tree, TreeEntry, changed, list_folder, read_entry
from trialfleet_tasks.commands.output_folder import refuse_links_to
from trialfleet_tasks.mining.history import open_repository, resolve
from trialfleet_tasks.mining.survey import RepositorySurvey, survey
from trialfleet_tasks.project_home import find_home
from trialfleet_tasks.sources.own_context import read_worktree_context

OWN = "own"
SHOWN = 5  # of a list, on a terminal
CAMPAIGN = """\
# Do this repository's own context files help a coding agent, and by how much?
# Written by `trialfleet init`; yours to change before the first run. A run freezes it.

campaign: {name}            # the campaign's name in its store
seed: 1                     # decides the order of trials; any number
tasks: [tasks/mined.yaml]   # bugs of this repository: `trialfleet tasks mine` writes the file

conditions:
  none: null                # no context files
  own: {{files: own}}         # contexts/own: copies of the repository's files

# The comparison that is tested; the report answers it first.
primary:
  treatment: own
  control: none
  estimand: these_tasks     # the answer is about these tasks. Others like them: tasks_like_these, without `stop`
  alpha: 0.05               # how often a difference may be found where there is none
  # Looked at after each of five equal parts. The campaign ends early once the answer is clear, or once a gain has
  # become unlikely (a chance below 5 %). Its p stays valid, because these looks are declared before it runs.
  stop: {{looks: 5, spending: power_2, futility: {{predictive: 0.05}}}}

reps: 5                     # of each task under each condition: `trialfleet power` says what they can detect

# Another agent: {{kind: command, ...}}. A dry run without a model: `trialfleet run` with `--agent search`.
agent: {{kind: claude-code, model: claude-sonnet-4-6, max_turns: 50, timeout_s: 1800}}
limits: {{cost_usd: {{trial: 2, campaign: 500}}}}   # a trial is stopped at its limit

store: runs                 # a folder beside this file, or s3://bucket/prefix
backend: local              # or kubernetes
"""
IGNORED = "runs/\ntasks/.mining/\n"


def write_campaign(repository: Path, *, commits: int, here: bool, as_json: bool) -> None:
    """What `trialfleet init` does, and what it prints."""
    repo = open_repository(repository)
    commit = resolve(repo.git_dir, "HEAD")
    found, context = survey(repo.git_dir, commit, commits=commits)
    folder = find_home(repo, repository, here=here)
    secrets = tuple(find_secrets(context))
    kept_apart = {place.path for place in secrets}
    texts = _files({path: entry for path, entry in context.items() if path not in kept_apart}, folder.parent.name)
    uncommitted = _find_uncommitted(repo, context)
    own = folder / "contexts" / OWN
    for place in (own, *((folder / name).parent for name in texts)):
        refuse_links_to(place, folder.parent)
    own.mkdir(parents=True, exist_ok=True)  # also without files: mined tasks name it
    written = [name for name, entry in texts.items() if _write(folder / name, entry)]
    kept = [name for name in texts if name not in written]
    stale = sorted(_stale_copies(folder, texts))
    if as_json:
        facts = found.model_dump(mode="json") | {"folder": str(folder), "written": written, "kept": kept}
        apart = {"stale": stale, "secrets": [place._asdict() for place in secrets], "uncommitted": uncommitted}
        click.echo(printable_json(facts | apart))
        return
    for line in _said(found, folder, written, [name for name in kept if name not in stale], stale):
        click.echo(line)
    for line in _warnings(folder, repo, secrets, uncommitted):
        click.echo(line, err=True)


def _find_uncommitted(repo: GitRepository, context: Tree) -> list[str]:
    """Context files of the working tree that are not as in the commit, and what both import."""
    if repo.work_tree is None:
        return []
    try:
        now = read_worktree_context(repo.work_tree).tree
    except (GitError, OSError):
        return []
    both = context.keys() & now.keys()
    return [path for path in changed(context, now) if path in both or is_context_file(path)]


def _warnings(
    folder: Path, repo: GitRepository, secrets: Sequence[SecretPlace], uncommitted: list[str]
) -> Iterator[str]:
    for place in secrets:
        said = f"{one_line(place.path)}, line {place.line}, looks like a secret ({place.reason})"
        yield f"warning: not copied: {said}: write a reference such as ${{NAME}} in its place"
    if uncommitted:
        top = os.path.relpath(repo.root, folder)
        yield (
            f"warning: contexts/{OWN} is of the last commit; not committed: {_listed(tuple(uncommitted))}. To "
            f"test them as they are now, write into campaign.yaml `contexts: {{now: {{worktree: {top}}}}}` and a "
            "condition `now: {files: now}`."
        )


def _stale_copies(folder: Path, texts: Tree) -> Iterator[str]:
    """Files of `contexts/own` that are not as in the repository: other text, another mode, or not there at all."""
    copies = folder / "contexts" / OWN
    for path, kind in list_folder(copies).items():
        name = f"contexts/{OWN}/{path}"
        if name not in texts or TreeEntry(read_entry(folder / name), kind) != texts[name]:
            yield name


def _files(context: Tree, name: str) -> dict[str, TreeEntry]:
    """By path below the folder."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "repository"
    campaign = CAMPAIGN.format(name=f"{safe[:80]}-context").encode()
    own = {f"contexts/{OWN}/{path}": entry for path, entry in context.items()}
    return {"campaign.yaml": TreeEntry(campaign), ".gitignore": TreeEntry(IGNORED.encode()), **own}


def _write(path: Path, entry: TreeEntry) -> bool:
    """Whether it was written: what is there already stays, also a link."""
    if path.exists() or path.is_symlink():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind is EntryKind.LINK:  # it stays in the folder: `survey` names those that do not
        path.symlink_to(os.fsdecode(entry.data))
    else:
        write_whole(path, entry.data, mode=0o755 if entry.kind is EntryKind.EXEC else 0o644)
    return True


def _history(found: RepositorySurvey) -> str:
    span = f", {found.first} to {found.last}" if found.first else ""
    each = ", ".join(f"{name} {number}" for name, number in found.candidates.items())
    number = f"{sum(found.candidates.values())} change source and tests{each and f' ({each})'}"
    return f"{plural(found.commits, 'commit')}{span}; {number}"


def _said(
    found: RepositorySurvey, folder: Path, written: list[str], kept: list[str], stale: list[str]
) -> Iterator[str]:
    languages = ", ".join(f"{name} {number}" for name, number in found.languages.items())
    yield f"files          {found.files}: {languages or 'no known language'}"
    yield from (f"{title:<15}{_listed(values)}" for title, values in _rows(found))
    yield f"history        {_history(found)}"
    yield ""
    yield f"wrote          {_listed(tuple(written))} in {one_line(str(folder))}"
    if kept:
        yield f"left as it is  {_listed(tuple(kept))}"
    if stale:
        yield f"left, differs  {_listed(tuple(stale))}: not as in the repository at {found.commit[:12]}"
        yield f"{'':15}To test the repository's files, remove contexts/{OWN} and call init again."
    yield ""
    yield from _next_steps(found, folder)


def _rows(found: RepositorySurvey) -> Iterator[tuple[str, tuple[str, ...]]]:
    rows = (
        ("packages", found.packages),
        ("locks", found.locks),
        ("test runners", found.test_runners),
        ("CI tests with", found.ci_test_commands),
        ("test call gets", found.call_given),
        ("test call lacks", found.call_lacks),
        ("context files", found.context_files),
        ("for other agents", found.other_instructions),
        ("no context", found.pages),  # named like one
        ("links outside", found.leaving_links),
    )
    optional = {"test call gets", "test call lacks", "no context", "links outside"}
    yield from ((title, values) for title, values in rows if values or title not in optional)


def _next_steps(found: RepositorySurvey, folder: Path) -> Iterator[str]:
    if not found.context_files:
        yield f"No context file was found: put the one to test into {folder / 'contexts' / OWN}."
    if not found.candidates:
        yield "No commit changes source and tests, so tasks have to be written: trialfleet validate --help"
    else:
        yield "Next:"
        yield "  trialfleet tasks mine --want 30"
    campaign = shlex.quote(os.path.relpath(folder / "campaign.yaml"))
    yield f"  trialfleet power {campaign}"
    yield f"  trialfleet run {campaign}"


def _listed(values: tuple[str, ...]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(one_line(value, 80) for value in values[:SHOWN]) + more if values else "none"
