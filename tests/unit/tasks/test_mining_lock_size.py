"""The size of a lock's packages is known before any is fetched, by the index's metadata."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Mapping

import pytest
from packaging.tags import sys_tags

from trialfleet_repository.environments import package_index
from trialfleet_tasks.mining.environment_failures import is_temporary
from trialfleet_tasks.mining.findings import RejectionReason
from trialfleet_tasks.mining.lock_size import count_download_bytes

PLATFORM = next(iter(sys_tags())).platform
OWN, ANY, OTHER, SOURCE, NEW, FOREIGN = (digit * 64 for digit in "abcdef")
FILES = {
    "torch": {
        OWN: (f"torch-2.0-cp312-cp312-{PLATFORM}.whl", 800),
        OTHER: ("torch-2.0-cp312-cp312-win_amd64.whl", 9000),
        SOURCE: ("torch-2.0.tar.gz", 7),
        FOREIGN: (f"torch-3.0-cp312-cp312-{PLATFORM}.whl", 5000),
    },
    "plain": {ANY: ("plain-1.0-py3-none-any.whl", 20), NEW: (f"plain-1.0-cp312-cp312-{PLATFORM}.whl", 30)},
}
LOCK = f"""torch==2.0 \\
    --hash=sha256:{OWN} \\
    --hash=sha256:{OTHER} \\
    --hash=sha256:{SOURCE}
plain==1.0 \\
    --hash=sha256:{ANY} \\
    --hash=sha256:{NEW}
unknown==1.0 \\
    --hash=sha256:{OWN}
"""


def _sizes(name: str) -> Mapping[str, tuple[str, int]]:
    return FILES.get(name, {})


@pytest.mark.parametrize(("python", "size"), [("3.12", 830), ("3.11", 20)])
def test_the_wheel_that_is_installed_counts(python: str, size: int) -> None:
    assert count_download_bytes(LOCK, python, _sizes) == size


def test_no_package_is_no_byte() -> None:
    assert count_download_bytes("# nothing\n", "3.12", _sizes) == 0


class _Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        files = [
            {"filename": name, "url": name, "hashes": {"sha256": sha}, "size": size}
            for sha, (name, size) in FILES.get(self.path.strip("/").rpartition("/")[2], {}).items()
        ]
        body = json.dumps({"files": [*files, {"filename": "old.zip", "url": "old.zip"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_an_index_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    package_index.find_sizes.cache_clear()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple")
    try:
        assert package_index.find_sizes("torch") == FILES["torch"]
        assert count_download_bytes(LOCK, "3.12", package_index.find_sizes) == 830
    finally:
        server.shutdown()
        server.server_close()
        package_index.find_sizes.cache_clear()


def test_an_index_that_is_away_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    package_index.find_sizes.cache_clear()
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert package_index.find_sizes("torch") == {}
    package_index.find_sizes.cache_clear()


def test_more_than_the_room_is_tried_again_with_more() -> None:
    said = "its packages are 6.1 GiB to download, more than --room 4.0"
    assert is_temporary(RejectionReason.ENVIRONMENT_FAILED, said)
