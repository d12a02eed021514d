"""Validation of whole tasks: what holds, and every way in which one does not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.package_index import with_pytest
from tests.support.waiting import wait_until
from trialfleet_agents.context_files import is_context_file
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_ledger.removal import remove
from trialfleet_ledger.task import Status
from trialfleet_repository.cache import Cache
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import applied, changes_of
from trialfleet_repository.patch_classes import split_changes
from trialfleet_repository.trees import TreeEntry, read_folder, unpack
from trialfleet_repository.workspace import Template, template_of
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.commands.validate import validate
from trialfleet_tasks.prepare import prepare_task
from trialfleet_tasks.taskfile import LoadedTask, load_task_file
from trialfleet_tasks.validate import lookups
from trialfleet_tasks.validate.record import ProblemKind, Validation
from trialfleet_tasks.validate.task import save, validate_task

THIS = ".".join(map(str, sys.version_info[:2]))
TEST = """
import pytest
from shop.price import total

def test_total():
    assert total([1, 2]) == 3

@pytest.mark.parametrize("name", ["a", "b: c"])
def test_kept(name):
    assert name
"""
IN_A_FIXTURE = """
import pytest
from shop.price import total

@pytest.fixture
def one():
    assert total([1]) == 1

def test_x(one): pass
"""
WRONG = "def total(items):\n    return sum(items) + 1\n"
RIGHT = "def total(items):\n    return sum(items)\n"
F2P = "tests/test_price.py::test_total"
PROBE = lookups.probe_strace
P2P = ("tests/test_price.py::test_kept[a]", "tests/test_price.py::test_kept[b: c]")


class Shop:
    """A task of two folders. Everything can be changed before it is loaded."""

    def __init__(self, root: Path, lock: str) -> None:
        self.root = root
        self.spec: dict[str, Any] = {
            "id": "shop-total",
            "source": {"kind": "path", "pre_fix": "before", "fixed": "after"},
            "prompt_source": "failing_test",
            "test_file": "tests/test_price.py",
        }
        self.environment: dict[str, Any] = {"python": [THIS], "lock": "lock.txt", "pythonpath": ["src"]}
        self.write("lock.txt", lock)
        for tree, code in (("before", WRONG), ("after", RIGHT)):
            self.write(f"{tree}/src/shop/__init__.py", "")
            self.write(f"{tree}/src/shop/price.py", code)
            self.write(f"{tree}/CLAUDE.md", "upstream's own words")
        self.test(TEST)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test(self, text: str) -> None:
        self.write("after/tests/test_price.py", text)

    def file(self) -> Path:
        path = self.root / "task.yaml"
        path.write_text(yaml.safe_dump({"repo": {"environment": self.environment}, "tasks": [self.spec]}))
        return path

    def load(self) -> LoadedTask:
        return load_task_file(self.file()).tasks[0]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(folder with wheels, lock): the environments of all tests here are one."""
    index = with_pytest(tmp_path_factory.mktemp("index"))
    return index.folder, index.lock("pytest", "pluggy", "iniconfig", "packaging", "pygments")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def shop(tmp_path: Path, shared: tuple[Path, str], cache: Cache, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shared[0]))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nothing").as_uri())
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("TRIALFLEET_CACHE", str(cache.root))
    monkeypatch.setattr(lookups, "probe_strace", lambda: "not in this test")  # two runs less
    return Shop(tmp_path / "shop", shared[1])


def sandbox_of() -> Sandbox:
    return choose()


def run(shop: Shop, cache: Cache, *, repeats: int = 1, **options: Any) -> Validation:
    return validate_task(
        shop.load(),
        repeats=repeats,
        sandbox=sandbox_of(),
        cache=cache,
        objects=Objects(cache.objects),
        mirrors={},
        **options,
    )


def kinds(result: Validation) -> list[str]:
    return [problem.kind.value for problem in result.problems]


def test_ids_are_found_and_the_failure_is_frozen(shop: Shop, cache: Cache) -> None:
    result = run(shop, cache, repeats=2)
    assert (result.problems, result.status) == ((), Status.VALIDATED)
    assert (result.fail_to_pass, result.pass_to_pass) == ((F2P,), P2P)
    assert result.targets == ("src/shop/price.py",)
    assert result.imported == "src/shop/__init__.py"
    assert result.fix_bytes is not None
    assert 2**22 < result.fix_bytes < 150 * 2**20, "pytest itself"
    assert result.output is not None
    output = Objects(cache.objects).get(result.output).decode()
    assert "assert 4 == 3" in output
    assert "test_kept" not in output
    assert str(shop.root.parent) not in output
    assert " in 0.00s" in output


def test_the_same_text_whoever_captures_it(shop: Shop, cache: Cache) -> None:
    first = run(shop, cache)
    again = run(shop, cache, fresh=True)
    assert first.output == again.output
    assert first.digest == again.digest
    assert again.at > first.at


@pytest.mark.parametrize(
    "isolation",
    [
        pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
        pytest.param("uid", marks=pytest.mark.needs("root", "shared_python")),
        "subreaper",
    ],
)
def test_the_same_text_in_every_isolation(
    shop: Shop, isolation: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the memory that the tests take with the fix, also for a moment."""
    shop.write("after/src/shop/price.py", RIGHT + "SIZE = len(b'x' * (200 << 20))\n")
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(open_folder / "scratch"))
    cache = Cache(open_folder / "cache")
    objects = Objects(cache.objects)
    result = validate_task(
        shop.load(), repeats=1, sandbox=choose(isolation), cache=cache, objects=objects, mirrors={}, fresh=True
    )
    assert result.problems == ()
    assert result.output is not None
    text = objects.get(result.output).decode()
    assert text.rstrip().split("\n")[4:9] == [
        "    def test_total():",
        ">       assert total([1, 2]) == 3",
        "E       assert 4 == 3",
        "E        +  where 4 = total([1, 2])",
        "",
    ]
    assert str(open_folder) not in text
    assert result.fix_bytes is not None
    assert 200 * 2**20 < result.fix_bytes < 400 * 2**20


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """Below no folder that is closed to other users, as pytest's own are; for several tests, which share its
    environments."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="trialfleet-test-"))
    folder.chmod(0o755)
    yield folder
    remove(folder)


def test_a_validation_is_kept_until_something_changes(shop: Shop, cache: Cache) -> None:
    first = run(shop, cache, repeats=2)
    assert run(shop, cache) == first  # two repeats are enough for one
    assert run(shop, cache, repeats=3).at > first.at
    shop.write("after/src/shop/price.py", RIGHT + "# more\n")
    assert run(shop, cache).digest != first.digest


def test_what_an_environment_may_be_to_blame_for_is_asked_again(shop: Shop, cache: Cache) -> None:
    """An environment can be built again, also by a release that builds it better."""
    for tree in ("before", "after"):
        shop.write(f"{tree}/tests/test_price.py", "import gone\n")
    first = run(shop, cache)
    assert {problem.kind for problem in first.problems} == {ProblemKind.COLLECTION_ERROR}
    assert run(shop, cache).at > first.at


def test_the_anchor_is_the_deepest_frame_outside_the_tests(shop: Shop, cache: Cache) -> None:
    shop.write(
        "before/src/shop/price.py",
        "def total(items):\n    return inner(items)\n\n\ndef inner(items):\n    raise KeyError(items)\n",
    )
    result = run(shop, cache)
    assert (result.anchor, result.problems) == ("src/shop/price.py", ())


def test_a_fixed_file_that_no_node_covers_is_named(shop: Shop, cache: Cache) -> None:
    for tree, code in (("before", "x = 1\n"), ("after", "x = 2\n")):
        shop.write(f"{tree}/src/tax/rate.py", code)
    shop.write("flat/CLAUDE.md", "# Shop\n")
    for name in ("CLAUDE.md", "src/shop/AGENTS.md"):
        shop.write(f"tree/{name}", "# Notes\n")
    shop.spec["contexts"] = {"flat": "flat", "tree": "tree"}
    result = run(shop, cache)
    covered = {(row.context, row.path): row.node for row in result.coverage}
    assert covered == {
        **dict.fromkeys([("flat", "src/shop/price.py"), ("flat", "src/tax/rate.py"), ("tree", "src/tax/rate.py")]),
        ("tree", "src/shop/price.py"): "src/shop/AGENTS.md",
    }
    gaps = [warning for warning in result.warnings if "covers it" in warning]
    assert gaps == ["src/tax/rate.py: changed by the fix, and no node of contexts.tree below its root covers it"]
    shop.write("tree/src/tax/AGENTS.md", "# Notes\n")  # seen at once, though the validation is kept
    assert not any("covers it" in warning for warning in run(shop, cache).warnings)


def test_what_may_speak_to_another_agent_is_named(shop: Shop, cache: Cache) -> None:
    for tree in ("before", "after"):
        shop.write(f"{tree}/.windsurfrules", "be brief")
    assert any(
        warning.startswith(".windsurfrules: stays in the workspace") for warning in run(shop, cache).warnings
    )


COUNTED = """
import pathlib
from shop.price import total

def test_total():
    runs = pathlib.Path({log!r})
    with runs.open("a") as file:
        file.write("run ")
    assert total([1, 2]) == 3 or len(runs.read_text().split()) >= 3

def test_kept(): ...
"""


def test_a_failure_that_is_gone_when_it_is_captured_is_no_prompt(shop: Shop, cache: Cache, tmp_path: Path) -> None:
    """The third run's output is what every prompt would show. Only a subreaper lets tests count their runs."""
    shop.test(COUNTED.format(log=str(tmp_path / "runs")))
    shop.spec.update(fail_to_pass=[F2P], pass_to_pass=["tests/test_price.py::test_kept"])
    objects = Objects(cache.objects)
    result = validate_task(
        shop.load(), repeats=1, sandbox=choose("subreaper"), cache=cache, objects=objects, mirrors={}
    )
    assert kinds(result) == ["flaky"], result.problems
    assert "failed, passed" in result.problems[0].message
    assert (result.output, result.holds) == (None, False)


def set_test(text: str) -> Any:
    return lambda shop: shop.test(text)


def given(**fields: Any) -> Any:
    return lambda shop: shop.spec.update(fields)


BROKEN: list[tuple[str, Any, str]] = [
    ("passes already", lambda s: s.test("def test_x(): pass"), "already_passes"),
    ("named test passes already", given(fail_to_pass=[P2P[0]]), "already_passes"),
    ("collection error", set_test("import gone\ndef test_x(): pass"), "collection_error"),
    ("syntax error", set_test("def test_x(:"), "collection_error"),
    ("no test", set_test("x = 1"), "no_tests_collected"),
    ("pattern without a match", given(test_pattern="nothing_like_it"), "no_tests_collected"),
    ("wrong id", given(fail_to_pass=["tests/test_price.py::test_gone"]), "usage_error"),
    ("wrong file in an id", given(fail_to_pass=["tests/test_gone.py::test_x"]), "usage_error"),
    (
        "wrong parameter",
        given(fail_to_pass=[F2P], pass_to_pass=["tests/test_price.py::test_kept[z]"]),
        "missing_test",
    ),
    ("wrong path", given(test_file="tests/test_gone.py"), "wrong_path"),
    ("a folder as test file", given(test_file="tests"), "test_file_is_directory"),
    ("never passes", set_test(TEST.replace("== 3", "== 99")), "fails_at_fix"),
    (
        "named test never passes",
        lambda s: (s.test(TEST.replace("== 3", "== 99")), s.spec.update(fail_to_pass=[F2P])),
        "fails_at_fix",
    ),
    (
        "error in a fixture",
        lambda s: (
            s.test(IN_A_FIXTURE),
            s.spec.update(fail_to_pass=["tests/test_price.py::test_x"]),
        ),
        "not_as_test",
    ),
    ("endless", set_test("import time\ndef test_x(): time.sleep(60)"), "timeout"),
    ("crash", set_test("import os\ndef test_x(): os.kill(os.getpid(), 11)"), "signal"),
    (
        "no such program",
        lambda s: s.environment.update(test_command=["nosuchprogram", "{tests}"]),
        "missing_interpreter",
    ),
    ("no report", lambda s: s.environment.update(test_command=["python", "-m", "pytest", "{tests}"]), "no_junit"),
    (
        "a lock that cannot be installed",
        lambda s: s.write("lock.txt", "gone==1 --hash=sha256:" + "0" * 64),
        "environment",
    ),
    (
        "the module is not the workspace's",
        lambda s: s.environment.update(import_name="pytest"),
        "outside_workspace",
    ),
    ("the module does not exist", lambda s: s.environment.update(import_name="shopp"), "outside_workspace"),
    (
        "the lock has a newer release of the project",
        lambda s: s.environment.update(distribution="Iniconfig", version="1.0"),
        "own_release",
    ),
    ("nothing is fixed", lambda s: s.write("after/src/shop/price.py", WRONG), "changes_only_tests"),
]


@pytest.mark.parametrize(("change", "kind"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_does_not_hold_is_told_apart(shop: Shop, cache: Cache, change: Any, kind: str) -> None:
    change(shop)
    result = run(shop, cache, timeout_s=5 if kind == "timeout" else 60)
    assert kinds(result)[:1] == [kind], result.problems
    assert not result.holds
    assert result.status is Status.UNVALIDATED


def test_a_test_that_wavers_is_found_by_repeating(shop: Shop, cache: Cache) -> None:
    shop.test(TEST + "\ndef test_wavers():\n    import os\n    assert os.environ['PYTHONHASHSEED'] != '2'\n")
    result = run(shop, cache, repeats=3)
    assert (result.fail_to_pass, result.pass_to_pass) == ((F2P,), P2P)
    assert any("test_wavers: dropped" in warning for warning in result.warnings)
    shop.spec.update(fail_to_pass=[F2P], pass_to_pass=["tests/test_price.py::test_wavers"])
    assert kinds(run(shop, cache, repeats=3)) == ["flaky"]


def test_a_test_that_only_its_time_limit_fails_is_no_oracle(shop: Shop, cache: Cache) -> None:
    """A faster machine would pass it without the fix. The words are those of pytest-timeout."""
    fails = "pytest.fail('Timeout (>1.0s) from pytest-timeout.')"
    shop.test(f"{TEST}\n\ndef test_late():\n    if total([1, 2]) != 3:\n        {fails}\n")
    result = run(shop, cache)
    assert (result.fail_to_pass, result.pass_to_pass) == ((F2P,), P2P)
    shop.spec.update(fail_to_pass=["tests/test_price.py::test_late"], pass_to_pass=[])
    result = run(shop, cache)
    assert kinds(result) == ["timeout"]
    assert "test_late: fails at the pre-fix tree by its own time limit alone" in result.problems[0].message


ALONE = TEST.partition("@pytest")[0]
WAVERS = ALONE.replace("    assert", "    import os\n    assert os.environ['PYTHONHASHSEED'] != '1' and")
DISCOVERED = ["discovering tests, fixed tree", "discovering tests, pre-fix tree"]
SECOND = ["run 2, fixed tree", "run 2, pre-fix tree"]
THRICE = [*DISCOVERED, *SECOND, "run 3, fixed tree", "run 3, pre-fix tree"]
ONCE = ["searching lines of the fix", "recording look-ups", "run with tests that must fail, fixed tree"]
APART = [*THRICE[:-1], f"{THRICE[-1]}, the failing tests alone"]


@pytest.mark.parametrize(
    ("test", "untold", "ran", "kind"),
    [
        (TEST, {}, [*APART, "finding shop", *ONCE], []),
        (
            ALONE,
            {},
            [*THRICE, "finding shop", *ONCE],
            [],
        ),  # the third run shows what the failing test alone prints
        (WAVERS, {}, [*DISCOVERED, *SECOND], ["flaky"]),
        (TEST + "# untold\n", {F2P: "total"}, DISCOVERED, ["names_what_only_the_fix_adds"]),
    ],
    ids=["kept", "kept, one test", "flaky", "names what only the fix adds"],
)
def test_no_run_more_than_its_result_needs(
    shop: Shop, cache: Cache, test: str, untold: dict[str, str], ran: list[str], kind: list[str]
) -> None:
    shop.test(test)
    steps: list[str] = []
    result = run(shop, cache, repeats=3, say=steps.append, untold=lambda _: untold)
    assert kinds(result) == kind
    assert steps == ["environment", *ran]
    assert (result.output is None) == bool(kind)
    if untold:
        assert run(shop, cache, repeats=3).holds, "a task that does not ask for it is another"


def test_lines_of_the_fix_in_a_vendored_folder_are_a_caution_and_no_mined_task(shop: Shop, cache: Cache) -> None:
    lines = "\ndef _exact(amount):\n    cents = round(amount * 100)\n    return divmod(cents, 100)\n"
    for tree in ("before", "after"):
        shop.write(f"{tree}/vendor/other/rules.py", lines)
    shop.write("after/src/shop/price.py", RIGHT + lines)
    result = run(shop, cache)
    assert result.holds
    assert any("lie in vendor/other/rules.py: an agent could copy them" in each for each in result.warnings)
    assert kinds(run(shop, cache, untold=lambda _: {})) == ["copied_lines"]


def hidden(shop: Shop) -> None:
    del shop.spec["test_file"]
    shop.spec |= {
        "prompt_source": "commit_message",
        "commit_message": "Add up correctly\n\nCo-authored-by: X <x@y>",
    }


def test_hidden_tests_come_from_the_fix(shop: Shop, cache: Cache) -> None:
    hidden(shop)
    result = run(shop, cache)
    assert (result.status, result.fail_to_pass, result.output) == (Status.VALIDATED, (F2P,), None)
    assert result.test_files == ("tests/test_price.py",)
    assert result.anchor is None


@pytest.mark.parametrize("text", [None, "def test_x(): pass\n", "import gone\n"])
def test_without_an_oracle_a_hidden_task_is_only_marked(shop: Shop, cache: Cache, text: str | None) -> None:
    hidden(shop)
    if text is None:
        (shop.root / "after/tests/test_price.py").unlink()
    else:
        shop.test(text)
    result = run(shop, cache)
    assert (result.status, result.fail_to_pass) == (Status.NO_ORACLE, ())
    assert result.holds


def prepared(shop: Shop, cache: Cache) -> Any:
    objects = Objects(cache.objects)
    return prepare_task(
        shop.load(), run(shop, cache), cache=cache, objects=objects, mirrors={}, sandbox=sandbox_of()
    ), objects


def test_an_order_names_all_that_an_attempt_needs(shop: Shop, cache: Cache) -> None:
    planned, objects = prepared(shop, cache)
    order = planned.order
    assert planned.primary
    workspace, pristine = unpack(objects.get(order.workspace)), unpack(objects.get(order.pristine))
    assert workspace == pristine
    assert set(workspace) == {"src/shop/__init__.py", "src/shop/price.py", "tests/test_price.py"}
    template = Template(template_of(order.pristine, None, cache=cache))
    exclusions = Exclusions(pristine, order.test_files, order.pythonpath, is_context=is_context_file)
    fixed = applied(pristine, changes_of(objects.get(order.fix).decode(), template, exclusions))
    assert fixed["src/shop/price.py"].data.decode() == RIGHT
    prompt = objects.get(order.prompt).decode()
    assert "assert 4 == 3" in prompt
    assert prompt.endswith("Do not modify the tests.\n")
    assert prepared(shop, cache)[0] == planned


def test_an_anchor_that_knows_the_fix_is_kept_apart(shop: Shop, cache: Cache) -> None:
    shop.spec["anchor"] = "oracle"
    planned, _ = prepared(shop, cache)
    assert (planned.order.anchor, planned.primary) == ("src/shop/price.py", False)
    assert planned.apart.startswith("anchor: oracle")
    shop.spec["anchor"] = {"path": "src/shop/price.py"}
    planned, _ = prepared(shop, cache)
    assert (planned.order.anchor, planned.primary, planned.apart) == ("src/shop/price.py", True, None)
    hidden(shop)
    shop.test("def test_x(): pass\n")
    planned, _ = prepared(shop, cache)
    assert (planned.primary, planned.apart) == (False, "no fail-to-pass test exists")


def test_hidden_tests_are_not_in_the_workspace(shop: Shop, cache: Cache) -> None:
    hidden(shop)
    planned, objects = prepared(shop, cache)
    assert "tests/test_price.py" not in unpack(objects.get(planned.order.workspace))
    assert "tests/test_price.py" in unpack(objects.get(planned.order.pristine))
    assert objects.get(planned.order.prompt).decode().endswith("Add up correctly\n")


def test_what_does_not_hold_is_never_ordered(shop: Shop, cache: Cache) -> None:
    result = run(shop, cache)
    shop.write("before/src/shop/price.py", WRONG + "# changed\n")
    with pytest.raises(OperatorError, match="has changed since"):
        prepare_task(
            shop.load(), result, cache=cache, objects=Objects(cache.objects), mirrors={}, sandbox=sandbox_of()
        )
    shop.test("def test_x(): pass")
    with pytest.raises(OperatorError, match="the task is not valid"):
        prepared(shop, cache)


def command(*args: str) -> Result:
    return CliRunner().invoke(validate, args, standalone_mode=False, catch_exceptions=True)


def test_the_command_writes_ids_and_needs_no_second_run(shop: Shop, cache: Cache) -> None:
    path = shop.file()
    result = command(str(path), "--repeats", "1", "--write", "--json")
    assert result.return_value is None or result.return_value == 0
    found = json.loads(result.stdout)
    assert (found[0]["status"], found[0]["fail_to_pass"]) == ("validated", [F2P])
    spec = load_task_file(path).tasks[0].spec
    assert (spec.status, spec.fail_to_pass, spec.pass_to_pass) == (Status.VALIDATED, (F2P,), P2P)
    assert spec.classes == "names"
    again = json.loads(command(str(path), "--repeats", "1", "--json").stdout)
    assert again[0]["at"] == found[0]["at"]


def test_the_command_exits_2_and_takes_the_status_back(shop: Shop) -> None:
    shop.test("def test_x(): pass")
    shop.spec |= {"status": "validated"}
    path = shop.file()
    result = command(str(path), "--repeats", "1", "--write")
    assert result.return_value == 2
    assert "already_passes" in result.output
    assert "fix: " in result.output
    assert load_task_file(path).tasks[0].spec.status is Status.UNVALIDATED


def test_only_one_task_and_unknown_ids(shop: Shop) -> None:
    result = command(str(shop.file()), "--only", "other")
    assert isinstance(result.exception, OperatorError)
    assert "shop-total" in str(result.exception)


def test_the_tasks_of_a_campaign(shop: Shop, tmp_path: Path) -> None:
    shop.file()
    (shop.root / "campaign.yaml").write_text(
        "{campaign: c, seed: 1, tasks: ['t*.yaml'], conditions: [none], reps: 1, agent: {kind: nop}, store: runs}"
    )
    result = command("--campaign", str(shop.root / "campaign.yaml"), "--repeats", "1")
    assert "shop-total" in result.stdout
    (shop.root / "campaign.yaml").write_text(
        "{campaign: c, seed: 1, tasks: [x.yaml], conditions: [none], reps: 1, agent: {kind: nop}, store: runs}"
    )
    refused = command("--campaign", str(shop.root / "campaign.yaml"))
    assert "campaign.yaml:1: tasks[0]: x.yaml" in str(refused.exception)
    assert isinstance(command().exception, click.UsageError)


def test_tests_that_only_guard_a_hidden_task_are_kept(shop: Shop, cache: Cache) -> None:
    hidden(shop)
    shop.write("after/tests/test_other.py", "def test_y(): pass\n")
    shop.write("before/tests/test_other.py", "def test_y(): pass\n")
    shop.spec["test_files"] = ["tests/test_other.py"]
    result = run(shop, cache, repeats=2)
    assert (result.status, result.pass_to_pass) == (Status.NO_ORACLE, ("tests/test_other.py::test_y",))


def test_a_failing_run_shows_its_end_and_names_its_log(shop: Shop, cache: Cache) -> None:
    shop.test("def show(number):\n    show(number - 1) if number else print(gone)\n\nshow(30)\n")
    result = command(str(shop.file()), "--repeats", "1")
    assert result.return_value == 2
    shown = [line for line in result.output.splitlines() if line.startswith("  | ")]
    assert len(shown) == 20
    assert any("NameError: name 'gone' is not defined" in line for line in shown)
    log = cache.validations / "logs" / "shop-total.log"
    assert str(log) in result.output.replace("\n", "")
    assert log.read_text().count("\n") > 60


def test_an_interrupted_validation_keeps_what_is_done(shop: Shop) -> None:
    """The second task's tests wait until the command gets the signal."""
    shop.write("waits/tests/test_price.py", "import time\ntime.sleep(600)\n")
    shop.write("waits/src/shop/price.py", RIGHT)
    path = shop.file()
    value = yaml.safe_load(path.read_text())
    source = {"kind": "path", "pre_fix": "before", "fixed": "waits"}
    value["tasks"].append(value["tasks"][0] | {"id": "waits", "source": source})
    path.write_text(yaml.safe_dump(value))
    argv = [sys.executable, "-m", "trialfleet_runner.cli", "validate", str(path), "--repeats", "1", "--write"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        wait_until(lambda: load_task_file(path).tasks[0].spec.status is Status.VALIDATED, by=program)
        program.send_signal(signal.SIGINT)
        stdout, stderr = program.communicate(timeout=120)
    assert program.returncode == CommandExit.INTERRUPTED, stderr
    assert "1 of 2 tasks are left: the same command goes on" in stderr
    assert "shop-total  validated" in stdout
    assert "Traceback" not in stderr


HELPED = """
from checks.same import same
from shop.price import total

def test_total():
    same(total([1, 2]), 3)
"""


@pytest.fixture
def tracing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "probe_strace", PROBE)


@pytest.mark.needs("bwrap", "strace")
@pytest.mark.usefixtures("tracing")
def test_the_lookups_of_tests_are_recorded(shop: Shop, cache: Cache) -> None:
    """A helper that they read is no product; a folder that they look for may not be added."""
    shop.test(HELPED)
    for tree in ("before", "after"):
        shop.write(f"{tree}/checks/same.py", "def same(a, b):\n    assert a == b\n")
        shop.write(f"{tree}/pytest.ini", "[pytest]\npythonpath = extra\n")
    result = run(shop, cache)
    assert (result.problems, result.rule) == ((), "lookups")
    assert result.classes is not None
    classes = PatchClasses.model_validate_json(Objects(cache.objects).get(result.classes))
    assert "src/shop/price.py" in classes.production
    assert classes.used == ("checks/same.py",)
    assert {"extra", "setup.cfg"}.intersection(classes.missed) == {"extra"}
    added = {"extra/checks/same.py", "checks/more.py", "src/shop/more.py"}
    scored = read_folder(shop.root / "before")
    split = split_changes(dict.fromkeys(added, TreeEntry(b"")), classes, scored)
    assert (set(split.product), set(split.others), split.left) == (
        {"src/shop/more.py"},
        set(),
        ("checks/more.py", "extra/checks/same.py"),
    )


SUPPORTED = """
from tests.support import expected
from shop.price import total

def test_total():
    assert total([1, 2]) == expected()

def test_kept(): ...
"""


def test_a_validation_without_classes_gets_them_by_names_without_a_run(shop: Shop, cache: Cache) -> None:
    first = run(shop, cache)
    save(first.model_copy(update={"classes": None, "rule": None}), cache=cache)
    result = run(shop, cache)
    assert (result.at, result.rule) == (first.at, "names")
    assert result.classes is not None
    classes = PatchClasses.model_validate_json(Objects(cache.objects).get(result.classes))
    assert (classes.production, classes.packages) == (("src/shop/__init__.py", "src/shop/price.py"), ("src/shop",))
    assert run(shop, cache) == result


def test_names_hold_where_strace_cannot_be_used(shop: Shop, cache: Cache) -> None:
    result = run(shop, cache, fresh=True)
    assert (result.problems, result.rule) == ((), "names")
    assert "look-ups of the tests are not recorded: not in this test" in result.warnings


@pytest.mark.needs("strace")
@pytest.mark.usefixtures("tracing")
def test_tests_that_fail_under_strace_have_the_rule_of_names(shop: Shop, cache: Cache) -> None:
    shop.test(
        "from shop.price import total\n"
        "def test_total():\n"
        "    traced = int(open('/proc/self/status').read().partition('TracerPid:')[2].split()[0])\n"
        "    assert total([1, 2]) == 3 and not traced\n"
    )
    result = run(shop, cache)
    assert (result.problems, result.rule) == ((), "names")
    reason = "under strace, tests/test_price.py::test_total does not pass"
    assert f"look-ups of the tests are not recorded: {reason}" in result.warnings


@pytest.mark.parametrize("support", ["def expected():\n    return 3\n", "import shop.price as p\np.total = sum\n"])
def test_support_that_the_fix_changes_is_the_tests_unless_it_is_the_fix(
    shop: Shop, cache: Cache, support: str
) -> None:
    shop.test(SUPPORTED)
    shop.write("before/tests/support.py", "def expected():\n    return 3\n")
    shop.write("after/tests/support.py", f"{support}\n\ndef expected():\n    return 3\n")
    result = run(shop, cache)
    is_tests = "total" not in support
    assert (result.problems, result.test_side) == ((), ("tests/support.py",) if is_tests else ())
    assert result.classes is not None
    classes = PatchClasses.model_validate_json(Objects(cache.objects).get(result.classes))
    assert ("tests/support.py" in classes.production) is not is_tests
    objects = Objects(cache.objects)
    planned = prepare_task(shop.load(), result, cache=cache, objects=objects, mirrors={}, sandbox=sandbox_of())
    order = planned.order
    scored, given = (unpack(objects.get(digest)) for digest in (order.pristine, order.workspace))
    assert ("tests/support.py" in order.test_files) is is_tests
    assert ("tests/support.py" in order.travelling_tests) is not is_tests
    before = (shop.root / "before/tests/support.py").read_bytes()
    assert (scored["tests/support.py"].data != before) is is_tests
    assert given["tests/support.py"].data == before


SETTINGS = "[tool.pytest.ini_options]\npythonpath = ['src', '{root}']\n"
USING_SETTINGS = """
from checks import expected
from shop.price import total

def test_total():
    assert total([1, 2]) == expected()

def test_kept():
    assert expected() == 3
"""


@pytest.mark.parametrize("needed", [True, False])
def test_settings_that_the_fix_needs_are_scored_as_the_fix_has_them(
    shop: Shop, cache: Cache, needed: bool
) -> None:
    shop.test(USING_SETTINGS if needed else TEST)
    for tree, root in (("before", "lib"), ("after", "checks")):
        shop.write(f"{tree}/checks/checks.py", "def expected():\n    return 3\n")
        shop.write(f"{tree}/pyproject.toml", SETTINGS.format(root=root))
    result = run(shop, cache)
    assert (result.problems, result.test_side) == ((), ("pyproject.toml",) if needed else ())
    objects = Objects(cache.objects)
    order = prepare_task(shop.load(), result, cache=cache, objects=objects, mirrors={}, sandbox=sandbox_of()).order
    scored, given = (unpack(objects.get(digest)) for digest in (order.pristine, order.workspace))
    assert ("checks']" in scored["pyproject.toml"].data.decode(), "pyproject.toml" in order.test_files) == (
        needed,
        needed,
    )
    assert given["pyproject.toml"].data.decode() == SETTINGS.format(root="lib")
    assert run(shop, cache) == result


def test_a_fix_of_settings_alone_is_refused(shop: Shop, cache: Cache) -> None:
    shop.test(USING_SETTINGS)
    shop.write("before/src/shop/price.py", RIGHT + "# looked at\n")
    for tree, root in (("before", "wrong"), ("after", "right")):
        shop.write(f"{tree}/wrong/checks.py", "def expected():\n    return 4\n")
        shop.write(f"{tree}/right/checks.py", "def expected():\n    return 3\n")
        shop.write(f"{tree}/pyproject.toml", SETTINGS.format(root=root))
    result = run(shop, cache)
    assert kinds(result) == ["fix_in_test_side"]
    assert "changes of pyproject.toml alone" in result.problems[0].message
