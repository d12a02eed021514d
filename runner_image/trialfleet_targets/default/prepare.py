"""What the method `default` keeps of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trialfleet_targets.default import functions, past
from trialfleet_targets.default.functions import Functions
from trialfleet_targets.default.past import Past
from trialfleet_targets.default.request import TOKENIZER
from trialfleet_targets.snapshot import Snapshot, SourceFile
from trialfleet_targets.text import fields
from trialfleet_targets.text.postings import Ints, Postings, Stored

FIELDS = ("path", "definitions", "methods", "imports", "content")


def prepare(snapshot: Snapshot, previous: Stored | None = None) -> Stored:
    """Of all files that can be targets: their words by field, those of their definitions, and their past.

    `previous`: what this gave for an earlier commit; the result is the same with and without it.
    """
    files = {path: file for path, file in sorted(snapshot.files.items()) if not file.test}
    before = Postings.restored(previous, "files") if previous is not None else None
    messages = Past.restored(previous, "past").messages if previous is not None else None
    words = fields.prepare(files, TOKENIZER, FIELDS, previous=before)
    return {
        **words.stored("files"),
        **_functions(files, words, before, previous).stored("functions"),
        **past.prepare(snapshot.history, words.positions, previous=messages).stored("past"),
    }


def _functions(
    files: Mapping[str, SourceFile], words: Postings, before: Postings | None, previous: Stored | None
) -> Functions:
    if before is None or previous is None:
        return functions.prepare(files, words.vocabulary)
    same = {
        name: at
        for at, (name, version) in enumerate(zip(before.names, before.versions, strict=True))
        if name in files and files[name].blob == version
    }
    return functions.prepare(
        files,
        words.vocabulary,
        previous=Functions.restored(previous, "functions"),
        known=same,
        moved=_moved(before, words),
    )


def _moved(before: Postings, now: Postings) -> Ints:
    """Number of each term then -> its number now; -1 for those that went with their files."""
    number = {word: at for at, word in enumerate(now.vocabulary)}
    return np.fromiter(
        (number.get(word, -1) for word in before.vocabulary), np.int32, count=len(before.vocabulary)
    )
