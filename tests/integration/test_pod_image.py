"""What an image brings: baked environments, a supervisor that keeps its secrets, a probe."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.attempts import LOCK, Lab
from tests.support.local_pod import SCRIPT, bake
from tests.support.waiting import wait_until
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import find_interpreter
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import KUBELET_BYTES
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.probe import probe_grants
from trialfleet_repository.environments import environment
from trialfleet_runner.pod.canary import reached, verdict
from trialfleet_runner.pod_report import CanaryAddress, PodProbeReport
from trialfleet_sandbox import syscall_filter
from trialfleet_sandbox.gate import Gate
from trialfleet_sandbox.supervised import SUPERVISOR

NOBODY = 65532


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def image(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bake(lab, tmp_path_factory.mktemp("baked"))


# --- environments -------------------------------------------------------------------------------------------


def test_a_baked_environment_runs_and_holds_what_the_lock_names(lab: Lab, image: Path) -> None:
    ref = lab.planned.order.environment
    (folder,) = image.iterdir()
    assert folder.name == environment.recipe(ref)[:32]
    asked = [folder / "bin/python", "-c", "import pytest; print(pytest.__version__)"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert f"pytest=={version}" in LOCK.read_text()
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*.py")}
    assert all(mode & 0o444 == 0o444 and not mode & 0o222 for mode in modes)


def test_baking_again_is_done_already(lab: Lab, image: Path) -> None:
    (before,) = image.iterdir()
    made = before.stat().st_mtime_ns
    bake(lab, image.parent)
    assert [path.stat().st_mtime_ns for path in image.iterdir()] == [made]


def test_what_the_image_lacks_or_somebody_changed_is_refused(
    lab: Lab, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = lab.planned.order.environment
    monkeypatch.setenv("TRIALFLEET_BAKED", str(image))
    assert environment.baked(ref).parent == image
    other = ref.model_copy(update={"setup": (("true",),)})
    with pytest.raises(OperatorError, match="trialfleet image build"):
        environment.baked(other)
    shutil.copytree(image, tmp_path / "copy", symlinks=True)  # as a layer: other inodes, other times
    monkeypatch.setenv("TRIALFLEET_BAKED", str(tmp_path / "copy"))
    with pytest.raises(OperatorError):
        environment.baked(ref)
    monkeypatch.delenv("TRIALFLEET_BAKED")
    with pytest.raises(OperatorError):
        environment.baked(ref)


@pytest.mark.needs("root")
def test_what_nobody_here_can_write_is_what_was_baked(
    lab: Lab, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = lab.planned.order.environment
    shutil.copytree(image, tmp_path / "layer", symlinks=True)
    (tmp_path / "root").mkdir()
    mounted = str(tmp_path / "root")
    subprocess.run(["mount", "--bind", str(tmp_path / "layer"), mounted], check=True)
    try:
        monkeypatch.setenv("TRIALFLEET_BAKED", mounted)
        with pytest.raises(OperatorError):
            environment.baked(ref)
        subprocess.run(["mount", "-o", "remount,bind,ro", mounted], check=True)
        assert environment.unchanged(environment.baked(ref))
    finally:
        subprocess.run(["umount", mounted], check=True)


# --- the supervisor -----------------------------------------------------------------------------------------


@pytest.fixture
def pod_folder() -> Iterator[Path]:
    """Open to another user, as is the copy of the two scripts in it."""
    with tempfile.TemporaryDirectory(prefix="pod-", dir="/var/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        for script in (SCRIPT, SUPERVISOR, Path(syscall_filter.__file__), Path(syscall_filter.TABLE)):
            shutil.copy(script, root)
        yield root


def executed(pid: int) -> bool:
    """In the midst of it a process has no environment yet, and nobody but root may look."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() != b""


@pytest.mark.needs("root")
def test_no_process_of_its_user_reads_a_supervisor(pod_folder: Path) -> None:
    python = str(find_interpreter(("3.11", "3.12", "3.13"), for_other_uid=True).path)
    env = {"TRIALFLEET_ROOT": str(pod_folder), "PLANTED": "secret"}
    guarded = [python, "-I", "-S", str(pod_folder / SCRIPT.name), "agent"]
    gate = Gate(pod_folder / "agent-gate")
    with (
        subprocess.Popen(guarded, user=NOBODY, env=env) as supervisor,
        subprocess.Popen(["sleep", "250"], user=NOBODY, env=env) as open_one,
    ):
        try:
            wait_until(lambda: executed(supervisor.pid) and executed(open_one.pid), within_s=60)
            wait_until(lambda: Path(f"/proc/{supervisor.pid}/environ").stat().st_uid == 0, within_s=60)
            seen = {
                process.pid: subprocess.run(
                    ["cat", f"/proc/{process.pid}/environ"], user=NOBODY, capture_output=True, check=False
                ).stdout
                for process in (supervisor, open_one)
            }
            assert seen[supervisor.pid] == b""
            assert b"PLANTED=secret" in seen[open_one.pid]  # the control
        finally:
            gate.close()
            open_one.kill()


def test_a_supervisor_without_its_table_never_takes_a_job(pod_folder: Path) -> None:
    """It would run the agent without a filter, or end as if the agent had taken too much memory."""
    (pod_folder / Path(syscall_filter.TABLE).name).unlink()
    argv = [sys.executable, "-I", "-S", str(pod_folder / SCRIPT.name), "agent"]
    done = subprocess.run(argv, env={"TRIALFLEET_ROOT": str(pod_folder)}, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"system_calls.tsv" in done.stderr


# --- the probe ----------------------------------------------------------------------------------------------


def probed(tmp_path: Path, **env: str) -> tuple[PodProbeReport, PodProbeReport]:
    """What it prints, and what it leaves for the kubelet."""
    log = tmp_path / "termination-log"
    told = {"PATH": os.environ["PATH"], "TRIALFLEET_TERMINATION_LOG": str(log), **env}
    argv = [sys.executable, "-m", "trialfleet_runner.pod", "probe"]
    ran = subprocess.run(argv, env=told, capture_output=True, check=True)
    (line,) = ran.stdout.splitlines()
    assert log.stat().st_size <= KUBELET_BYTES
    return PodProbeReport.model_validate_json(line), PodProbeReport.model_validate_json(log.read_bytes())


def test_a_probe_tells_what_the_image_is(lab: Lab, image: Path, tmp_path: Path) -> None:
    agent = AgentSpec(kind="search")
    report, short = probed(
        tmp_path, TRIALFLEET_BAKED=str(image), TRIALFLEET_PROBE_AGENTS=f"[{agent.model_dump_json()}]"
    )
    assert report == short
    ref = lab.planned.order.environment
    assert list(report.baked) == [environment.recipe(ref)[:32]]
    assert report.baked[environment.recipe(ref)[:32]].startswith(ref.python + ".")
    assert [(one.identity and one.identity.kind, one.error) for one in report.agents] == [("search", None)]
    assert report.versions["trialfleet"]
    assert (report.store, report.network) == ((), None)


def test_a_probe_tells_that_an_agent_is_missing(tmp_path: Path) -> None:
    agent = AgentSpec(kind="claude-code", version="0.0.1", model="m")
    report, _ = probed(
        tmp_path, TRIALFLEET_PROBE_AGENTS=f"[{agent.model_dump_json()}]", TRIALFLEET_CLAUDE="/nonexistent"
    )
    (found,) = report.agents
    assert found.identity is None
    assert "the agent claude-code is not on this machine" in str(found.error)


def test_a_probe_asks_the_store_through_grants(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    given = tmp_path / "grants.json"
    given.write_text(probe_grants(DirectoryStore(tmp_path / "store"), ".probe/x").model_dump_json())
    report, _ = probed(tmp_path, TRIALFLEET_GRANTS_URL=given.as_uri())
    assert [check.holds for check in report.store] == [True] * 3
    missing, _ = probed(tmp_path, TRIALFLEET_GRANTS_URL=(tmp_path / "none").as_uri())
    assert missing.store_error is not None
    assert missing.store == ()


def test_a_canary_that_connects_sings(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen: a port that was let go is soon somebody else's
        closed = f"127.0.0.1:{silent.getsockname()[1]}"
        answering = f"127.0.0.1:{listening.getsockname()[1]}"
        report, _ = probed(tmp_path, TRIALFLEET_CANARY=f"{closed}, {answering} no.such.name.invalid:80")
        cut, _ = probed(tmp_path, TRIALFLEET_CANARY=closed)
        nothing, _ = probed(tmp_path, TRIALFLEET_CANARY="no.such.name.invalid:80")
    assert {one.address: one.answer for one in report.canary} == {
        closed: "refused",
        answering: "connected",
        "no.such.name.invalid:80": "unresolved",
    }
    assert (report.network, cut.network, nothing.network) == ("unenforced", "enforced", None)


def test_a_canary_that_is_cut_off_late_waits_for_it() -> None:
    """The address answers once, and never again."""
    shared = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    with shared as listening, socket.socket() as silent, ThreadPoolExecutor(1) as pool:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        silent.bind(listening.getsockname())  # keeps the port, so that nobody else answers there
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        once = pool.submit(lambda: (listening.accept()[0].close(), listening.close()))
        canary = reached((address,), patience_s=60)
        once.result()
    assert canary == (CanaryAddress(address=address, answer="refused", at_first=True),)
    assert verdict(canary) == "enforced"


def test_a_canary_that_is_never_cut_off_gives_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        report, _ = probed(tmp_path, TRIALFLEET_CANARY=address, TRIALFLEET_CANARY_S="1")
    assert report.canary == (CanaryAddress(address=address, answer="connected"),)
    assert report.network == "unenforced"


def test_a_report_of_any_length_fits(tmp_path: Path) -> None:
    for n in range(200):
        (tmp_path / "baked" / f"{n:032d}").mkdir(parents=True)
        (tmp_path / "baked" / f"{n:032d}" / "pyvenv.cfg").write_text("version_info = 3.11.7\n")
    report, short = probed(tmp_path, TRIALFLEET_BAKED=str(tmp_path / "baked"))
    assert len(report.baked) == 200
    assert short == report.model_copy(update={"baked": {}})
