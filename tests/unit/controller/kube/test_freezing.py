"""When a campaign on Kubernetes is the one that is in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import kube_plan
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore


def freeze(folder: Path, **kube: Any) -> bool:
    return Ledger(DirectoryStore(folder), "demo").freeze(kube_plan(**kube))[1]


def test_how_fast_and_which_way_may_change(tmp_path: Path) -> None:
    assert freeze(tmp_path)
    assert not freeze(tmp_path, context="another", max_pending=7, creates_per_s=3, creates_burst=4)
    assert not freeze(tmp_path, forbidden_addresses=("10.0.0.1:443",))


@pytest.mark.parametrize("other", [{"image_id": "sha256:" + "0b" * 32}, {"runtime_class": "gvisor"}])
def test_what_a_pod_is_may_not(tmp_path: Path, other: dict[str, Any]) -> None:
    freeze(tmp_path)
    with pytest.raises(OperatorError, match="differ in: kubernetes"):
        freeze(tmp_path, **other)
