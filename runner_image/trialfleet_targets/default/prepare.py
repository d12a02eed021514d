"""The arrays that the method `default` stores in the index."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trialfleet_targets.arrays import Stored, restored, stored
from trialfleet_targets.default import functions, history_index
from trialfleet_targets.default.functions import Earlier, Functions
from trialfleet_targets.default.history_index import HistoryIndex
from trialfleet_targets.default.request import TOKENIZER
from trialfleet_targets.snapshot import Snapshot, SourceFile
from trialfleet_targets.text import fields
from trialfleet_targets.text.postings import Postings, unchanged

FIELDS = ("path", "definitions", "methods", "imports", "content")


def prepare(snapshot: Snapshot, previous: Stored | None = None) -> Stored:
    """For all possible targets: their words by field, the words of their definitions, and their history.

    `previous`: what this gave for an earlier commit; the result is the same with and without it.
    """
    files = {path: file for path, file in sorted(snapshot.files.items()) if not file.test}
    before = Postings.restored(previous, "files") if previous is not None else None
    messages = HistoryIndex.restored(previous, "past").messages if previous is not None else None
    words = fields.prepare(files, TOKENIZER, FIELDS, previous=before)
    return {
        **words.stored("files"),
        **stored(_functions(files, words, before, previous), "functions"),
        **history_index.prepare(snapshot.history, words.positions, previous=messages).stored("past"),
    }


def _functions(
    files: Mapping[str, SourceFile], words: Postings, before: Postings | None, previous: Stored | None
) -> Functions:
    if before is None or previous is None:
        return functions.prepare(files, words.vocabulary)
    same = unchanged(before.names, before.versions, {path: file.blob for path, file in files.items()})
    number = {word: at for at, word in enumerate(words.vocabulary)}
    moved = np.fromiter((number.get(word, -1) for word in before.vocabulary), np.int32)
    return functions.prepare(
        files, words.vocabulary, Earlier(restored(Functions, previous, "functions"), same, moved)
    )
