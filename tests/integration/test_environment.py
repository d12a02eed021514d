"""Environments: locked, with the project's metadata and without its code, sealed, built once."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.package_index import Index, spying_sdist, wheel
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import Interpreter, find_interpreter, interpreters
from trialfleet_ledger.task import PythonEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import (
    build,
    content_digest,
    environment_ref,
    retire,
    unchanged,
)
from trialfleet_repository.environments.python_environment import (
    lay_metadata,
    project_metadata,
    python_of,
    python_path,
    site_packages,
)
from trialfleet_repository.environments.shared_files import POOL
from trialfleet_repository.environments.uses import SEAL

THIS = ".".join(map(str, __import__("sys").version_info[:2]))
ASK = """
import importlib.metadata as m, json, importlib.util as u
print(json.dumps([m.version("my-project"), [e.value for e in m.entry_points(group="g")],
                  u.find_spec("my_project") is not None, u.find_spec("dep") is not None]))
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    found = Index(tmp_path / "index")
    found.add(*wheel("dep", "1.0", {"dep.py": "VALUE = 1\n"}))
    monkeypatch.setenv("PIP_FIND_LINKS", str(found.folder))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nothing").as_uri())
    return found


def task_environment(**fields: object) -> PythonEnvironment:
    return PythonEnvironment.model_validate(
        {
            "python": (THIS,),
            "lock": "lock.txt",
            "distribution": "my-project",
            "version": "2.0",
            "entry_points": "[g]\nx = my_project:main\n",
            **fields,
        }
    )


def built(environment: PythonEnvironment, lock: str, tmp_path: Path) -> Path:
    ref = environment_ref(environment, lock.encode(), find_interpreter(environment.python))
    return build(ref, lock.encode(), cache=Cache(tmp_path / "cache"))


def ask(environment: Path, code: str, **variables: str) -> str:
    return subprocess.run(
        [python_of(environment), "-c", code], capture_output=True, text=True, check=True, cwd="/", env=variables
    ).stdout


def test_dependencies_and_metadata_but_not_the_project(tmp_path: Path, index: Index) -> None:
    lock = index.lock("dep")
    environment = built(task_environment(), lock, tmp_path)
    lay_metadata(project_metadata(task_environment(), lock.encode()), tmp_path / "home")
    known = python_path("/workspace", (), str(tmp_path / "home"))
    assert json.loads(ask(environment, ASK, PYTHONPATH=known)) == ["2.0", ["my_project:main"], False, True]
    assert list(site_packages(environment).glob("*.pth")) in ([], [site_packages(environment) / "_virtualenv.pth"])


def test_it_is_sealed_and_a_write_shows(tmp_path: Path, index: Index) -> None:
    environment = built(task_environment(), index.lock("dep"), tmp_path)
    module = site_packages(environment) / "dep.py"
    assert not module.stat().st_mode & 0o222
    assert module.stat().st_mode & 0o004
    assert module.stat().st_nlink == 1  # no hard link into a cache that others install from
    assert unchanged(environment)
    ask(environment, "import dep")
    assert unchanged(environment)
    before = module.stat()
    module.chmod(0o644)
    module.write_text("VALUE = 2\n")
    module.chmod(0o444)
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert module.stat().st_size == before.st_size
    assert not unchanged(environment)


def test_a_file_that_is_replaced_or_added_shows(tmp_path: Path, index: Index) -> None:
    environment = built(task_environment(), index.lock("dep"), tmp_path)
    first = content_digest(environment)
    site_packages(environment).chmod(0o755)
    added = site_packages(environment) / "sitecustomize.py"
    added.write_text("")
    assert content_digest(environment) != first
    added.unlink()
    assert not unchanged(environment)  # the folder remembers


def test_a_folder_that_is_a_link_now_shows(tmp_path: Path, index: Index) -> None:
    environment = built(task_environment(), index.lock("dep"), tmp_path)
    elsewhere = environment.with_name("elsewhere")
    environment.rename(elsewhere)
    assert not unchanged(environment), "it is gone"
    environment.symlink_to(elsewhere)
    assert unchanged(elsewhere)
    assert not unchanged(environment)


def test_a_name_that_is_no_text_and_a_second_seal_show(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    found = [content_digest(tmp_path)]
    for name in (b"\xff\n", SEAL.encode()):
        (tmp_path / "lib" / os.fsdecode(name)).write_text("")
        found.append(content_digest(tmp_path))
    (tmp_path / SEAL).write_text("")
    assert content_digest(tmp_path) == found[-1], "its own is no part of it"
    assert len(set(found)) == 3


def test_two_builders_make_one(tmp_path: Path, index: Index) -> None:
    lock = index.lock("dep")
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(built(task_environment(), lock, tmp_path))) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert unchanged(found[0])
    left = {path.name for path in found[0].parent.iterdir() if path.name.startswith(".")}
    assert left - {POOL} == {".uses"}


def test_packages_are_compiled_and_nothing_of_them_runs(tmp_path: Path, index: Index) -> None:
    ran = tmp_path / "ran"
    index.add(*wheel("evil", "1.0", {"evil.pth": f"import os; open({str(ran)!r}, 'w')\n", "evil.py": ""}))
    environment = built(task_environment(), index.lock("dep", "evil"), tmp_path)
    assert (site_packages(environment) / "evil.pth").exists()
    assert not ran.exists()
    (compiled,) = (site_packages(environment) / "__pycache__").glob("dep.*.pyc")
    module = site_packages(environment) / "dep.py"
    assert int.from_bytes(compiled.read_bytes()[8:12], "little") == int(module.stat().st_mtime)  # it is used
    ask(environment, "import dep")
    assert ran.exists(), "the file would have run"


@pytest.mark.needs("bwrap")
def test_a_package_without_a_wheel_is_built_in_the_sandbox(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    monkeypatch.setenv("A_SECRET", "x")
    monkeypatch.setenv("HOME", str(tmp_path))
    index.add(*spying_sdist("spy", secret))
    environment = built(task_environment(), index.lock("dep", "spy"), tmp_path)
    seen = json.loads(ask(environment, "import json, dep, spy; print(json.dumps(spy.SEEN))"))
    assert set(seen["home"]) <= {"tmp", "cache"}
    assert seen["reads"] == []
    assert "UV_CACHE_DIR" in seen["variables"]
    assert not {"A_SECRET", "NETRC", "UV_KEYRING_PROVIDER"} & set(seen["variables"])
    assert not secret.with_name("secret.new").exists()
    assert list(tmp_path.glob("cache/*/environments/.build-*")) == []


def test_a_lock_whose_hash_is_wrong_is_refused_and_leaves_nothing(tmp_path: Path, index: Index) -> None:
    lock = index.lock("dep").replace("sha256:", "sha256:0")[:-2] + "\n"
    with pytest.raises(OperatorError, match="cannot install"):
        built(task_environment(), lock, tmp_path)
    assert [p for p in Cache(tmp_path / "cache").environments.iterdir() if p.is_dir()] == []


def test_a_lock_that_installs_the_project_is_refused(tmp_path: Path, index: Index) -> None:
    with pytest.raises(OperatorError, match="installs the project itself"):
        built(task_environment(distribution="dep", version="1.0"), index.lock("dep"), tmp_path)


@pytest.mark.parametrize(
    "facts",
    [{"distribution": "../up"}, {"version": "1/../../up"}, {"distribution": "n" * 250}, {"version": "1\n"}],
)
def test_a_name_that_is_no_name_is_refused(facts: dict[str, str]) -> None:
    """A repository that is mined says what it is called."""
    with pytest.raises(OperatorError, match="cannot be called"):
        environment_ref(task_environment(**facts), b"", find_interpreter((THIS,)))


def test_set_up_commands_run_in_it_and_are_recorded(tmp_path: Path, index: Index) -> None:
    code = "import dep, pathlib, sys; pathlib.Path(sys.prefix, 'made').write_text(str(dep.VALUE))"
    environment = built(task_environment(setup=(("python", "-c", code),)), index.lock("dep"), tmp_path)
    assert (environment / "made").read_text() == "1"
    assert "exit 0" in (environment / "trialfleet-setup.log").read_text()
    with pytest.raises(OperatorError, match="exit 3"):
        built(task_environment(setup=(("python", "-c", "raise SystemExit(3)"),)), index.lock("dep"), tmp_path)


LOOK = """
import json, os, pathlib, sys
secret, out = sys.argv[1:]
seen = {"secret": os.path.exists(secret),
        "home": os.environ["HOME"], "cwd": os.listdir("."), "key": "A_KEY" in os.environ}
pathlib.Path(sys.prefix, "seen.json").write_text(json.dumps(seen))
try:
    pathlib.Path(out).write_text("x")
except OSError:
    pass
"""


def test_set_up_commands_run_in_the_sandbox(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task file of a stranger names them."""
    (tmp_path / "secret").write_text("s")
    monkeypatch.setenv("A_KEY", "k")
    monkeypatch.setenv("HOME", str(tmp_path))
    command = ("python", "-c", LOOK, str(tmp_path / "secret"), str(tmp_path / "out"))
    environment = built(task_environment(setup=(command,)), index.lock("dep"), tmp_path)
    seen = json.loads((environment / "seen.json").read_text())
    assert (seen["secret"], seen["key"], seen["home"] == str(tmp_path)) == (False, False, False)
    assert not (tmp_path / "out").exists()
    subprocess.run((python_of(environment), *command[1:]), cwd="/", check=True)
    assert (tmp_path / "out").exists(), "the control: outside it is written"


def test_the_digest_covers_what_the_environment_depends_on() -> None:
    python = Interpreter(Path("/usr/bin/python"), "3.11.7")
    refs = {
        environment_ref(environment, lock, interpreter).digest
        for environment, lock, interpreter in (
            (task_environment(), b"", python),
            (task_environment(), b"a==1", python),
            (task_environment(setup=(("true",),)), b"", python),
            (task_environment(), b"", Interpreter(python.path, "3.11.8")),
        )
    }
    assert len(refs) == 4
    assert environment_ref(task_environment(version="2.1"), b"", python).digest in refs
    moved = environment_ref(task_environment(), b"", Interpreter(Path("/opt/python"), "3.11.7"))
    assert moved.digest in refs


def test_another_patch_release_than_the_plans_is_refused(tmp_path: Path) -> None:
    ref = environment_ref(task_environment(), b"", Interpreter(Path("/nowhere"), f"{THIS}.999"))
    with pytest.raises(OperatorError, match="planned for another patch release"):
        build(ref, b"", cache=Cache(tmp_path))


def test_interpreters_are_found_in_the_wanted_order() -> None:
    assert find_interpreter(("3.99", THIS)).minor == THIS
    with pytest.raises(OperatorError, match=r"no Python 3\.99"):
        find_interpreter(("3.99",))
    with pytest.raises(OperatorError, match="not a Python version"):
        find_interpreter(("python",))
    assert all(i.minor == THIS for i in interpreters((THIS,)))


@pytest.mark.needs("root")
def test_an_interpreter_below_a_closed_folder_is_not_for_another_user(tmp_path: Path) -> None:
    import sys

    from trialfleet_ledger.interpreters import executable_by_others

    (tmp_path / "closed").mkdir(mode=0o700)
    copy = tmp_path / "closed" / "python"
    copy.write_bytes(Path(sys.executable).resolve().read_bytes()[:100])
    copy.chmod(0o755)
    assert not executable_by_others(copy)


@pytest.mark.needs("bwrap")
def test_environments_share_files_and_each_notices_a_change(tmp_path: Path, index: Index) -> None:
    index.add(*wheel("large", "1.0", {"large.py": f"TEXT = {'x' * 100_000!r}\n"}))
    index.add(*wheel("other", "1.0", {"other.py": ""}))
    one = built(task_environment(), index.lock("large"), tmp_path)
    assert unchanged(one)
    two = built(task_environment(), index.lock("large", "other"), tmp_path)
    module, same = (site_packages(place) / "large.py" for place in (one, two))
    compiled = [next((site_packages(place) / "__pycache__").glob("large.*.pyc")) for place in (one, two)]
    assert module.stat().st_ino == same.stat().st_ino
    assert compiled[0].stat().st_ino == compiled[1].stat().st_ino
    assert content_digest(one) not in (one / SEAL).read_text(), "its files have another time of change"
    assert unchanged(one)
    assert content_digest(one) in (one / SEAL).read_text(), "and are not read again"
    assert unchanged(two)
    assert ask(two, "import large, other; print(len(large.TEXT))") == "100000\n"
    before = module.stat()
    module.chmod(0o644)
    module.write_bytes(module.read_bytes().replace(b"x", b"y", 1))
    module.chmod(0o444)
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert module.stat().st_size == before.st_size
    assert not unchanged(one)
    assert not unchanged(two)
    retire(two)
    again = built(task_environment(), index.lock("large", "other"), tmp_path)
    assert unchanged(again)
    assert (site_packages(again) / "large.py").read_text().count("y") == 0
