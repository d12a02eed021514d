"""`trialfleet report` as its users call it, and its page in a real browser without network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.analysis.ledger_fixture import Fate, lifelike, lifelike_plan, plan, write
from trialfleet_analysis.commands import report
from trialfleet_analysis.source import find_source
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore

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
    assert "core seconds per trial" in result.output
    assert re.search(r"none +2/2 +0 +100.0%", result.output)


def test_by_campaign_file_whose_store_is_relative_to_it(store: DirectoryStore, tmp_path: Path) -> None:
    file = tmp_path / "there" / "campaign.yaml"
    file.parent.mkdir()
    file.write_text(CAMPAIGN)
    call(str(file), "--out", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(NAMES)


def test_by_name_and_store(store: DirectoryStore, tmp_path: Path) -> None:
    call("demo", "--store", str(store.root), "--out", str(tmp_path / "out"))
    assert (tmp_path / "out" / "report.json").exists()


def test_json_is_the_report_without_its_rows(store: DirectoryStore, tmp_path: Path) -> None:
    result = call("demo", "--store", str(store.root), "--out", str(tmp_path / "out"), "--json")
    printed = json.loads(result.output)
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [Path(path).name for path in printed.pop("files")] == list(NAMES)
    assert len(written.pop("trials")) == 8
    assert printed == written


def test_a_cut_bundle_is_not_counted_unless_unverified(store: DirectoryStore) -> None:
    bundle = next(store.root.glob("demo/attempts/*/1/bundle.tar.zst"))
    bundle.write_bytes(bundle.read_bytes()[:-1])
    folder = str(store.root / "demo")
    assert len(json.loads(call(folder, "--json").output)["quarantined"]) == 1
    assert "quarantined" in call(folder).output
    unverified = json.loads(call(folder, "--json", "--no-verify").output)
    assert unverified["quarantined"] == []
    assert any("not verified" in caution for caution in unverified["cautions"])


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
        "import sys; from trialfleet_analysis.commands import report;"
        "print(sorted({'scipy', 'numpy', 'boto3'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    write(folder / "store", lifelike_plan(reps=3), lifelike())
    call(str(folder / "store" / "preamble-vs-pull"), "--out", str(folder / "out"))
    return folder / "out" / "report.html"


def chromium(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Headless, with every host name unresolvable and a network log."""
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
                "--no-first-run",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--enable-logging=stderr",
                "--v=0",
                f"--user-data-dir={profile}",
                *options,
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "HOME": profile},
        )


def requested(log: Path) -> set[str]:
    """URLs that a page asked for; the browser's own errands have no origin as initiator."""
    events = json.loads(log.read_text())["events"]
    asked = [event["params"] for event in events if "url" in event.get("params", {})]
    return {params["url"] for params in asked if params.get("initiator", "not an origin") != "not an origin"}


@pytest.mark.needs("chromium")
def test_the_page_renders_without_network(page: Path, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    done = chromium(page, "--dump-dom", f"--log-net-log={log}")
    assert done.stdout.count("<tr>") + done.stdout.count("<tr ") > 40
    for name in ("intent_layer_preamble", "ansible-split-args-quoting", "How the numbers are made"):
        assert name in re.sub(r"<wbr>", "", done.stdout)
    assert "CONSOLE" not in done.stderr
    assert requested(log) == set()


@pytest.mark.needs("chromium")
def test_a_request_would_have_been_seen(page: Path, tmp_path: Path) -> None:
    """The control of the test above: a page that asks, with and without the policy."""
    asking = page.read_text().replace("</body>", '<img src="http://tracker.example/pixel"></body>')
    for text, expected in ((without_policy(asking), {"http://tracker.example/pixel"}), (asking, set[str]())):
        (tmp_path / "asking.html").write_text(text)
        done = chromium(tmp_path / "asking.html", "--dump-dom", f"--log-net-log={tmp_path / 'net.json'}")
        assert requested(tmp_path / "net.json") == expected
        assert "CONSOLE" in done.stderr or expected


def without_policy(text: str) -> str:
    bare, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert found == 1
    return bare


@pytest.mark.needs("chromium")
def test_the_page_fits_its_window(page: Path, tmp_path: Path) -> None:
    """Tables scroll in their frames: the page itself never scrolls sideways. Measured by a script that only
    this test adds; the page's own policy would refuse it, so the policy is taken out."""
    bare = without_policy(page.read_text())
    script = "<script>document.title = document.documentElement.scrollWidth - innerWidth</script>"
    measured = tmp_path / "measured.html"
    measured.write_text(bare.replace("</body>", f"{script}</body>"))
    for width in (500, 900, 1400):
        done = chromium(measured, "--dump-dom", f"--window-size={width},900")
        title = re.search(r"<title>(-?\d+)</title>", done.stdout)
        assert title is not None
        assert int(title[1]) <= 0, f"{title[1]} px too wide at {width} px"


@pytest.mark.needs("chromium")
def test_the_policy_stops_scripts(page: Path, tmp_path: Path) -> None:
    """The escaping has a second line behind it."""
    injected = tmp_path / "injected.html"
    script = "<script>document.title = 'owned'</script>"
    injected.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    assert "<title>owned</title>" not in chromium(injected, "--dump-dom").stdout
    injected.write_text(without_policy(injected.read_text()))
    assert "<title>owned</title>" in chromium(injected, "--dump-dom").stdout
