"""Task files: defaults resolved, and every refusal with file, line, field and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import GitSource, PathSource
from trialfleet_tasks import yamlfile
from trialfleet_tasks.taskfile import campaign_tasks, load_all, load_task_file, tasks_of

SHA = "a" * 40
GOOD = f"""\
_note: anything
repo:
  url: https://example.org/a/b
  contexts: {{flat: ctx, tree: ctx}}
  environment:
    lock: lock.txt
    pythonpath: [src]
tasks:
  - id: one
    _why: a note
    pre_fix_commit: {SHA}
    fix_commit: {SHA}
    prompt_source: failing_test
    test_file: tests/test_a.py
    test_files: [tests/test_b.py, tests/test_a.py]
  - id: two
    source: {{kind: path, pre_fix: a, fixed: b}}
    prompt_source: issue
    issue: It breaks.
    contexts: {{flat: other}}
    environment: {{lock: lock.txt, pythonpath: [lib]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lock.txt").write_text("")
    for name in ("ctx", "other"):
        (tmp_path / name).mkdir()
    return tmp_path


def written(folder: Path, text: str, name: str = "tasks.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> OperatorError:
    with pytest.raises(OperatorError) as caught:
        load_task_file(written(folder, text))
    return caught.value


@pytest.mark.parametrize("url", ["./shop", "../shop", "."])
def test_a_relative_path_of_a_git_source_is_relative_to_the_file(folder: Path, url: str) -> None:
    below = f"    source: {{kind: git, url: {url}, pre_fix_commit: {SHA}, fix_commit: {SHA}}}"
    upstreams = GOOD.replace("https://example.org/a/b", url)
    own = GOOD.replace("    source: {kind: path, pre_fix: a, fixed: b}", below)
    sources = [load_task_file(written(folder, upstreams)).tasks[0].source]
    sources.append(load_task_file(written(folder, own)).tasks[1].source)
    assert {getattr(source, "url", None) for source in sources} == {str((folder / url).resolve())}


def test_defaults_of_the_repository_reach_the_task(folder: Path) -> None:
    one, two = load_task_file(written(folder, GOOD)).tasks
    assert one.source == GitSource(url="https://example.org/a/b", pre_fix_commit=SHA, fix_commit=SHA)
    assert one.environment.pythonpath == ("src",)
    assert one.test_files == ("tests/test_a.py", "tests/test_b.py")
    assert one.lock_path == folder / "lock.txt"
    assert isinstance(two.source, PathSource)
    assert two.environment.pythonpath == ("lib",)
    assert two.contexts == {"flat": "other", "tree": "ctx"}


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("prompt_source: issue", "prompt_sauce: issue", 18, "prompt_sauce", "unknown key"),
        ("prompt_source: issue", "prompt_source: guess", 18, "prompt_source", "failing_test"),
        (f"fix_commit: {SHA}", "fix_commit: abc", 11, "commit", "pattern"),
        ("test_file: tests/test_a.py", "test_file: ../tests/test_a.py", 14, "test_file", "inside the repository"),
        ("test_file: tests/test_a.py", "test_file: /tests/test_a.py", 14, "test_file", "inside the repository"),
        ("    test_file: tests/test_a.py\n", "", 9, "tasks[0]", "needs `test_file`"),
        ("    issue: It breaks.\n", "", 16, "tasks[1]", "needs `issue`"),
        ("id: two", "id: one", 16, "tasks[1].id", "is used twice"),
        ("id: two", "id: two\n    id: three", 17, "tasks[1].id", "is used twice"),
        ("  url: https://example.org/a/b\n", "", 10, "pre_fix_commit", "url"),
        ("    lock: lock.txt\n", "    lock: gone.txt\n", 6, "repo.environment.lock", "no such file"),
        ("[src]", "src", 7, "pythonpath", "list"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    folder: Path, old: str, new: str, line: int, field: str, words: str
) -> None:
    assert old in GOOD
    error = refusal(folder, GOOD.replace(old, new, 1))
    assert words in error.message
    assert error.where is not None
    assert field in error.where or field in error.message
    assert error.where.startswith(f"{folder / 'tasks.yaml'}:{line}")


def test_a_lock_beside_the_file_is_for_python_and_for_node(folder: Path) -> None:
    def of_kind(kind: str, lock: str) -> str:
        return GOOD.replace(
            "    lock: lock.txt\n    pythonpath: [src]\n", f"    kind: {kind}\n    lock: {lock}\n"
        ).replace("      pythonpath: [lib]\n", "")

    assert "kind go takes no lock file" in refusal(folder, of_kind("go", "lock.txt")).message
    missing = refusal(folder, of_kind("node", "gone.json"))
    assert ("gone.json" in missing.message, missing.hint) == (
        True, "create it with `npm install --package-lock-only`",
    )  # fmt: skip
    first = load_task_file(written(folder, of_kind("node", "lock.txt"))).tasks[0]
    assert first.files == (folder / "tasks.yaml", folder / "lock.txt"), "a plan has both digests"
    none = GOOD.replace("    lock: lock.txt\n    pythonpath: [src]\n", "    kind: node\n")
    assert load_task_file(written(folder, none)).tasks[0].lock_path is None


def test_a_task_without_any_environment_is_refused(folder: Path) -> None:
    text = GOOD.replace("  environment:\n    lock: lock.txt\n    pythonpath: [src]\n", "")
    assert "environment" in str(refusal(folder, text))


def test_one_id_in_two_files_is_refused(folder: Path) -> None:
    first = written(folder, GOOD)
    second = written(folder, GOOD.replace("id: two", "id: three"), "more.yaml")
    with pytest.raises(OperatorError, match=r"'one' is already used in .*tasks\.yaml"):
        load_all([first, second])


def test_the_same_file_twice_is_read_once(folder: Path) -> None:
    path = written(folder, GOOD)
    assert [task.id for task in tasks_of(load_all([path, folder / "ctx" / ".." / "tasks.yaml"]))] == ["one", "two"]


@pytest.mark.parametrize(
    ("only", "expected"), [("", ["one", "two"]), ("only: [two]", ["two"]), ("only: [two, one]", ["one", "two"])]
)
def test_a_campaign_may_name_some_of_the_tasks(folder: Path, only: str, expected: list[str]) -> None:
    (folder / "tasks.yaml").write_text(GOOD)
    assert [task.id for task in campaign_tasks(campaign(folder, only))] == expected


def test_an_id_that_no_task_has_is_refused_with_its_line(folder: Path) -> None:
    (folder / "tasks.yaml").write_text(GOOD)
    with pytest.raises(OperatorError, match="no task 'three'") as caught:
        campaign_tasks(campaign(folder, "only: [three]"))
    assert caught.value.where is not None
    assert "campaign.yaml:2" in caught.value.where
    assert caught.value.hint == "use one of: one, two"


def campaign(folder: Path, line: str) -> yamlfile.Loaded[CampaignSpec]:
    path = folder / "campaign.yaml"
    path.write_text(
        f"campaign: c\n{line}\nseed: 1\ntasks: [tasks.yaml]\nconditions: [none]\nreps: 1\n"
        "agent: {kind: nop}\nstore: runs\n"
    )
    return yamlfile.read(path, CampaignSpec)
