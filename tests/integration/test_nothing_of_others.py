"""Every command, with every path variable and path option pointing at a folder full of somebody's files."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from tests.support.git_repositories import shop
from tests.support.package_index import with_pytest
from tests.support.somebodys_files import Facts, differences, fill, look_at
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.owned_folder import Purpose, owned_path
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_repository import cache
from trialfleet_runner.cli import root
from trialfleet_targets.errors import TargetsError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runner_image", "controller", "analysis", "tasks")
# Variables that name a folder or file of the user. A new variable fails until it is in one of the two.
PATHS = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TRIALFLEET_SCRATCH", "TRIALFLEET_CACHE", "TRIALFLEET_BAKED",
         "TRIALFLEET_ROOT", "PYENV_ROOT")  # fmt: skip
NO_PATHS = frozenset(
    [
        "CANARY",
        "CANARY_S",
        "FORBIDDEN",
        "FORBIDDEN_S",
        "HOST_IP",
        "KUBELET",
        "CRASH_AT",
        "GATEWAY_TOKEN",
        "GATE_WAIT_S",
        "GRANTS_URL",
        "IMAGE",
        "ISOLATION",
        "KEEP_SCRATCH",
        "KEYS",
        "LAST_WORDS",
        "LOG",
        "MAX_TURNS",
        "MODEL",
        "NETWORK",
        "NODE",
        "PARENT_PID",
        "POD_UID",
        "PROBE_AGENTS",
        "PROMPT",
        "RAY_FOLDER",
        "S3_PATH_STYLE",
        "PROGRAM",
        "SEED",
        "STOP_S",
        "SYSTEM",
        "TERMINATION_LOG",
        "TIMEOUT_S",
        "WORKSPACE",
    ]
)
PATH_METAVARS = ("URL", "DIR", "FILE", "URL=DIR")
NAME = "shop"
EXPECTED = (SystemExit, OperatorError, StoreError, TargetsError, click.ClickException)

# What makes each command do its work; `{campaign}` is a finished campaign in `{store}`.
ARGUMENTS = {
    "init": ("{repository}",),
    "validate": ("{task}", "--repeats", "1"),
    "tasks mine": ("{repository}", "--commits", "1", "--minutes", "0.01", "--no-sandbox"),
    "plan": ("{file}",),
    "run": ("{file}", "--no-report"),
    "compare": ("HEAD~1..HEAD",),
    "submit": ("{file}", "--controller-image", "x"),
    "status": ("{campaign}",),
    "show": ("{campaign}", "t/none/0"),
    "logs": ("{campaign}", "t/none/0"),
    "cancel": ("{campaign}",),
    "resume": ("{campaign}", "--no-report"),
    "pull": ("{campaign}", "{new}"),
    "gc": ("{campaign}",),
    "prepull": ("{campaign}",),
    "image build": ("--tag", "x", "--builder", "none", "--out", "{new}"),
    "context build": ("{task}", "--kind", "flat", "--agent", "nop", "--out", "{new}"),
    "targets evaluate": ("{repository}", "--commits", "1"),
    "targets index": ("{repository}",),
    "targets predict": ("{repository}", "fix the total"),
    "power": ("{file}", "--simulations", "100"),
    "report": ("{campaign}", "--out", "{new}"),
    "figures": ("{campaign}", "--out", "{new}"),
    "view": ("{campaign}", "--bundle", "{new}"),
    "combine": ("{campaign}", "{campaign}", "--out", "{new}"),
    "side-by-side": ("{campaign}", "{campaign}"),
    "tables": ("{campaign}", "--out", "{new}"),
    "agents check": ("claude-code",),
    "agents list": (),
    "doctor": (),
    "completion show": ("--shell", "bash"),
    "completion install": ("--shell", "bash"),
    "examples list": (),
    "examples copy": ("shop", "{new}"),
    "k8s manifests": ("--out", "{new}"),
}
# Each is others of these commands, or a script that has tests of its own.
COMPOSED = {"demo", "kind up", "kind down"}
GC = (("--cache",), ("--cache", "--yes"), ("--results", "--yes"),
      ("--store", "{somebody}", "--older-than", "0", "--yes"),
      ("--store", "{somebody}", "--contexts", "--older-than", "1", "--yes"))  # fmt: skip


def leaves(group: click.Group = root, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = f"{above} {name}".strip()
        if isinstance(command, click.Group):
            yield from leaves(command, path)
        elif path not in COMPOSED:
            yield path, command


def path_options(command: click.Command) -> Iterator[str]:
    for each in command.params:
        if isinstance(each, click.Option) and (isinstance(each.type, click.Path) or each.metavar in PATH_METAVARS):
            yield each.opts[0]


CASES = [(path, option) for path, command in leaves() for option in (None, *path_options(command))]


def test_the_tables_name_every_command_and_variable() -> None:
    assert ARGUMENTS.keys() == dict(leaves()).keys()
    sources = [path.read_text() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'"TRIALFLEET_([A-Z0-9_]+)"', source)}
    paths = {name.removeprefix("TRIALFLEET_") for name in PATHS}
    assert named - paths == NO_PATHS, "say whether the variable names a path of the user"


@dataclass(frozen=True)
class Site:
    """A folder with a finished campaign in a store, and what is somebody's in the folders of the variables."""

    folder: Path
    theirs: Facts


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A validated task, a finished campaign, a repository; every path variable names a folder of somebody."""
    folder = tmp_path_factory.mktemp("site")
    index = with_pytest(tmp_path_factory.mktemp("index"))
    with pytest.MonkeyPatch.context() as patched:
        theirs: Facts = {}
        for name in PATHS:
            patched.setenv(name, str(fill(folder / "variables" / name)))
            theirs |= look_at(folder / "variables" / name)
        patched.setenv("PIP_FIND_LINKS", str(index.folder))
        patched.setenv("PIP_INDEX_URL", (folder / "nothing").as_uri())
        patched.delenv("TRIALFLEET_BAKED")
        patched.chdir(shop(folder / "repository").folder)
        (folder / "lock.txt").write_text(index.lock("pytest", "pluggy", "iniconfig", "packaging", "pygments"))
        for tree, code in (("before", "def total(): return 1\n"), ("after", "def total(): return 2\n")):
            (folder / tree).mkdir()
            (folder / tree / "price.py").write_text(code)
        (folder / "after/test_price.py").write_text(
            "from price import total\n\ndef test_it():\n    assert total() == 2\n\n"
            "def test_other():\n    assert total()\n"
        )
        python = "{}.{}".format(*sys.version_info[:2])
        source = {"kind": "path", "pre_fix": "before", "fixed": "after"}
        task = {"id": "t", "source": source, "prompt_source": "failing_test", "test_file": "test_price.py",
                "status": "unvalidated"}  # fmt: skip
        environment = {"python": [python], "lock": "lock.txt"}
        (folder / "task.yaml").write_text(yaml.safe_dump({"repo": {"environment": environment}, "tasks": [task]}))
        limits = {"parallel": 2, "memory": "1Gi", "disk": "256Mi"}
        spec = {"campaign": NAME, "seed": 3, "tasks": ["task.yaml"], "conditions": ["none"], "reps": 1,
                "agent": {"kind": "oracle"}, "limits": limits, "store": str(folder / "store")}  # fmt: skip
        (folder / "campaign.yaml").write_text(yaml.safe_dump(spec))
        for words in (
            ("validate", "{task}", "--write", "--repeats", "1"),
            ("run", "{file}", "--no-report", "--no-ray"),
        ):
            ended = CliRunner().invoke(root, [word.format(**places(folder)) for word in words])
            assert ended.exit_code == 0, ended.output
        yield Site(folder, theirs)


def places(site: Path) -> dict[str, str]:
    return {
        "repository": str(site / "repository"),
        "task": str(site / "task.yaml"),
        "file": str(site / "campaign.yaml"),
        "campaign": str(site / "store" / NAME),
    }


def invoke(site: Site, path: str, *words: str, tmp_path: Path, links: bool = True) -> str:
    """Call the command on a copy of the store, and look at what is somebody's: by a variable and as `somebody`."""
    somebody = fill(tmp_path / "somebody", links=links)
    theirs = look_at(somebody)
    shutil.copytree(site.folder / "store", tmp_path / "store")
    shutil.copytree(site.folder / "store" / NAME, somebody / NAME)  # a store may lie in a folder of somebody
    named = places(site.folder) | {"campaign": str(tmp_path / "store" / NAME), "somebody": str(somebody)}
    argv = [word.format(**named, new=tmp_path / "new") for word in (*path.split(), *words)]
    ended = CliRunner().invoke(root, argv)
    if ended.exception is not None and not isinstance(ended.exception, EXPECTED):
        raise ended.exception
    assert differences(theirs | site.theirs) == [], argv
    return f"{ended.output}{ended.exception or ''}"


KINDS: tuple[Purpose, ...] = ("scratch", "cache")


@pytest.mark.parametrize(("path", "option"), CASES)
def test_no_file_of_somebody_differs(site: Site, tmp_path: Path, path: str, option: str | None) -> None:
    words = list(ARGUMENTS[path])
    if option is not None:
        value = "https://example.org/x={somebody}" if option == "--mirror" else "{somebody}"
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    if option == "--store":
        words = [word.replace("{campaign}", NAME) for word in words]
    invoke(site, path, *words, tmp_path=tmp_path)


@pytest.mark.parametrize("options", GC)
def test_no_option_of_gc_removes_what_is_somebodys(site: Site, tmp_path: Path, options: tuple[str, ...]) -> None:
    words = options if "--store" in options else ("{campaign}", *options)
    output = invoke(site, "gc", *words, tmp_path=tmp_path, links=False)  # a store with links is not listed
    assert not (tmp_path / "somebody" / NAME).exists() or "--older-than 0" not in " ".join(options)
    cache = owned_path(site.folder / "variables/TRIALFLEET_CACHE", "cache")
    if options == ("--cache",):
        assert f"would remove {cache / 'environments'}" in output
        assert "nothing was removed: pass --yes" in output
        assert (cache / "environments").exists()
    if options == ("--cache", "--yes"):
        assert os.listdir(cache) == [".trialfleet-folder"]  # noqa: PTH208


# Arguments that are written to; the table above gives them a new folder.
WRITTEN = {
    "pull": ("{campaign}", "{somebody}"),
    "examples copy": ("shop", "{somebody}"),
}


@pytest.mark.parametrize("path", WRITTEN)
def test_no_argument_that_is_written_takes_what_is_somebodys(site: Site, tmp_path: Path, path: str) -> None:
    invoke(site, path, *WRITTEN[path], tmp_path=tmp_path)


class _NotRoot:
    """The module `os` of a user whose cache is not root's."""

    geteuid = staticmethod(lambda: 1000)

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


# Each by itself: variables hide one another, and root has a cache of its own.
HIDDEN_BY = {
    "TRIALFLEET_CACHE": (),
    "XDG_CACHE_HOME": ("TRIALFLEET_CACHE",),
    "HOME": ("TRIALFLEET_CACHE", "XDG_CACHE_HOME"),
    "TRIALFLEET_SCRATCH": (),
    "TMPDIR": ("TRIALFLEET_SCRATCH",),
    "TRIALFLEET_BAKED": (),
    "UV_CACHE_DIR": (),
    "XDG_CONFIG_HOME": (),
    "CARGO_HOME": (),
    "KUBECONFIG": (),
}


CLEARING = (("gc",), ("gc", "--cache", "--yes"), ("targets", "index", "{repository}"))
RUN = ("run", "{file}", "--no-report", "--no-ray")
RUN_USES = ("TRIALFLEET_CACHE", "HOME", "TRIALFLEET_SCRATCH", "TMPDIR", "TRIALFLEET_BAKED")


@pytest.mark.parametrize(
    ("variable", "words"),
    [(name, words) for name in HIDDEN_BY for words in (*CLEARING, *((RUN,) if name in RUN_USES else ()))],
)
def test_no_variable_that_decides_alone_gives_away_what_is_somebodys(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(cache, "os", _NotRoot())
    monkeypatch.setattr(tempfile, "tempdir", None)
    for hiding in HIDDEN_BY[variable]:
        monkeypatch.delenv(hiding, raising=False)
    given = fill(tmp_path / "given")
    before = look_at(given)
    monkeypatch.setenv(variable, str(given))
    invoke(site, words[0], *words[1:], tmp_path=tmp_path)
    assert differences(before) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words", [("gc",), ("gc", "--cache", "--yes"), ("run", "{file}"), ("targets", "index", "{repository}")]
)
def test_a_folder_named_like_ours_is_refused_and_named(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Purpose, words: tuple[str, ...]
) -> None:
    given = tmp_path / "given"
    fill(given, names=(owned_path(given, kind).name,))
    monkeypatch.setenv(f"TRIALFLEET_{kind.upper()}", str(given))
    before = look_at(given)
    output = invoke(site, words[0], *words[1:], tmp_path=tmp_path)
    assert differences(before) == []
    if kind == "cache" or words[0] in ("gc", "run"):
        assert f"`rm -r {owned_path(given, kind)}`" in output.replace("\n", " ")
