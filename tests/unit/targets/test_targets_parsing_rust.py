"""What a Rust file says about itself."""

from __future__ import annotations

from trialfleet_targets.parsing import parse
from trialfleet_targets.syntax_facts import FileFacts, Import

SOURCE = """\
use crate::args::{self, Flag, parse as read, low::*, high::{Mode}};
pub use self::walk::Walker;
use super::shared;
extern crate regex as re;
mod walk;
#[path = "sys/unix.rs"]
pub mod sys;

pub struct Engine<T>(T);
pub trait Search: Clone + Visit<u8> {
    fn run(&self);
}
impl<T> Search for Engine<T> {
    fn run(&self) {
        self.reset();
        crate::log::warn(1);
        Flag::new();
        go::<T>();
        debug!("x");
    }
}
impl Engine<u8> {
    pub const MAX: u8 = 1;
    pub(crate) fn open() {}
}
const SMALL: u8 = 1;
pub type Alias = u8;
macro_rules! twice { () => {} }

#[cfg(test)]
mod tests {
    use super::*;
    use super::super::other::Thing;
}
"""


def facts(source: str = SOURCE) -> FileFacts:
    found = parse("src/search/mod.rs", source.encode())
    assert found is not None
    assert found.problem == ""
    return found


def test_definitions() -> None:
    assert [(d.name, d.kind.value, d.line, d.owner, d.exported) for d in facts().definitions] == [
        ("walk", "module", 5, "", False),
        ("sys", "module", 7, "", True),
        ("Engine", "class", 9, "", True),
        ("Search", "interface", 10, "", True),
        ("run", "method", 11, "Search", True),
        ("run", "method", 14, "Engine", True),
        ("MAX", "constant", 23, "Engine", True),
        ("open", "method", 24, "Engine", True),
        ("SMALL", "constant", 26, "", False),
        ("Alias", "type", 27, "", True),
        ("twice", "function", 28, "", False),
        ("tests", "module", 31, "", False),
    ]


def test_uses_modules_and_paths_in_calls() -> None:
    assert facts().imports == (
        Import("crate", (("args", "args"),)),
        Import("crate::args", (("Flag", "Flag"), ("parse", "read"))),
        Import("crate::args::low", (("*", ""),)),
        Import("crate::args::high", (("Mode", "Mode"),)),
        Import("self::walk", (("Walker", "Walker"),), re_export=True),
        Import("super", (("shared", "shared"),)),
        Import("regex", (("*", "re"),)),
        Import("self::walk", ()),
        Import("./sys/unix.rs", (("*", "sys"),)),
        Import("crate::log", (("warn", "log::warn"),)),
        Import("self", (("*", ""),)),
        Import("super::other", (("Thing", "Thing"),)),
    )


def test_calls_and_traits() -> None:
    found = facts()
    assert [(c.name, c.receiver) for c in found.calls] == [
        ("reset", "self"),
        ("warn", "log"),
        ("new", "Flag"),
        ("go", ""),
        ("debug", ""),
    ]
    assert [(i.child, i.parent) for i in found.inheritance] == [
        ("Search", "Clone"),
        ("Search", "Visit"),
        ("Engine", "Search"),
    ]


def test_items_under_a_conditional_macro() -> None:
    source = "cfg_io! {\n    pub mod read;\n    pub use read::Reader;\n    cfg_fs! { pub fn open() {} }\n}\n"
    source += "pub fn last() {}\n"
    found = facts(source)
    assert [(d.name, d.line) for d in found.definitions] == [("read", 2), ("open", 4), ("last", 6)]
    assert Import("read", (("Reader", "Reader"),), re_export=True) in found.imports
