"""What of a file is searched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Definition, DefinitionKind, FileFacts, Import, ParsedLanguage
from trialfleet_targets.text import fields
from trialfleet_targets.text.tokens import Tokenizer

FACTS = FileFacts(
    ParsedLanguage.TYPESCRIPT,
    definitions=(
        Definition("SessionGuard", DefinitionKind.CLASS, 3, 20, exported=True),
        Definition("refresh", DefinitionKind.METHOD, 5, 9, owner="SessionGuard", exported=True),
        Definition("internalClock", DefinitionKind.FUNCTION, 22, 30),
    ),
    imports=(Import("../db/pool", (("Pool", "Pool"), ("open", "connect"))), Import("left-pad", (("*", ""),))),
)
FILE = SourceFile("src/session.dir/guard.test.ts", "1", FACTS, "const answer = clock()")


def counted(field: str) -> dict[str, int]:
    return dict(fields.document(FILE, Tokenizer(), [field]).counts[field])


def test_each_field_takes_its_words() -> None:
    assert counted("path") == {"src": 1, "session": 1, "dir": 1, "guard": 1, "test": 1}
    assert counted("symbols") == {"session": 1, "guard": 1}
    assert counted("definitions") == {"session": 1, "guard": 1, "internal": 1, "clock": 1}
    assert counted("methods") == {"refresh": 1}
    assert counted("imports") == {"db": 1, "pool": 2, "open": 1, "connect": 1, "left": 1, "pad": 1}
    assert counted("content") == {"const": 1, "answer": 1, "clock": 1}


@pytest.mark.parametrize(("language", "methods"), [(one, one in ("go", "java")) for one in ParsedLanguage])
def test_exported_methods_are_symbols_in_go_and_java(language: ParsedLanguage, methods: bool) -> None:
    hidden = Definition("tick", DefinitionKind.METHOD, 11, 12, owner="SessionGuard")
    nested = Definition("Inner", DefinitionKind.CLASS, 13, 14, owner="SessionGuard", exported=True)
    facts = replace(FACTS, language=language, definitions=(*FACTS.definitions, hidden, nested))
    found = set(fields.symbols(replace(FILE, facts=facts)))
    assert found == ({"SessionGuard", "refresh"} if methods else {"SessionGuard"})
    assert set(fields.definitions(replace(FILE, facts=facts))) == {"SessionGuard", "internalClock"}
