"""One small campaign with its ledger in a real S3 server, from `run` to a copy that reports offline."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import buckets
from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from trialfleet_ledger.store.open import open_store

NAME = "shop-on-s3"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of the real server, which every command finds as any AWS tool does."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", os.environ["S3_ENDPOINT"])
    name = f"campaign-{secrets.token_hex(6)}"
    with buckets.bucket(name):
        yield name


@pytest.mark.needs("s3")
@pytest.mark.slow
def test_a_campaign_runs_reports_and_is_pulled(bucket: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    lab, url = Lab(tmp_path), f"s3://{bucket}/runs"
    file = campaign_file(
        lab, name=NAME, agent={"kind": "nop"}, store=url, conditions=("none", "intent_layer"), reps=2
    )
    assert "4/4 trials" in trialfleet("run", str(file), "--no-ray", "--no-report", lab=lab)
    store = open_store(url)
    keys = {entry.key for entry in store.list("")}
    assert sum(key.startswith(f"{NAME}/outcomes/") for key in keys) == 4
    assert sum(key.endswith("/end.json") for key in keys) == 4
    assert sum(key.endswith("/bundle.tar.zst") for key in keys) == 4
    assert any(key.startswith("objects/") for key in keys)

    for campaign in (str(file), f"{url}/{NAME}"):
        standing = json.loads(trialfleet("status", campaign, "--json", lab=lab))
        assert (standing["state"], standing["terminal"]) == ("complete", 4)
    report = json.loads(trialfleet("report", f"{url}/{NAME}", "--out", "report", "--json", lab=lab))
    assert [(cell["passes"], cell["valid"], cell["lost"]) for cell in report["cells"]] == [(0, 2, 0)] * 2
    assert report["quarantined"] == []
    assert (lab.root / "report/report.html").is_file()

    trialfleet("run", str(file), "--no-ray", "--no-report", lab=lab)  # finished: nothing is measured again
    assert {entry.key for entry in store.list("") if "/attempts/" in entry.key} == {
        key for key in keys if "/attempts/" in key
    }

    trialfleet("pull", str(file), "copy", lab=lab)
    offline = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
    copied = trialfleet("report", f"copy/{NAME}", "--out", "r2", "--json", lab=lab, env=offline)
    assert json.loads(copied)["cells"] == report["cells"]


@pytest.mark.needs("s3")
@pytest.mark.slow
def test_the_report_after_a_run_finds_the_store_where_the_campaign_file_says(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the address is in the environment: a URL alone would not find it."""
    endpoint = os.environ["S3_ENDPOINT"]
    tmp_path.chmod(0o755)
    lab = Lab(tmp_path)
    file = campaign_file(lab, name="said-by-file", agent={"kind": "nop"}, store="replaced")
    spec = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**spec, "store": {"url": f"s3://{bucket}/runs", "endpoint": endpoint}}))
    env = {"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": ""}
    assert "report.html" in trialfleet("run", str(file), "--no-ray", lab=lab, env=env)
    assert (lab.root / "said-by-file-report" / "report.html").is_file()
    again = trialfleet("resume", str(file), "--no-ray", "--out", "second", lab=lab, env=env)
    assert "second" in again
