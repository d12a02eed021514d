"""A model provider in a pod, and what a campaign against it left in the bucket."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from backports import zstd

from tests.cluster.cluster import CHECKOUT, SERVES, restricted_pod
from tests.cluster.minimal import Minimal, kubectl
from tests.support.buckets import client
from tests.support.waiting import wait_until
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.trial_order import trials

PROVIDER = "provider"
MODEL, CONTROL = 8000, 8001  # ports of every provider


def provider(place: Minimal, module: ModuleType, *needed: ModuleType, answers: str) -> str:
    """The provider's address, as pods see it, once it answers. `module` runs with the modules `needed`, which the
    image lacks; `answers`: a question that it answers at once."""
    files = [Path(str(each.__file__)) for each in (module, *needed)]
    kubectl("create", "configmap", PROVIDER, *(f"--from-file={file}" for file in files), "-n", place.namespace)
    made = restricted_pod(PROVIDER, os.environ["TRIALFLEET_TEST_IMAGE"], "python3", "-m", module.__name__)
    (container,) = made["spec"]["containers"]
    container |= {"workingDir": "/provider", "resources": SERVES}
    container["volumeMounts"].append({"name": PROVIDER, "mountPath": "/provider"})
    items = [{"key": file.name, "path": str(file.relative_to(CHECKOUT))} for file in files]
    made["spec"]["volumes"].append({"name": PROVIDER, "configMap": {"name": PROVIDER, "items": items}})
    kubectl("create", "-n", place.namespace, "-f", "-", stdin=made)
    wait_until(lambda: _answers(place, answers))
    address = kubectl("get", "pod", PROVIDER, "-n", place.namespace, "-o", "jsonpath={.status.podIP}")
    return f"http://{address}:{MODEL}"


def _answers(place: Minimal, what: str) -> bool:
    try:
        asked(place, what)
    except AssertionError:
        return False
    return True


def asked(place: Minimal, what: str) -> Any:
    """The provider's answer, through the API server."""
    pod = f"/api/v1/namespaces/{place.namespace}/pods/{PROVIDER}:{CONTROL}/proxy/{what}"
    return json.loads(kubectl("get", "--raw", pod))


def results(file: Path) -> tuple[dict[str, End], dict[str, Bundle]]:
    """Of the last attempts, by condition."""
    campaign = from_file(file)
    ledger = Ledger(campaign.store, campaign.name)
    ends, bundles = dict[str, End](), dict[str, Bundle]()
    for trial in trials(ledger.plan()):
        n = len(ledger.attempts.chain(trial.id))
        attempt = ledger.attempts.attempt(trial.id, n)
        assert attempt is not None
        assert attempt.end is not None
        raw = ledger.store.get(keys.attempt_file(campaign.name, trial.id, n, "bundle.tar.zst"))
        assert raw is not None
        ends[trial.condition] = attempt.end
        bundles[trial.condition] = unpack(raw, attempt.end.bundle)
    return ends, bundles


def stored(bucket: str) -> dict[str, bytes]:
    """All of it, unpacked, by key."""
    s3 = client()
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    found = [item["Key"] for page in pages for item in page.get("Contents", ())]
    return {key: _plain(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in found}


def _plain(data: bytes) -> bytes:
    """Taken out of zstd, when it is in it; a tar lies open then."""
    if not data.startswith(b"\x28\xb5\x2f\xfd"):
        return data
    return zstd.ZstdDecompressor().decompress(data)
