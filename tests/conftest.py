"""What tests need of the machine: skipped visibly without it, failed under TRIALFLEET_CI=1."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.costs import TOO_LATE, CostPlugin
from tests.failures import REPEATED, FailurePlugin
from tests.programs import Program, Starts, npm_folder, table
from tests.skips import count_skips, describe_skips, write_skips
from trialfleet_agents.pinned import PinnedAgent, pinned

# Where a container sets this, each worker and each of some thousand processes compiles every module again: the
# collection of the unit suite alone then takes 24 core seconds a worker, else 8.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts this in the background lets it ignore Ctrl-C, and with it every program that a test starts.
# What `nohup` starts ignores its terminal's end.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Before numpy: every worker would start a BLAS thread per core, which spin for one another and win nothing here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A machine that does something else meanwhile is no defect of the code. Every run draws the same examples, so that
# a newcomer's first run is that of everybody; `make explore` draws others, by a printed seed.
# (Where a service for CI runs it, Hypothesis' own profile would draw the same examples every night.)
settings.register_profile("explore", parent=settings(), deadline=None, derandomize=False)
settings.register_profile("trialfleet", parent=settings(), deadline=None, derandomize=True)
settings.load_profile("trialfleet")


# Modules and collected tests stay to the end: walking through them again and again was a fifth of the unit suite.
YOUNG_OBJECTS = 50_000
gc.set_threshold(YOUNG_OBJECTS)


# A run may have a last moment at which a test begins (seconds since 1970): on a slow machine it says at its end
# what it left out, instead of being cut off without a word.
UNTIL = float(os.environ.get("TRIALFLEET_TEST_UNTIL", "inf"))

# Under TRIALFLEET_CI=1 a test with real servers, processes or pods that fails runs once more, and its first
# failure is printed: in a run of all pools when they have ended, else at once. More than three fail the run.
MOST_RERUN = 3
CI_PATIENCE = 3  # times as long as a test may take at a desk, with what its fixtures make: others run beside it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, help="write what each file of tests costs to this table")


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("costs")) is not None:
        config.pluginmanager.register(CostPlugin(path))
        if "PYTEST_XDIST_WORKER" not in os.environ:
            config.pluginmanager.register(FailurePlugin(path))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("TRIALFLEET_CI") == "1":
        for item in items:
            if item.nodeid.startswith(REPEATED) and item.config.getoption("costs") is None:
                item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=5))
            limit = item.get_closest_marker("timeout")
            seconds, *more = (limit and limit.args) or (item.config.getini("timeout"),)
            if seconds:
                item.add_marker(pytest.mark.timeout(CI_PATIENCE * float(seconds), *more), append=False)


def _ran_twice(reporter: pytest.TerminalReporter) -> dict[str, str]:
    """The failure by the test's name."""
    return {report.nodeid: report.longreprtext for report in reporter.getreports("rerun")}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skips = count_skips(terminalreporter.getreports("skipped"))
    if (costs := terminalreporter.config.getoption("costs")) is not None:
        write_skips(skips, costs)  # for the run of all pools, whose last lines they are
    else:
        for line in describe_skips(skips):
            terminalreporter.write_line(line)
    again = _ran_twice(terminalreporter)
    for name, failure in again.items():
        terminalreporter.write_line(f"ran twice, because it failed first: {name}", yellow=True)
        terminalreporter.write_line(failure)
    if len(again) > MOST_RERUN:
        terminalreporter.write_line(f"more than {MOST_RERUN} tests ran twice: the run fails", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (commands := sys.modules.get("tests.support.command_forks")) is not None:  # else no test has called one
        commands.end_forks()
    gc.collect()
    gc.freeze()  # else pytest, which looks five times for what was never closed, walks through all of it each time
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and len(_ran_twice(reporter)) > MOST_RERUN and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def _named_or_installed(agent: PinnedAgent) -> Callable[[], bool]:
    return lambda: bool(os.environ.get(agent.variable) or shutil.which(agent.program))


def _recipe(name: str) -> Callable[[], bool]:
    """Installed where the file of examples/agents says."""
    return lambda: Path("/opt/agents", name).is_dir()


def _shared_python() -> bool:
    from trialfleet_ledger.interpreters import interpreters

    return next(interpreters((_MINOR,), for_other_uid=True), None) is not None


_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def _installed(program: Program) -> Callable[[], bool]:
    if program.npm:
        return lambda: (npm_folder(program.name) / "node_modules").is_dir()
    return lambda: shutil.which(program.name) is not None


def _r_packages() -> bool:
    """R, with the packages that tests compare with."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", 'find.package(c("rpact", "metafor", "clubSandwich"))']
    return subprocess.run(asked, capture_output=True, timeout=60, check=False).returncode == 0


def _bubblewrap() -> bool:
    """A sandbox starts; where the kernel refuses namespaces, the program alone is of no use."""
    from trialfleet_sandbox.bubblewrap import probe

    return probe() is None


def _served(group: str) -> bool:
    """By the API server of $KUBECONFIG."""
    if "KUBECONFIG" not in os.environ or shutil.which("kubectl") is None:
        return False
    asked = ["kubectl", "get", "--raw", f"/apis/{group}"]
    return subprocess.run(asked, capture_output=True, timeout=60, check=False).returncode == 0


PRESENT: dict[str, tuple[Callable[[], bool], str]] = {
    **{program.name: (_installed(program), program.label) for program in table().values()},
    "bwrap": (_bubblewrap, "bubblewrap that can start a sandbox (apt install bubblewrap)"),
    "Rscript": (_r_packages, table()["Rscript"].label),
    **{pin.program: (_named_or_installed(pin), table()[pin.program].label) for pin in pinned().values()},
    **{name: (_recipe(name), table()[name].label) for name in ("goose", "qwen", "aider")},
    "root": (lambda: os.geteuid() == 0, "root (sudo make test)"),
    "shared_python": (_shared_python, f"a Python {_MINOR} that every user may execute (not below /root)"),
    "s3": (
        lambda: "S3_ENDPOINT" in os.environ,
        "the S3 servers in $S3_ENDPOINT, $S3_ENDPOINT_TLS, $S3_ENDPOINT_FILES (CONTRIBUTING.md says how)",
    ),
    "cluster": (
        lambda: "KUBECONFIG" in os.environ and shutil.which("kubectl") is not None,
        "kubectl and $KUBECONFIG (k8s/kind/up makes a cluster)",
    ),
    "kuberay": (
        lambda: _served("ray.io/v1"),
        "a cluster with the KubeRay operator (helm install kuberay-operator)",
    ),
    "kueue": (
        lambda: _served("kueue.x-k8s.io/v1beta1"),
        "a cluster with Kueue (kubectl apply --server-side -f its manifests)",
    ),
    "image": (
        lambda: "TRIALFLEET_TEST_IMAGE" in os.environ,
        "the runner's image in $TRIALFLEET_TEST_IMAGE (make image)",
    ),
    "controller-image": (
        lambda: "TRIALFLEET_TEST_CONTROLLER_IMAGE" in os.environ,
        "the controller's image in $TRIALFLEET_TEST_CONTROLLER_IMAGE (docker build --target controller)",
    ),
    "faults": (
        lambda: "TRIALFLEET_FAULT" in os.environ,
        "the command that kills servers in $TRIALFLEET_FAULT (docs/reference/faults.md)",
    ),
    "network": (
        lambda: "TRIALFLEET_TEST_NETWORK" in os.environ and shutil.which("nft") is not None,
        "nft (apt install nftables), and $TRIALFLEET_TEST_NETWORK: runs a command in the node's network",
    ),
}


@cache
def _missing(what: str) -> str | None:
    present, name = PRESENT[what]
    return None if present() else name


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > UNTIL:
        pytest.skip(f"{TOO_LATE}: {item.location[0]}")
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            name = _missing(what)
            if name is None:
                continue
            if os.environ.get("TRIALFLEET_CI") == "1":
                pytest.fail(f"needs {name}, and under TRIALFLEET_CI=1 it must be there", pytrace=False)
            pytest.skip(f"needs {name}")


STARTS = Starts()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    yield
    names = STARTS.take()
    if names:
        pytest.fail(f"started {', '.join(sorted(names))}, which tests/programs.tsv does not name", pytrace=False)


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> pytest.TempPathFactory:
    """pytest's factory; as root, its folders let other users walk through.

    Where bubblewrap is not installed, agents and tests run as another user, to whom pytest closes its folders.
    """
    if os.geteuid() == 0:
        base, make = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp

        def mktemp(basename: str, numbered: bool = True) -> Path:
            folder = make(basename, numbered)
            folder.chmod(0o711)
            return folder

        for folder in (base, *base.parents):
            if "pytest-of-" in str(folder):
                folder.chmod(0o711)
        tmp_path_factory.mktemp = mktemp  # type: ignore[method-assign]
    return tmp_path_factory
