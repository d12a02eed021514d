"""Names that code imports from other packages, which a test may use without being told, and its own."""

from __future__ import annotations

import re
import time

import pytest

from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.added_names import added_names
from trialfleet_tasks.mining.imported_names import own_packages, without_imported

TREES = {
    "a.py": {"shop/cart.py": b""},
    "web/a.ts": {"package.json": b'{"name": "@shop/web-cart"}'},
    "src/org/shop/A.java": {"src/org/shop/Cart.java": b""},
    "src/a.rs": {"Cargo.toml": b'[package]\nname = "shop-cart"\n'},
}
CODE = {
    "a.py": """
import os.path, zlib as squeezed
from urllib.parse import (
    quote,
    unquote as plain,
)
from shop.cart import Rounded
from . import near
def own(): return plain(squeezed.crc32(quote(Rounded)))
""",
    "web/a.ts": """
import type { Context } from 'express'
import fallback, {
  parseBody as parsed,
} from "node:querystring";
import { Rounded } from "@shop/web-cart/money"
import { near } from '../near'
import { aliased } from '@/aliased'
export const own = (c: Context) => parsed(fallback.later, Rounded, near, aliased)
""",
    "src/org/shop/A.java": """
import java.time.Duration;
import static org.other.Checks.assertEmpty;
import org.shop.Cart;
import static org.shop.Cart.Rounded;
class A { Duration own() { assertEmpty(Rounded, Cart, Duration.ofDays(1)); } }
""",
    "src/a.rs": """
use std::collections::{BTreeMap, HashMap as Table};
pub use serde::Deserialize;
use shop_cart::Rounded;
use crate::near::near;
pub fn own(a: BTreeMap, b: Table) -> Rounded { Deserialize(Table::with_hasher()) }
""",
}
FOREIGN = {
    "a.py": {"zlib", "squeezed", "quote", "unquote", "plain", "urllib", "crc32"},
    "web/a.ts": {"Context", "fallback", "parseBody", "parsed", "later"},
    "src/org/shop/A.java": {"Duration", "Checks", "assertEmpty", "ofDays"},
    "src/a.rs": {"BTreeMap", "HashMap", "Table", "Deserialize", "serde", "with_hasher"},
}


@pytest.mark.parametrize("path", CODE)
def test_what_comes_from_other_packages_is_not_the_fixs(path: str) -> None:
    before = {name: TreeEntry(data) for name, data in TREES[path].items()}
    found = added_names(before, {path: TreeEntry(CODE[path].encode())})
    assert found.isdisjoint(FOREIGN[path])
    assert {"Rounded", "own"} <= found
    assert ("near" in found) == ("near" in CODE[path])
    assert ("aliased" in found) == ("aliased" in CODE[path])


def test_a_module_that_the_fix_adds_is_its_own() -> None:
    fix = {"a.py": TreeEntry(b"from money import rounded"), "money.py": TreeEntry(b"def rounded(): ...")}
    assert added_names({}, fix) >= {"rounded"}
    assert added_names({}, {"a.py": fix["a.py"]}) == frozenset({"from", "import"})


def test_a_name_that_another_file_of_the_fix_defines_is_its_own() -> None:
    fix = {"a.py": TreeEntry(b"from lib import rounded"), "b.py": TreeEntry(b"def rounded(): ...")}
    assert "rounded" in added_names({}, fix)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", b"from a import (\n"),
        ("a.ts", b"import {\n"),
        ("a.rs", b"use a::{\n"),
        ("a.go", b"import (\n"),
        ("a.java", b"import a.\n"),
    ],
)
def test_imports_without_an_end_are_read_in_no_time(path: str, line: bytes) -> None:
    code = line * 10_000
    began = time.process_time()
    assert re.sub(rb"\W", b"", without_imported(path, code, own_packages({})))
    assert time.process_time() - began < 10
