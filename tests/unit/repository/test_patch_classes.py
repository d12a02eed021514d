"""A pass must come from the product: what an agent adds is the product's by its place, or judged apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch_classes import split_changes
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

SCORED = (
    *("README.md", "pyproject.toml", "scripts/test.sh", "src/shop/cart.py", "src/shop/data/a.json"),
    *("src/shop/testing.py", "src/shop/checks/__init__.py", "helpers/check.py", "src/shop/logo.svg"),
    *("src/shop/idle.py", "src/shop/mail/send.py"),
)
CLASSES = PatchClasses(
    rule="lookups",
    production=("src/shop/cart.py", "src/shop/data/a.json", "src/shop/logo.svg", "src/shop/stock.py"),
    packages=("src/shop", "src/shop/data"),
    used=("helpers/check.py", "src/shop/testing.py", "src/shop/checks/__init__.py"),
    missed=("sitecustom.py", "src/shop/local.ini", "extra", "org/junit/Assert.java"),
)
PRODUCT = """
    src/shop/cart.py src/shop/data/a.json src/shop/stock.py src/shop/new.py src/shop/page.html src/shop/data/b.json
    src/shop/tax/__init__.py src/shop/tax/rates/de.csv src/shop/data/deep/c.json
    src/shop/idle.py src/shop/mail/send.py src/shop/mail/new.py
"""
OTHERS = "src/other/a.py new.py CHANGELOG.md src/other/__init__.py"
LEFT = """
    sitecustom.py src/shop/local.ini extra extra/helpers.py org org/junit src/shop src/shop/data helpers
    README.md scripts/test.sh helpers/check.py helpers/new.py src/shop/testing.py src/shop/checks/__init__.py
    src/shop/checks/more.py src/shop/testing/__init__.py src/shop/testing.js src/shop/checks.py
    src/shop/testing.py/a helpers/check/__init__.py
"""


def changes_of(paths: str) -> Changes:
    return dict.fromkeys(paths.split(), TreeEntry(b"changed"))


def sides(changes: Changes, classes: PatchClasses | None = CLASSES) -> dict[str, str]:
    split = split_changes(changes, classes, SCORED)
    placed = [*((path, "product") for path in split.product), *((path, "others") for path in split.others)]
    placed += [(path, "left") for path in split.left]
    assert len(placed) == len(changes), "each change is in one side"
    return dict(placed)


@pytest.mark.parametrize(("paths", "side"), [(PRODUCT, "product"), (OTHERS, "others"), (LEFT, "left")])
def test_a_change_is_placed_by_its_path(paths: str, side: str) -> None:
    assert sides(changes_of(paths)) == dict.fromkeys(paths.split(), side)


def test_no_new_file_has_the_name_of_one_of_the_tests_side() -> None:
    used, other = changes_of("check.py src/check.py more/check/__init__.py"), changes_of("test.py more/test.py")
    assert set(sides(used).values()) == {"left"}
    assert set(sides(other).values()) == {"others"}, "the tests do not use scripts/test.sh"
    names = CLASSES.model_copy(update={"rule": "names"})
    assert set(sides({**used, **other}, names).values()) == {"left"}, "nobody knows what they use"


def test_a_removal_is_placed_as_a_change_is() -> None:
    removed: Changes = dict.fromkeys(map(str, f"{PRODUCT} {OTHERS} {LEFT}".split()))
    assert sides(removed) == sides(changes_of(" ".join(removed)))


def test_all_is_the_product_without_classes() -> None:
    assert set(sides(changes_of(f"{PRODUCT} {OTHERS} {LEFT}"), None).values()) == {"product"}


_NAMES = st.sampled_from(["a", "b", "a.py", "b.js", "a.ts", "__init__.py", "data.json"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_TREES = st.sets(_PATHS, max_size=12)


def is_possible(paths: set[str]) -> bool:
    """Whether no file is in the place of a folder."""
    return not any(is_below(path, paths - {path}) for path in paths)


def is_below(path: str, places: set[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


@given(_TREES.filter(is_possible), _TREES, _TREES, _TREES, _TREES)
def test_what_holds_of_any_classes(
    scored: set[str], production: set[str], folders: set[str], missed: set[str], changed: set[str]
) -> None:
    classes = PatchClasses(
        rule="lookups", production=tuple(production), packages=tuple(folders), missed=tuple(missed)
    )
    changes: Changes = dict.fromkeys(sorted(changed), TreeEntry(b""))
    split = split_changes(changes, classes, scored)
    assert sorted((*split.product, *split.others, *split.left)) == sorted(changed)
    assert changed & production <= split.product.keys()
    for path in split.product.keys() - production - scored:
        assert not is_below(path, missed)
        assert is_below(path, folders)
        assert not is_below(path, scored - production)
        assert not any(is_below(place, {path}) for place in missed)
    for path in split.product.keys() & scored - production:
        assert is_below(path, folders)
        assert not is_below(path, missed)
    used = split_changes(changes, classes.model_copy(update={"used": tuple(scored)}), scored)
    assert not used.product.keys() & scored - production
    for path in split.left:
        assert path not in production
    fewer = split_changes(changes, classes.model_copy(update={"missed": ()}), scored)
    assert split.product.keys() <= fewer.product.keys(), "a miss makes nothing the product's"
