"""A hostile program looks for what it must not have. Each probe has its positive control: without the defence
(the plain subreaper, or bubblewrap without that one option) the very same program finds it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from trialfleet_sandbox import bubblewrap
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.interpreter import program_mounts
from trialfleet_sandbox.protocol import Job, Mount, placed

PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Planted:
    """Secrets of a host that an attempt runs on. All of them hold `token`."""

    root: Path
    token: str
    outsider: subprocess.Popen[bytes]
    port: int

    @property
    def work(self) -> Path:
        return self.root / "scratch" / "this" / "workspace"

    def run(self, kind: str, script: str, *mounts: Mount) -> str:
        sandbox = choose(kind)
        given = (placed(sandbox, self.work, "/workspace", writable=True), *mounts)
        out = self.root / "out"
        out.unlink(missing_ok=True)
        sandbox.run(
            Job(
                argv=("bash", "-c", script),
                env={"PATH": PATH},
                cwd=given[0].target,
                mounts=given,
                stdout=out,
                stderr=self.root / "err",
                timeout_s=200,
                stdin=None,
            )
        )
        return out.read_text(errors="replace")


@pytest.fixture
def planted() -> Iterator[Planted]:
    token = secrets.token_hex(16)
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="trialfleet-test-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        root = Path(folder)
        root.chmod(0o755)
        for name in ("store/objects", "cache/git", "tasks", "scratch/other/workspace", "scratch/this/workspace"):
            (root / name).mkdir(parents=True)
        for name in ("store/objects/fix", "cache/git/pack", "tasks/task.yaml", "scratch/other/workspace/fix.py"):
            (root / name).write_text(f"{token}\n")
        for name in ("store", "cache", "tasks", "scratch/other"):
            (root / name).chmod(0o700)
        (root / "scratch/this/workspace/link").symlink_to(root / "store/objects/fix")
        threading.Thread(target=serve, args=(server, token.encode()), daemon=True).start()
        with subprocess.Popen(["sleep", "300"], env={"ANTHROPIC_API_KEY": token}) as outsider:
            yield Planted(root, token, outsider, server.getsockname()[1])
            outsider.kill()
            server.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept


def serve(server: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.sendall(answer)


def search_files(planted: Planted) -> str:
    return f"grep -rsh {planted.token[:8]} {planted.root.parent}/trialfleet-test-* ; cat {planted.root}/*/*/*"


def follow_link(planted: Planted) -> str:
    return "cat link ../../../store/objects/fix"


def read_environments(planted: Planted) -> str:
    return "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"


def connect_to_host(planted: Planted) -> str:
    return f"exec 3<>/dev/tcp/127.0.0.1/{planted.port} && cat <&3"


def kill_outsider(planted: Planted) -> str:
    """Says the token when the signal could be sent."""
    return f"kill {planted.outsider.pid} && echo {planted.token}; kill -0 -1 2>/dev/null"


PROBES = [search_files, follow_link, read_environments, connect_to_host, kill_outsider]
Probe = Callable[[Planted], str]
each_probe = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)


@pytest.mark.needs("bwrap")
@each_probe
def test_bubblewrap_gives_nothing_away(planted: Planted, probe: Probe) -> None:
    assert planted.token not in planted.run("bubblewrap", probe(planted))
    assert planted.outsider.poll() is None


@each_probe
def test_positive_control_without_isolation_everything_leaks(planted: Planted, probe: Probe) -> None:
    assert planted.token in planted.run("subreaper", probe(planted))


@pytest.mark.needs("root")
@each_probe
def test_another_uid_gives_away_the_network_alone(planted: Planted, probe: Probe) -> None:
    assert (planted.token in planted.run("uid", probe(planted))) == (probe is connect_to_host)
    assert planted.outsider.poll() is None


@pytest.mark.needs("bwrap")
def test_the_whole_visible_file_system_is_searched_in_vain(planted: Planted) -> None:
    """Every file that is not the system's own."""
    pruned = " ".join(f"-path {folder} -prune -o" for folder in ("/usr", "/proc", "/dev"))
    seen = planted.run("bubblewrap", f"find / {pruned} -type f -print | xargs cat")
    assert "agent:x:1000" in seen  # it did read files
    assert planted.token not in seen


@pytest.mark.needs("bwrap")
def test_only_the_systems_folders_are_visible(planted: Planted) -> None:
    names = set(planted.run("bubblewrap", "ls -A /; ls -A /home /root /etc/ssl /var /var/tmp 2>/dev/null").split())
    assert names & {"root", "work", "srv", "opt", "mnt", "private", planted.root.name} == set()


@pytest.mark.needs("bwrap")
def test_the_runners_environment_is_not_pid_ones(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, pid 1 is bubblewrap itself: what it was started with can be read."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", planted.token)
    probe = "cat /proc/1/environ /proc/1/cmdline /proc/2/environ"
    seen = planted.run("bubblewrap", probe)
    assert "bwrap" in seen
    assert planted.token not in seen
    assert str(planted.root) not in seen
    command = ["bwrap", "--unshare-all", *bubblewrap.system_binds(), "--proc", "/proc", "--", "bash", "-c", probe]
    control = subprocess.run(command, capture_output=True, check=True).stdout  # with our environment
    assert planted.token.encode() in control


@pytest.mark.needs("bwrap", "root")
def test_the_kernels_settings_are_read_only(planted: Planted) -> None:
    """Root outside is the owner of /proc/sys inside, whatever its user id and capabilities there."""
    probe = "for x in kernel/core_pattern vm/swappiness; do test -w /proc/sys/$x && echo open; done; true"
    assert planted.run("bubblewrap", probe) == ""
    command = ["bwrap", *("--unshare-all", "--unshare-user", "--uid", "1000"), *bubblewrap.system_binds()]
    control = subprocess.run([*command, "--proc", "/proc", "--", "bash", "-c", probe], capture_output=True)
    assert control.stdout == b"open\nopen\n"


@pytest.mark.needs("bwrap")
def test_no_privilege_and_no_way_to_one(planted: Planted) -> None:
    seen = planted.run("bubblewrap", "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; unshare -Ur id; id -u")
    assert seen.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "1000"]


@pytest.mark.needs("bwrap")
def test_nothing_but_the_writable_mounts_can_be_written(planted: Planted) -> None:
    given = planted.root / "environment"
    given.mkdir()
    mount = Mount(given, str(given))
    folders = f"/ /usr /etc /dev /run /proc /home /var {given}"
    probe = f"for x in {folders}; do touch $x/x && echo $x; done; touch ok /tmp/ok"
    assert planted.run("bubblewrap", probe, mount) == ""
    assert (planted.work / "ok").exists()
    assert list(given.iterdir()) == []
    planted.run("subreaper", f"touch {given}/x", mount)
    assert [x.name for x in given.iterdir()] == ["x"]


@pytest.mark.needs("bwrap")
def test_packages_of_base_interpreters_are_hidden(planted: Planted) -> None:
    """A released version of what is to be repaired may be installed on the machine."""
    prefix = planted.root / "python"
    packages = prefix / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "fixed.py").write_text(planted.token)
    environment = planted.root / "environment"
    own = environment / "lib" / "python3.11" / "site-packages"
    own.mkdir(parents=True)
    (own / "dependency.py").write_text("dependency\n")
    (environment / "pyvenv.cfg").write_text("")
    mounts = (Mount(prefix, str(prefix)), Mount(environment, str(environment)))
    assert planted.run("bubblewrap", f"cat {packages}/* {own}/*", *mounts) == "dependency\n"
    assert planted.token in planted.run("subreaper", f"cat {packages}/*", *mounts)


@pytest.mark.needs("bwrap")
def test_an_environment_runs_with_the_mounts_of_its_interpreter(planted: Planted) -> None:
    prefix = Path(sys.prefix)
    mounts = (Mount(prefix, str(prefix)), *program_mounts(prefix))
    seen = planted.run(
        "bubblewrap", f"{prefix}/bin/python -c 'import ssl, pydantic; print(pydantic.__name__)'", *mounts
    )
    assert seen == "pydantic\n"


@pytest.mark.needs("bwrap")
def test_memory_file_systems_have_an_end(planted: Planted) -> None:
    assert planted.run("bubblewrap", "df --output=size -k /tmp /dev/shm").split() == [
        "1K-blocks",
        str(bubblewrap.TMP_BYTES // 1024),
        str(bubblewrap.TMP_BYTES // 1024),
    ]


def test_core_dumps_are_off(planted: Planted) -> None:
    kinds = ["subreaper", *(["bubblewrap"] if bubblewrap.probe() is None else [])]
    kinds += ["uid"] if os.geteuid() == 0 else []
    assert {planted.run(kind, "ulimit -c") for kind in kinds} == {"0\n"}
