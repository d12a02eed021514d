"""`show` names the files of a bundle that were too long for it."""

from __future__ import annotations

from tests.support import ledgers as made
from trialfleet_controller.commands.show import lines_of
from trialfleet_ledger.bundle import described, pack, unpack
from trialfleet_ledger.records.manifest import Manifest


def test_a_file_that_was_cut_is_named_with_what_is_missing() -> None:
    frozen = made.plan()
    trial = made.trials(frozen)[0]
    whole = unpack(made.bundle_bytes(frozen, trial, 1))
    manifest: Manifest = whole.manifest.model_copy(
        update={"files": described(whole.files, {"prompt.txt": 12_345})}
    )
    bundle = unpack(pack(manifest, whole.files))
    said = list(lines_of(trial.id, (), None, bundle, None, ("prompt",), full=False))
    assert "── prompt: prompt.txt (cut: 12,345 bytes omitted)" in said
    assert said[-1].endswith("patch.diff, prompt.txt (cut: 12,345 bytes omitted)")
