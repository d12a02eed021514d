"""What removes or replaces files is listed in deletions.tsv, with the proof that it is ours."""

from __future__ import annotations

import pytest

from tests.architecture.deletions import Place, places, proofs, scan

FORMS = {
    "import os\nos.remove(p)": "os.remove",
    "import os as system\nsystem.rmdir(p)": "os.rmdir",
    "import os\nwalk(onerror=os.unlink)": "os.unlink",
    "from os import unlink\nunlink(p)": "os.unlink",
    "from os import remove as tidy\ntidy(p)": "os.remove",
    "from posix import rename as r\nr(p, q)": "posix.rename",
    "from os import *": "os.*",
    "from shutil import rmtree as clear\nclear(p)": "shutil.rmtree",
    "def f():\n    import shutil\n    shutil.move(p, q)": "shutil.move",
    "import os\nos.replace(p, q)": "os.replace",
    "import os\nos.truncate(p, 0)": "os.truncate",
    "Path(p).unlink(missing_ok=True)": ".unlink",
    "drop = path.rmdir": ".rmdir",
    "path.rename(other)": ".rename",
    "path.replace(other)": ".replace",
    "subprocess.run(('rm', '-rf', p))": '"rm"',
    "subprocess.run(['mv', p, q])": '"mv"',
    "getattr(os, 'unlink')(p)": '"unlink"',
    "from trialfleet_ledger.removal import remove as away\naway(p)": "trialfleet_ledger.removal.remove",
    "from trialfleet_ledger import removal\nremoval.remove(p)": "trialfleet_ledger.removal.remove",
    "from trialfleet_ledger.removal import remove_entry as r\nr(p)": "trialfleet_ledger.removal.remove_entry",
}
WRITING = {
    "p.write_text('')": ".write_text",
    "p.open('w')": '.open("w")',
    "shutil.copyfile(p, q)": ".copyfile",
    "open(p, 'wb')": 'open("wb")',
}
HARMLESS = (
    "names.remove(x)",
    "text.replace('a', 'b')",
    "dataclasses.replace(x, y=1)",
    "tokens.truncate(t, 3)",
    "p.open('rb')",
)


@pytest.mark.parametrize("source", FORMS)
def test_every_form_of_a_call_is_seen(source: str) -> None:
    assert FORMS[source] in {place.call for place in scan(source, "m")}


@pytest.mark.parametrize("source", WRITING)
def test_what_truncates_is_seen_where_users_name_files(source: str) -> None:
    assert WRITING[source] in {place.call for place in scan(source, "m", writes=True)}
    assert list(scan(source, "m")) == []


@pytest.mark.parametrize("source", HARMLESS)
def test_what_removes_no_file_is_not_listed(source: str) -> None:
    assert list(scan(source, "m", writes=True)) == []


def test_a_place_is_named_by_its_function() -> None:
    source = "class A:\n    def f(self):\n        def g():\n            p.unlink()\n"
    assert list(scan(source, "m")) == [Place("m:A.f.g", ".unlink")]


def test_every_call_is_listed_with_its_proof() -> None:
    """A new call fails until it has a line: `python -m tests.architecture.deletions` prints them all."""
    listed = proofs()
    assert {place: count for place, (count, _) in listed.items()} == dict(places())
    assert [place for place, (_, proof) in listed.items() if len(proof) < 10] == []
