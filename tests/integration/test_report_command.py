"""`trialfleet report` as its users call it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import UsageError
from click.testing import CliRunner, Result

from tests.support.ledgers import Fate, plan, write
from trialfleet_analysis.commands.report import report
from trialfleet_analysis.source import find_source
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.output_files import RECORD
from trialfleet_ledger.store.directory import DirectoryStore

NAMES = ("report.html", "report.md", "report.json")

CAMPAIGN = """
campaign: demo
seed: 1
tasks: [tasks.yaml]
conditions: [none, intent_layer]
reps: 2
agent: {kind: nop}
store: ../kept
"""


def call(*words: str) -> Result:
    return CliRunner().invoke(report, words, catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return write(tmp_path / "kept", plan(reps=2), lambda trial: Fate())


def test_by_folder_beside_the_campaign(store: DirectoryStore) -> None:
    result = call(str(store.root / "demo"))
    for name in NAMES:
        assert (store.root / "demo-report" / name).stat().st_size > 500
        assert str(store.root / "demo-report" / name) in result.output
    assert "no attempt was lost" in result.output
    assert "Core time per trial" in result.output or "Core seconds were not measured" in result.output
    assert re.search(r"none +100.0% +[\d.]+ to [\d.]+% +4/4 +0", result.output)


def test_by_campaign_file_whose_store_is_relative_to_it(store: DirectoryStore, tmp_path: Path) -> None:
    file = tmp_path / "there" / "campaign.yaml"
    file.parent.mkdir()
    file.write_text(CAMPAIGN)
    call(str(file), "--out", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*NAMES, RECORD}


def test_by_name_and_store(store: DirectoryStore, tmp_path: Path) -> None:
    call("demo", "--store", str(store.root), "--out", str(tmp_path / "out"))
    assert (tmp_path / "out" / "report.json").exists()


def test_json_is_the_report_without_its_rows(store: DirectoryStore, tmp_path: Path) -> None:
    result = call("demo", "--store", str(store.root), "--out", str(tmp_path / "out"), "--json")
    printed = json.loads(result.output)
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [Path(path).name for path in printed.pop("files")] == list(NAMES)
    assert sum(len(cell.pop("trials")) + len(cell.pop("endings")) for cell in written["cells"]) == 2 * 8
    assert printed == written


def test_a_comment_for_a_pull_request(store: DirectoryStore, tmp_path: Path) -> None:
    words = ("demo", "--store", str(store.root), "--out", str(tmp_path / "out"))
    said = call(*words, "--format", "github", "--link", "https://ci.example/1").output
    assert said.startswith("**")
    assert said.rstrip().endswith("[Full report](https://ci.example/1).")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*NAMES, RECORD}
    for wrong in (["--link", "https://ci.example/1"], ["--format", "github", "--json"]):
        with pytest.raises(UsageError):
            call(*words, *wrong)


def test_a_cut_bundle_is_not_counted_unless_unverified(store: DirectoryStore) -> None:
    bundle = next(store.root.glob("demo/attempts/*/1/bundle.tar.zst"))
    bundle.write_bytes(bundle.read_bytes()[:-1])
    folder = str(store.root / "demo")
    unverified = json.loads(call(folder, "--json", "--no-verify").output)
    assert unverified["quarantined"] == []
    assert any("not verified" in caution for caution in unverified["cautions"])
    assert len(json.loads(call(folder, "--json").output)["quarantined"]) == 1
    assert "quarantined" in call(folder).output


def test_a_contrast_that_cannot_be_answered_is_the_operators(store: DirectoryStore) -> None:
    folder = str(store.root / "demo")
    with pytest.raises(OperatorError, match="no condition 'nobody'"):
        call(folder, "--contrast", "none:nobody")
    with pytest.raises(OperatorError, match="differ in files, hook and pull"):
        call(folder, "--contrast", "intent_layer:none")
    asked = json.loads(call(folder, "--contrast", "intent_layer:none", "--packages", "--json").output)
    assert ("intent_layer", "none") in [(c["treatment"], c["control"]) for c in asked["analysis"]["contrasts"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "neither a campaign file nor"),
        (["demo", "--store", "/nonexistent"], "no campaign 'demo'"),
    ],
)
def test_what_is_not_there_is_the_operators(words: list[str], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        call(*words)


def test_an_unwritable_folder_is_the_operators(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="cannot write"):
        call(str(store.root / "demo"), "--out", str(tmp_path / "file" / "below"))


def test_sources() -> None:
    assert find_source("s3://bucket/prefix/demo/", None).store == "s3://bucket/prefix"
    assert find_source("s3://bucket/prefix/demo/", None).campaign == "demo"


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from trialfleet_analysis.commands.report import report;"
        "print(sorted({'scipy', 'numpy', 'boto3'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
