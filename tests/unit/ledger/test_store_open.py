"""From `store:` to a Store, without contacting or making anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.bucket_rules import expiring
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.open import open_folder_store, open_store
from trialfleet_ledger.store.s3 import S3Store
from trialfleet_ledger.store.server_address import is_remote, server_variables


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_") or name == "TRIALFLEET_S3_PATH_STYLE"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def s3(url: str = "s3://bucket/a/b", **settings: object) -> S3Store:
    store = open_store(url, **settings)  # type: ignore[arg-type]
    assert isinstance(store, S3Store)
    return store


def test_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert open_store("runs").url == str(tmp_path / "runs")
    assert open_store("runs", base=Path("/campaigns")).url == "/campaigns/runs"
    assert open_store("/runs", base=Path("/campaigns")).url == "/runs"
    assert open_store("~/runs", base=Path("/campaigns")).url == "/home/me/runs"
    assert open_store("file:///my%20runs").url == "/my runs"
    assert not (tmp_path / "runs").exists()
    assert open_store(open_store("runs").url) == open_store("runs")


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/a/b", "s3://bucket/a/b/"])
def test_buckets(url: str) -> None:
    store = s3(url)
    assert store.url == url.rstrip("/")
    assert store.bucket == "bucket"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gs://bucket/a",
        "file://host/a",
        "s3://",
        "s3://Bucket/a",
        "s3://ab/c",
        "s3:///a",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/a?endpoint=http://x",
        "s3://user@bucket/a",
        "s3://arn:aws:s3::1:accesspoint/x.mrap/a",
    ],
)
def test_what_is_no_store_is_refused_with_the_place_and_the_way_out(url: str) -> None:
    with pytest.raises(OperatorError) as error:
        open_store(url, where="campaign.yaml: store")
    assert error.value.where == "campaign.yaml: store"
    assert error.value.hint


def test_path_style_where_there_is_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert s3().grant_get("k", expires_s=60).url.startswith("https://bucket.s3.amazonaws.com/a/b/k?")
    assert s3(endpoint="http://h:1").grant_get("k", expires_s=60).url.startswith("http://h:1/bucket/a/b/k?")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://general:1")
    assert s3().endpoint == "http://general:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://special:1")
    assert s3().grant_get("k", expires_s=60).url.startswith("http://special:1/bucket/")
    monkeypatch.setenv("TRIALFLEET_S3_PATH_STYLE", "0")
    assert s3().grant_get("k", expires_s=60).url.startswith("http://bucket.special:1/a/b/k")
    assert s3(path_style=True).grant_get("k", expires_s=60).url.startswith("http://special:1/bucket/")
    monkeypatch.setenv("TRIALFLEET_S3_PATH_STYLE", "perhaps")
    with pytest.raises(OperatorError, match="TRIALFLEET_S3_PATH_STYLE"):
        s3()


def test_a_conditional_grant_signs_its_condition() -> None:
    grant = s3().grant_put("k", expires_s=60)
    assert "X-Amz-SignedHeaders=content-type%3Bhost%3Bif-none-match" in grant.url
    assert grant.headers == {"Content-Type": "application/octet-stream", "If-None-Match": "*"}
    assert grant.readback is not None
    live = s3().grant_put("k", conditional=False, expires_s=60)
    assert "if-none-match" not in live.url
    assert live.readback is None
    assert "secret" not in grant.url


def test_a_malformed_endpoint_is_the_operators() -> None:
    with pytest.raises(OperatorError, match="not a url"):
        s3(endpoint="not a url")


def test_a_directory_costs_no_boto3() -> None:
    opening = "from trialfleet_ledger.store.open import open_store; open_store('x')"
    for first in (opening, "import trialfleet_ledger.store.grants"):
        code = f"import sys; {first}; sys.exit('boto3' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_stores_of_directories_compare_by_place() -> None:
    assert open_store("/a") == DirectoryStore(Path("/a"))


RULES = [
    ({"Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}, True),
    ({"Status": "Enabled", "Prefix": "runs/mine", "Expiration": {"Date": "2030-01-01"}}, True),
    ({"Status": "Enabled", "Filter": {"Prefix": "runs/mine/x/"}, "Expiration": {"Days": 1}}, True),
    (
        {
            "Status": "Enabled",
            "Filter": {"And": {"Prefix": "runs/", "ObjectSizeLessThan": 9}},
            "Expiration": {"Days": 1},
        },
        True,
    ),
    ({"Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}, False),
    ({"Status": "Enabled", "Filter": {"Prefix": "runs/other/"}, "Expiration": {"Days": 1}}, False),
    ({"Status": "Enabled", "Filter": {"Tag": {"Key": "a", "Value": "b"}}, "Expiration": {"Days": 1}}, False),
    (
        {
            "Status": "Enabled",
            "Filter": {"And": {"Tags": [{"Key": "a", "Value": "b"}]}},
            "Expiration": {"Days": 1},
        },
        False,
    ),
    ({"Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}, False),
    ({"Status": "Enabled", "Filter": {}, "Expiration": {"ExpiredObjectDeleteMarker": True}}, False),
]


@pytest.mark.parametrize(("rule", "offends"), RULES)
def test_rules_that_delete_the_stores_objects(rule: object, offends: bool) -> None:
    assert bool(expiring([rule], "runs/mine/")) is offends  # type: ignore[list-item]


def test_a_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(OperatorError, match="no-such-profile") as refused:
        open_store("s3://bucket/prefix")
    assert refused.value.where == "environment: AWS_PROFILE"


@pytest.mark.parametrize("path_style", [True, False, None])
@pytest.mark.parametrize("endpoint", ["http://one:9000", None])
def test_another_process_finds_the_same_server_by_its_variables(
    endpoint: str | None, path_style: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = s3(endpoint=endpoint, path_style=path_style)
    for name, value in server_variables(endpoint=endpoint, path_style=path_style).items():
        monkeypatch.setenv(name, value)
    by_variables = s3()
    assert by_variables.endpoint == named.endpoint
    assert by_variables.client.meta.config.s3 == named.client.meta.config.s3  # type: ignore[attr-defined]


def test_only_a_store_that_is_a_folder_names_one(tmp_path: Path) -> None:
    assert s3().folder is None
    assert is_remote("s3://bucket/a")
    assert open_folder_store(tmp_path) == open_store(str(tmp_path))
    assert open_folder_store(tmp_path).folder == tmp_path
    assert not is_remote(str(tmp_path))
