"""What hostile agents, full disks, lost stores and signals do to an attempt: a verdict, or the right loss."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.support.attempts import LIMITS, TRIAL, Lab, Left, shell
from tests.support.waiting import wait_until
from trialfleet_ledger.attempt_ends import TESTS_DEATHS
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass, Stop, Verdict
from trialfleet_ledger.removal import remove
from trialfleet_repository import workspace
from trialfleet_repository.cache import Cache, locked

SMALL = Limits(memory_bytes=2**30, disk_bytes=2**23, stop_grace_s=0.2)  # half of a small disk
DIG = "import os\nfor _ in range(400): os.mkdir('d' * 20); os.chdir('d' * 20)\n"
NUMBERS = count(1)

NOT_UTF8 = """f=$(printf 'a\\377'); touch "$f"; mkdir "d$f"; touch "d$f/x"; ln -s "$f" link; mkfifo "p$f" """

FORGED = (
    '{"turn": 1, "kind": "edit", "at_s": NaN, "path": "\\ud800"}',
    '{"turn": 1e400, "kind": "edit"}',
    '{"turn": 1%s, "kind": "read", "at_s": 1}' % ("0" * 400),
    '{"turn": 2, "kind": "read", "path": "\\ud800", "detail": "\\udfff", "tool": "\\ud800"}',
)

# Each is free to do so, and none may become a loss: it is the agent that did badly.
HOSTILE = {
    "names that are not UTF-8": NOT_UTF8,
    "pipes in the place of files": "mkfifo p; rm shop/pricing/rules.py; mkfifo shop/pricing/rules.py",
    "a folder deeper than a path may be": f'python -c "{DIG}"',
    "closed folders": "mkdir c && touch c/f && chmod 000 c; chmod 000 shop; chmod 000 .",
    "nothing left": "rm -rf ./* .[a-z]* $HOME/* $HOME/.[a-z]*",
    "another repository": "rm -rf .git; ln -s /etc .git; ln -s / shop/all; ln -sf /etc/passwd shop/__init__.py",
    "a hundred megabytes of talk": "head -c 100000000 /dev/zero | tr '\\0' x",
    "a hook log that is a link": "ln -s /etc/passwd $HOME/hook.jsonl; mkfifo $HOME/x",
    "a hook log that is a folder": "mkdir $HOME/hook.jsonl",
    "numbers that are none": "printf '%s\\n' " + " ".join(map(shlex.quote, FORGED)),
    "survivors": "(setsid sh -c 'while :; do echo late > shop/late; sleep 0.05; done' >/dev/null 2>&1 &) ; true",
    "its own name for the report": "mkdir -p $HOME/tmp $HOME/junit.xml; cp -r $HOME ../score 2>/dev/null; true",
}
# Where nothing but a subreaper stands between the agent and us, it may reach its whole scratch folder.
RECKLESS = {
    "the scoring folder is taken": "mkdir -p ../score/checkout/shop; ln -s /etc ../score/home",
    "the workspace itself is gone": 'rm -rf "$PWD"',
    "the whole scratch folder is gone": 'rm -rf "$(dirname "$PWD")"',
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("faults")
    root.chmod(0o755)
    return Lab(root)


def attempt(lab: Lab, script: str, *, env: Mapping[str, str] | None = None, limits: Limits = LIMITS) -> Left:
    return lab.run(lab.grants(shell(script), attempt=next(NUMBERS), limits=limits), env=env)


def loss_of(left: Left) -> Loss:
    assert left.end.loss is not None, left.end
    return left.end.loss


# Agents, or tests, that go on once `let_go` has found them.
WAITING = "touch here; while [ -e here ]; do sleep 0.05; done"
WAITING_TESTS = """cat > shop/pricing/rules.py <<'EOF'
import os, time
open("here", "w").close()
while os.path.exists("here"): time.sleep(0.05)
EOF
"""


def waiting(scratch: Path) -> Path:
    """What whoever waits has made, and waits to be without."""
    places = ("workspace", "score/checkout")
    found = wait_until(
        lambda: [path for place in places for path in scratch.glob(f"*/*/{place}/here")], within_s=150
    )
    return found[0]


def let_go(scratch: Path) -> None:
    waiting(scratch).unlink()


def record(lab: Lab, grants: Grants, name: str) -> Path:
    return lab.root / "store/lab/attempts" / TRIAL / str(grants.attempt) / name


# --- hostile agents -------------------------------------------------------------------------------------


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_an_agent_leaves_is_scored(lab: Lab, what: str) -> None:
    left = attempt(lab, HOSTILE[what])
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, Stop.FINISHED)
    assert lab.left_attempts() == []
    assert left.bundle.manifest.files  # opens, and is what the end says


@pytest.mark.parametrize("what", RECKLESS)
def test_an_agent_that_breaks_its_own_folders_halts_nothing(lab: Lab, what: str) -> None:
    left = attempt(lab, RECKLESS[what], env={"TRIALFLEET_ISOLATION": "subreaper"})
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.FAILED
    assert lab.left_attempts() == []


def test_what_cannot_travel_is_named(lab: Lab) -> None:
    left = attempt(lab, NOT_UTF8)
    assert left.patch is not None
    assert [words.partition(" ")[0] for words in left.patch.excluded] == ["pa\\udcff"]
    assert "b/link\nnew file mode 120000" in left.patch.diff  # only its target is no UTF-8


# --- a full disk ----------------------------------------------------------------------------------------


@contextmanager
def small_disk(lab: Lab, size: str) -> Generator[Path]:
    """A scratch root with room for `size`."""
    folder = lab.scratch.parent / f"small-{size}"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0711", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


@pytest.mark.needs("root")
@pytest.mark.parametrize("size", ["16k", "512k"])  # the copy does not fit; it does, and hardly anything else
def test_a_host_without_room_for_the_workspace_is_a_loss_before_the_agent(lab: Lab, size: str) -> None:
    with small_disk(lab, size) as folder:
        loss = loss_of(attempt(lab, "true", env={"TRIALFLEET_SCRATCH": str(folder)}))
    assert (loss.loss, loss.halt) == (LossClass.HOST_FULL, HaltScope.NONE)
    assert not loss.agent_started


@pytest.mark.needs("root")
def test_less_room_than_the_limit_promises_is_a_loss_before_the_agent(lab: Lab) -> None:
    with small_disk(lab, "16m") as folder:
        loss = loss_of(attempt(lab, "true", env={"TRIALFLEET_SCRATCH": str(folder)}))
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.HOST_FULL, HaltScope.NONE, False)
    assert "limits.disk" in loss.message


@pytest.mark.needs("root")
def test_an_agent_on_a_disk_that_others_filled_is_not_judged(lab: Lab) -> None:
    with small_disk(lab, "16m") as folder:
        grants = lab.grants(shell(f"{WAITING}; sleep 1"), attempt=next(NUMBERS), limits=SMALL)
        process = lab.start(grants, env={"TRIALFLEET_SCRATCH": str(folder)})
        here = waiting(folder)
        with suppress(OSError), (folder / "others").open("wb") as file:
            file.write(bytes(50_000_000))
        here.unlink()
        _, errors = process.communicate(timeout=120)
        loss = loss_of(Left(lab, grants.attempt, process.returncode, errors.decode()))
    assert (loss.loss, loss.halt) == (LossClass.HOST_FULL, HaltScope.NONE)
    assert (loss.agent_started, loss.patched) == (True, False)


@pytest.mark.needs("root")
def test_an_agent_that_fills_the_disk_beyond_its_limit_is_exhausted(lab: Lab) -> None:
    with small_disk(lab, "16m") as folder:
        env = {"TRIALFLEET_SCRATCH": str(folder)}
        left = attempt(lab, "head -c 50000000 /dev/zero > big", env=env, limits=SMALL)
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)


@contextmanager
def few_inodes(lab: Lab, count: int) -> Iterator[Path]:
    """A scratch root with room for `count` files and folders."""
    folder = lab.scratch.parent / f"inodes-{count}"
    folder.mkdir()
    options = f"size=64m,nr_inodes={count},mode=0711"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


FILL = """python3 -c 'import os
os.makedirs("{folder}", exist_ok=True)
try:
    for i in range(10**6): open("{folder}/%d" % i, "w").close()
except OSError as error: print(error)'
"""


@pytest.mark.needs("root", "bwrap")
def test_an_agent_that_takes_every_inode_is_exhausted(lab: Lab) -> None:
    with few_inodes(lab, 2000) as folder:
        env = {"TRIALFLEET_SCRATCH": str(folder)}
        left = attempt(lab, FILL.format(folder="n"), env=env, limits=SMALL)
        control = attempt(lab, "true", env=env, limits=SMALL)
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)
    assert control.end.scored is not None, "so few are enough"


@pytest.mark.needs("root", "bwrap")
def test_an_agent_whose_inodes_others_took_is_not_judged(lab: Lab) -> None:
    with few_inodes(lab, 2001) as folder:
        grants = lab.grants(shell(f"touch a b; {WAITING}; sleep 2"), attempt=next(NUMBERS), limits=SMALL)
        process = lab.start(grants, env={"TRIALFLEET_SCRATCH": str(folder)})
        here = waiting(folder)
        subprocess.run(["/bin/sh", "-c", FILL.format(folder=str(folder / "others"))], check=True)
        here.unlink()
        subprocess.run(["/bin/sh", "-c", FILL.format(folder=str(folder / "others"))], check=True)
        _, errors = process.communicate(timeout=120)
        loss = loss_of(Left(lab, grants.attempt, process.returncode, errors.decode()))
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.HOST_FULL, HaltScope.NONE, True)


@pytest.mark.needs("root")
def test_a_patch_whose_tests_fill_the_disk_beyond_their_limit_fails(lab: Lab) -> None:
    script = "echo \"open('big', 'wb').write(bytes(50_000_000))\" > shop/pricing/rules.py"
    with small_disk(lab, "16m") as folder:
        left = attempt(lab, script, env={"TRIALFLEET_SCRATCH": str(folder)}, limits=SMALL)
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.TESTS_EXHAUSTED


def test_a_patch_whose_tests_take_more_memory_than_their_limit_fails_at_once(lab: Lab) -> None:
    """Here the tests themselves are measured; a control within the limit passes."""
    limits = LIMITS.model_copy(update={"memory_bytes": 300 * 2**20})
    for mebibytes, verdict in ((600, Verdict.TESTS_EXHAUSTED), (50, Verdict.PASSED)):
        take = f"import time; taken = b'x' * ({mebibytes} << 20); time.sleep(2); del taken"
        script = f"sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py; echo \"{take}\" >> shop/pricing/rules.py"
        left = attempt(lab, script, limits=limits)
        assert left.end.scored is not None, left.end.loss
        assert (left.end.scored.verdict, left.end.scored.stop) == (verdict, Stop.FINISHED)


# --- a store that is gone -------------------------------------------------------------------------------


@pytest.mark.parametrize("gone_before", ["patch.json", "end.json"])
def test_a_store_that_is_lost_on_the_way_commits_nothing(lab: Lab, gone_before: str) -> None:
    script = WAITING if gone_before == "patch.json" else WAITING_TESTS
    grants = lab.grants(shell(script), attempt=next(NUMBERS), limits=LIMITS)
    process = lab.start(grants)
    wait_until(
        record(lab, grants, "start.json" if gone_before == "patch.json" else "patch.json").exists, within_s=150
    )
    folder = record(lab, grants, "start.json").parent
    folder.rename(folder.with_name(f"{folder.name}-aside"))
    folder.write_text("in the way")
    let_go(lab.scratch)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 75
    assert b"the store did not answer" in errors
    assert b"Traceback" not in errors
    assert not (folder.with_name(f"{folder.name}-aside") / "end.json").exists()
    assert lab.left_attempts() == []


@pytest.mark.needs("root")
def test_a_store_that_no_longer_lets_us_write_is_no_crash(lab: Lab) -> None:
    grants = lab.grants(shell(WAITING), attempt=next(NUMBERS), limits=LIMITS)
    process = lab.start(grants)
    wait_until(record(lab, grants, "start.json").exists, within_s=150)
    folder = record(lab, grants, "start.json").parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], check=True)
    try:
        let_go(lab.scratch)
        _, errors = process.communicate(timeout=120)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert process.returncode == RunnerExit.REFUSED  # which halts the campaign: only the operator can help
    assert b"Traceback" not in errors
    assert not (folder / "end.json").exists()


def test_an_isolation_that_this_machine_lacks_is_said_plainly(lab: Lab) -> None:
    grants = lab.grants(shell("true"), attempt=next(NUMBERS), limits=LIMITS)
    process = lab.start(grants, env={"TRIALFLEET_ISOLATION": "magic"})
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"unknown isolation 'magic'" in errors
    assert not record(lab, grants, "start.json").exists()


# --- signals and clocks before the agent ----------------------------------------------------------------


@dataclass(frozen=True)
class Blocked:
    """An attempt whose set-up waits, while `lock` is held, for a workspace that another process seems to build."""

    grants: Grants
    env: dict[str, str]
    lock: AbstractContextManager[None]


@pytest.fixture
def blocked(lab: Lab, tmp_path: Path) -> Iterator[Blocked]:
    cache = Cache(tmp_path / "cache")
    (claim_folder(cache.root, "cache").path / "environments").symlink_to(lab.cache.environments)
    limits = LIMITS.model_copy(update={"setup_timeout_s": 2})
    grants = lab.grants(shell("true"), attempt=next(NUMBERS), limits=limits)
    template = workspace.template_of(grants.task.workspace, None, cache=cache)
    yield Blocked(grants, {"TRIALFLEET_CACHE": str(cache.root)}, locked(template))
    shutil.rmtree(cache.root, ignore_errors=True)


def test_a_set_up_that_never_ends_is_a_loss_before_the_agent(lab: Lab, blocked: Blocked) -> None:
    with blocked.lock:
        loss = loss_of(lab.run(blocked.grants, env=blocked.env))
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.SETUP, HaltScope.NONE, False)
    assert loss.message == "the set-up took longer than 2 s"


def test_sigterm_during_the_set_up_is_a_loss_before_the_agent(lab: Lab, blocked: Blocked) -> None:
    limits = blocked.grants.limits.model_copy(update={"setup_timeout_s": 240})
    with blocked.lock:
        process = lab.start(blocked.grants.model_copy(update={"limits": limits}), env=blocked.env)
        wait_until(record(lab, blocked.grants, "start.json").exists, within_s=150)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)  # it waits for nothing
    loss = loss_of(Left(lab, blocked.grants.attempt, process.returncode, errors.decode()))
    assert process.returncode == 143
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, False, False)


# --- scoring again --------------------------------------------------------------------------------------


def test_scoring_again_needs_no_agent_and_adds_up_the_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    first = attempt(lab, "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py; sleep 1")
    missing = AgentSpec(kind="claude-code", version="0.0.1", model="claude-sonnet-4-6")
    grants = lab.grants(missing, attempt=next(NUMBERS), limits=LIMITS, score_patch_of=first.attempt)
    again = lab.run(grants, env={"TRIALFLEET_CLAUDE": "/nonexistent"})
    assert first.patch is not None
    assert again.end.scored is not None, again.end
    assert again.end.scored.verdict is Verdict.PASSED
    assert (again.end.scored.metrics.wall_s or 0) > (first.patch.metrics.wall_s or 0) > 1
    assert again.end.scored.metrics.agent_s == first.patch.metrics.agent_s


def test_a_loss_of_a_score_only_attempt_says_that_the_patch_is_there(lab: Lab, tmp_path: Path) -> None:
    first = attempt(lab, "true")
    grants = lab.grants(shell("true"), attempt=next(NUMBERS), score_patch_of=first.attempt)
    broken = grants.model_copy(update={"task": grants.task.model_copy(update={"pristine": "0" * 64})})
    loss = loss_of(lab.run(broken))
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.RUNNER, True, True)


# --- an environment that somebody changes ---------------------------------------------------------------


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A task with a cache of its own, for its environment will not be what it was."""
    root = tmp_path_factory.mktemp("tampered")
    root.chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRIALFLEET_CACHE", str(root / "cache"))
        patched.setenv("TRIALFLEET_ISOLATION", "subreaper")
        yield Lab(root)
    remove(root / "cache")


def test_an_environment_that_the_agent_changed_is_thrown_away(own_cache: Lab) -> None:
    change = "e=$(dirname $(dirname $(command -v python))); chmod u+w $e; touch $e/evil"
    left = attempt(own_cache, f"sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py; {change}")
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.PASSED
    assert any("changed its environment" in words for words in left.bundle.manifest.warnings)
    environments = own_cache.cache.environments
    (retired,) = (path.parent for path in environments.glob("*/evil"))  # others may be running in it
    assert (environments / f".{retired.name}.retired").exists()
    assert len([path for path in environments.iterdir() if path.is_dir()]) == 2


def test_tests_in_an_environment_that_changed_meanwhile_are_no_verdict(own_cache: Lab) -> None:
    code = "import os, sys; os.chmod(sys.prefix, 0o755); open(sys.prefix + '/evil', 'w').close()"
    left = attempt(own_cache, f'echo "{code}" >> shop/pricing/rules.py')
    loss = loss_of(left)
    assert (loss.loss, loss.halt, loss.patched) == (LossClass.SCORING, HaltScope.NONE, True)
    assert loss.by_patch, "so it is no fault of the harness, however often it happens"
    grants = own_cache.grants(shell("true"), attempt=next(NUMBERS), score_patch_of=left.attempt)
    third = own_cache.run(grants.model_copy(update={"tests_died": TESTS_DEATHS - 1}))
    assert third.end.scored is not None, third.end.loss
    assert third.end.scored.verdict is Verdict.TESTS_EXHAUSTED
    again = attempt(own_cache, "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py")
    assert again.end.scored is not None, again.end.loss
    assert again.end.scored.verdict is Verdict.PASSED


@dataclass
class BrokenWatchLab(Lab):
    """Its runner raises an error where it looks at the agent's edits."""

    breaks: str = ""

    @property
    def runner(self) -> tuple[str, ...]:
        script = self.root / "runner.py"
        module, _, function = self.breaks.partition(":")
        lines = [
            f"import runpy, {module} as watch",
            "def fail(*_, **__):",
            "    raise OSError(28, 'No space left on device')",
            f"watch.{function} = fail",
            "runpy.run_module('trialfleet_runner.attempt', run_name='__main__', alter_sys=True)",
        ]
        script.write_text("\n".join(lines))
        return (sys.executable, str(script))


@pytest.mark.parametrize(
    "breaks",
    [
        "trialfleet_repository.ignore_rules:git",  # when the agent has ended
        "trialfleet_repository.workspace_watch:WorkspaceWatch.find_unseen",  # when its patch is made
    ],
)
def test_a_watch_that_fails_costs_the_edits_and_no_verdict(tmp_path: Path, breaks: str) -> None:
    tmp_path.chmod(0o755)
    lab = BrokenWatchLab(tmp_path, breaks=breaks)
    left = lab.run(lab.grants(shell("sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py; touch new.py")))
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.metrics.edits) == (Verdict.PASSED, None)
    assert sum("No space left" in words for words in left.bundle.manifest.warnings) == 1, (
        left.bundle.manifest.warnings
    )
