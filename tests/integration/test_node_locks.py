"""Locks that npm makes for JavaScript repositories without one, with npm's registry."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.node_lock import NodeLocks

pytestmark = [pytest.mark.needs("bwrap", "node", "npm"), pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def locks(tmp_path: Path) -> NodeLocks:
    return NodeLocks(tmp_path / "tasks/locks", Cache(tmp_path / "cache"))


def tree(**facts: Any) -> dict[str, TreeEntry]:
    return {"package.json": TreeEntry(json.dumps(facts).encode()), "src/index.js": TreeEntry(b"")}


def versions(locks: NodeLocks, path: str) -> dict[str, str]:
    found: dict[str, dict[str, str]] = json.loads((locks.folder.parent / path).read_bytes())["packages"]
    return {name.removeprefix("node_modules/"): facts["version"] for name, facts in found.items() if name}


def test_where_the_registry_has_no_version_of_that_day_the_newest_that_is_permitted(locks: NodeLocks) -> None:
    """As a mirror does that dates packages when it first gets them."""
    manifests = tree(dependencies={"is-number": "~7.0.0"})
    found = locks.of(manifests, ".", date(2010, 1, 1))
    assert versions(locks, found.path) == {"is-number": "7.0.0"}
    assert found.fetch is None
    lock = locks.folder.parent / found.path
    lock.write_bytes(b"the same name for the same manifests")
    assert locks.of({**manifests, "src/index.js": TreeEntry(b"other")}, ".", date(2010, 1, 1)) == found
    assert lock.read_bytes() == b"the same name for the same manifests", "and it is not made again"


def test_peers_that_contradict_each_other(locks: NodeLocks) -> None:
    found = locks.of(tree(dependencies={"react": "16.0.0", "react-dom": "18.2.0"}), ".", date.today())
    assert versions(locks, found.path).items() >= {"react": "16.0.0", "react-dom": "18.2.0"}.items()
    assert found.fetch is not None
    assert found.fetch[0][-1] == "--legacy-peer-deps", "or `npm ci` refuses the lock"


def test_a_package_that_nobody_has(locks: NodeLocks) -> None:
    with pytest.raises(OperatorError, match=r"(?s)npm finds no versions: .*nobody-has-this-one-at-all"):
        locks.of(tree(dependencies={"nobody-has-this-one-at-all": "1"}), ".", date.today())
    assert not [*locks.folder.glob("*")]
