"""The languages: everything that differs between them is here, one module or folder for each."""

from trialfleet_repository.languages.ecmascript import ECMASCRIPT
from trialfleet_repository.languages.go import GO
from trialfleet_repository.languages.jvm import JVM
from trialfleet_repository.languages.protocol import (
    LANGUAGES,
    Language,
    all_formats,
    format_named,
    is_foreign,
    is_harness,
    is_junk,
    is_test_path,
    is_vendored,
    language_of,
    language_of_kind,
    register,
)
from trialfleet_repository.languages.python import PYTHON
from trialfleet_repository.languages.rust import RUST

__all__ = [
    "ECMASCRIPT",
    "GO",
    "JVM",
    "LANGUAGES",
    "PYTHON",
    "RUST",
    "Language",
    "all_formats",
    "format_named",
    "is_foreign",
    "is_harness",
    "is_junk",
    "is_test_path",
    "is_vendored",
    "language_of",
    "language_of_kind",
    "register",
]

for _language in (PYTHON, GO, ECMASCRIPT, RUST, JVM):
    register(_language)
