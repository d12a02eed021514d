"""The sections `kubernetes:` and `store:` of a campaign file: what can be judged without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plans import kube_plan
from trialfleet_controller.campaigns import find, from_file, signing_for_pods
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.errors import OperatorError

GOOD = """\
campaign: demo
seed: 1
tasks: [task.yaml]
conditions: [none]
reps: 5
agent: {kind: nop}
store: {url: s3://bucket/x, endpoint: "http://here:1", pod_endpoint: "http://there:2"}
backend: kubernetes
kubernetes: {image: "runner:1"}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "task.yaml").write_text("")
    path = folder / "campaign.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('store: {url: s3://bucket/x, endpoint: "http://here:1", pod_endpoint: "http://there:2"}', "store: out",
         (":7: store", "directory of this machine", "s3://bucket/prefix")),
        ('{image: "runner:1"}', '{image: r, labels: {trialfleet.dev/campaign: x}}',
         (":9: kubernetes.labels.trialfleet.dev/campaign", "use another prefix")),
        ('{image: "runner:1"}', "{}", (":9: kubernetes.image",)),
        ('{image: "runner:1"}', "{image: r, namespaces: []}", (":9: kubernetes.namespaces",)),
        ('{image: "runner:1"}', "{image: r, graces: {pending_s: 0}}", (":9: kubernetes.graces.pending_s",)),
        ('{image: "runner:1"}', "{image: r, uids: {min: 0}}", (":9: kubernetes.uids.min",)),
        ('{image: "runner:1"}', "{image: r, uids: {max: 9}}", ("max 9 is below min 70000", "kubernetes.uids")),
        ("backend: kubernetes", "backend: local", ("belong together",)),
        ('kubernetes: {image: "runner:1"}\n', "", ("belong together", "kubernetes: {image:")),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in GOOD
    with pytest.raises(OperatorError) as error:
        load_campaign(write(tmp_path, GOOD.replace(old, new, 1)))
    for word in words:
        assert word in str(error.value)


def test_grants_are_signed_for_pods_also_when_the_campaign_is_named_by_its_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")):
        monkeypatch.setenv(name, value)
    found = from_file(write(tmp_path, GOOD))
    assert found.file is not None
    plan = kube_plan(pod_endpoint="http://there:2")
    assert found.store.grant_get("k", expires_s=60).url.startswith("http://there:2/bucket/x/k?")
    assert found.address.pod_endpoint == "http://there:2"
    assert signing_for_pods(found, plan) is found

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://here:1")
    by_url = signing_for_pods(find("s3://bucket/x/demo"), plan)
    assert by_url.store.grant_get("k", expires_s=60).url.startswith("http://there:2/bucket/x/k?")
    assert by_url.address.pod_endpoint == "http://there:2"
