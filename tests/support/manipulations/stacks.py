"""The stacks of the grammar, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.manipulations.commands import COMMANDS
from tests.support.manipulations.go import GO
from tests.support.manipulations.grammar import Stack
from tests.support.manipulations.java import JAVA
from tests.support.manipulations.javascript import JEST, MOCHA, NODE, VITEST
from tests.support.manipulations.python import PYTHON
from tests.support.manipulations.rust import RUST

STACKS: Mapping[str, Stack] = {
    stack.name: stack for stack in (PYTHON, COMMANDS, NODE, MOCHA, JEST, VITEST, GO, RUST, JAVA)
}
