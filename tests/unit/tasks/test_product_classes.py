"""The classes of a task's files, by rule in each language: no list of known settings decides."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch_classes import split_changes
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_tasks.validate import product_classes
from trialfleet_tasks.validate.product_classes import PathLookups, TooManyLookups, find_classes
from trialfleet_tasks.variants import Variants


def entries(files: Mapping[str, str]) -> dict[str, TreeEntry]:
    return {path: TreeEntry(text.encode()) for path, text in files.items()}


def variants_of(pristine: Tree, fix: Tree) -> Variants:
    return Variants(pristine, pristine, dict(fix), (), tuple(fix), (), ())


_MARKS = "+~^"


@dataclass(frozen=True)
class Repository:
    """`product`: changes of these paths are the product's. `apart`: not. `missing`: not, since the tests look for
    them. Marks: `+` a new file, `~` one that is the product's by look-ups alone, `^` one that is by names alone.
    `misses`: recorded."""

    files: Mapping[str, str]
    fix: Mapping[str, str]
    product: str
    apart: str
    missing: str = ""
    misses: Collection[str] = ()
    roots: tuple[str, ...] = ()

    def classes(self, lookups: PathLookups | None) -> PatchClasses:
        return find_classes(variants_of(entries(self.files), entries(self.fix)), self.roots, lookups)

    def sides(self, classes: PatchClasses) -> dict[str, str]:
        paths = [word.lstrip(_MARKS) for word in f"{self.product} {self.apart} {self.missing}".split()]
        split = split_changes(dict.fromkeys(paths, TreeEntry(b"x")), classes, self.files)
        return dict.fromkeys(paths, "apart") | dict.fromkeys(split.product, "product")

    def wanted(self, *, by_names: bool) -> dict[str, str]:
        sides: dict[str, str] = {}
        for side, words in (("product", self.product), ("apart", self.apart), ("apart", self.missing)):
            for word in words.split():
                named = "product" if "^" in word else "apart" if "~" in word else side
                sides[word.lstrip(_MARKS)] = named if by_names else side
        return sides


PYTHON = Repository(
    files={
        "pyproject.toml": '[project]\nname = "the-shop"\n[project.scripts]\nshop = "shop.cli:main"',
        "src/shop/__init__.py": "from shop.cart import total",
        "src/shop/__main__.py": "",
        "src/shop/cli.py": "from . import prices",
        "src/shop/cart.py": "import shop.tax.rates\nLAZY = 'shop.lazy'",
        "src/shop/prices.py": "def broken(:",
        "src/shop/lazy.py": "",
        "src/shop/testing.py": "from shop.cart import total",
        "src/shop/tax/__init__.py": "",
        "src/shop/tax/rates.py": "from ..model.item import Item",
        "src/shop/model/item.py": "",
        "src/shop/page/index.html": "",
        "src/shop/static/app.js": "",
        "src/shop/checks/__init__.py": "",
        "src/shop/checks/rules.json": "",
        "src/the_shop/__init__.py": "",
        "helpers/check.py": "import shop",
        "tools/plugin.py": "",
        "docs/index.md": "",
        "setup.py": "setup(entry_points={'console_scripts': ['shop = shop.legacy:main']})",
        "src/shop/legacy.py": "",
        "tests/test_cart.py": "from helpers.check import same\nimport tools.plugin",
    },
    fix={"src/shop/cart.py": "import shop.added.thing", "src/shop/added/thing.py": "", "src/shop/a.json": "{}"},
    product="""
        src/shop/__init__.py src/shop/__main__.py src/shop/cli.py src/shop/cart.py src/shop/prices.py
        src/shop/lazy.py src/shop/legacy.py src/shop/tax/rates.py src/shop/model/item.py src/the_shop/__init__.py
        src/shop/page/index.html src/shop/static/app.js src/shop/added/thing.py src/shop/a.json
        +src/shop/new.py +src/shop/sub/__init__.py +src/shop/sub/b.json +src/shop/page/new.html
        ~src/other/__init__.py
    """,
    apart="""
        +new.py
        src/shop/testing.py src/shop/checks/__init__.py src/shop/checks/rules.json helpers/check.py tools/plugin.py
        docs/index.md setup.py +helpers/new.py +src/shop/testing/__init__.py +src/shop/checks/new.py +docs/new.md
    """,
    missing="+extra/helpers.py +src/helpers.py ^src/shop/local.ini",
    misses=("extra", "src/helpers.py", "src/shop/local.ini", "src/shop/sub", "conftest.py", "src/shop/new.py"),
    roots=("src", "."),
)
JAVASCRIPT = Repository(
    files={
        "package.json": '{"name": "shop", "main": "dist/index.js", "bin": {"shop": "./bin/shop.js"}}',
        "jest.json": '{"setupFilesAfterEnv": ["./src/setup.js", "./config/setup.mjs"]}',
        "src/index.ts": "export * from './cart';",
        "src/cart.ts": "import { tax } from '@/tax/index.js';\nconst lazy = () => import('./lazy');",
        "src/lazy.tsx": "import Page from './Page.vue'; import core from '@shop/core'",
        "src/Page.vue": "<script>import x from './page-data.json'</script>",
        "src/page-data.json": "{}",
        "src/tax/index.ts": "require('./rates')",
        "src/tax/rates.js": "",
        "src/setup.js": "import './cart'",
        "src/factory.ts": "import './cart'",
        "config/setup.mjs": "import '../src/setup.js'",
        "bin/shop.js": "",
        "packages/core/package.json": '{"name": "@shop/core", "exports": {".": {"import": "./lib/main.js"}}}',
        "packages/core/lib/main.js": "",
        "packages/kit/package.json": '{"name": "@shop/kit"}',
        "packages/kit/index.js": "",
        "src/cart.test.ts": "import '@shop/kit'; import './factory'",
    },
    fix={"src/cart.ts": "export {}"},
    product="""
        src/index.ts src/cart.ts src/lazy.tsx src/Page.vue src/page-data.json src/tax/index.ts src/tax/rates.js
        bin/shop.js packages/core/lib/main.js +src/new.ts +src/deep/new.js +src/tax/table.json ~lib/new.ts
    """,
    apart="""
        src/setup.js src/factory.ts config/setup.mjs packages/kit/index.js +src/setup.ts +src/factory.js
        +src/factory/index.js +config/new.mjs +packages/kit/new.js
    """,
    missing="+postcss.config.js +.browserslistrc",
    misses=("postcss.config.js", ".browserslistrc", "src/deep", "src/new.ts"),
)
GO = Repository(
    files={
        "go.mod": "module x.org/shop\n",
        "shop.go": 'package shop\nimport "x.org/shop/internal/tax"',
        "cart/cart.go": 'package cart\nimport (\n\t"fmt"\n\tt "x.org/shop/internal/tax"\n)',
        "cart/page.html": "",
        "cmd/shop/main.go": 'package main\nimport "x.org/shop/stock"',
        "stock/stock.go": 'package stock\nimport "x.org/shop/internal/log"',
        "internal/tax/tax.go": "package tax",
        "internal/log/log.go": "package log",
        "internal/check/check.go": "package check",
        "cart/cart_test.go": 'package cart\nimport "x.org/shop/internal/check"',
        "scripts/build.sh": "",
    },
    fix={"cart/cart.go": "package cart"},
    product="""
        shop.go cart/cart.go cart/page.html cmd/shop/main.go stock/stock.go internal/tax/tax.go
        +cart/new.go +new.go +cart/inner/new.go ~internal/added/new.go +added/new.go
    """,
    apart="internal/check/check.go +internal/check/new.go scripts/build.sh +scripts/new.sh",
)
RUST = Repository(
    files={
        "Cargo.toml": '[workspace]\nmembers = ["*"]\n[workspace.dependencies]\ntax = {path = "tax"}',
        "shop/Cargo.toml": '[package]\nname = "shop"\nbuild = "build/main.rs"\n'
        '[dependencies]\ntax.workspace = true\n[dev-dependencies]\nkit = {path = "../kit"}',
        "shop/build/main.rs": "fn main() {}",
        "shop/src/lib.rs": '#[cfg(test)]\nmod checks;\npub mod cart;\n#[path = "odd/name.rs"]\nmod odd;',
        "shop/src/cart.rs": "pub(crate) mod price;",
        "shop/src/cart/price.rs": 'include!("table.in.rs");',
        "shop/src/cart/table.in.rs": "",
        "shop/src/odd/name.rs": "",
        "shop/src/bin/tool.rs": "mod args;",
        "shop/src/bin/args.rs": "",
        "shop/src/checks.rs": "",
        "shop/src/page.html": "",
        "tax/Cargo.toml": '[package]\nname = "tax"',
        "tax/src/lib.rs": "",
        "kit/Cargo.toml": '[package]\nname = "kit"',
        "kit/src/lib.rs": "",
    },
    fix={"shop/src/cart.rs": "mod price;"},
    product="""
        shop/src/lib.rs shop/src/cart.rs shop/src/cart/price.rs shop/src/cart/table.in.rs shop/src/odd/name.rs
        shop/src/bin/tool.rs shop/src/bin/args.rs shop/src/page.html tax/src/lib.rs
        +shop/src/new.rs +shop/src/new/mod.rs +tax/src/new.rs
    """,
    apart="""
        shop/build/main.rs +shop/build/new.rs shop/src/checks.rs +shop/src/checks/mod.rs kit/src/lib.rs
        +kit/src/new.rs
    """,
)
_POM = "<project><parent><artifactId>all</artifactId></parent><artifactId>{}</artifactId>{}</project>"
_NEEDS = "<dependency><artifactId>{}</artifactId>{}</dependency>"
JVM = Repository(
    files={
        "pom.xml": "<project><artifactId>all</artifactId></project>",
        "shop/pom.xml": _POM.format(
            "shop", _NEEDS.format("tax", "") + _NEEDS.format("kit", "<scope>test</scope>")
        ),
        "shop/src/main/java/org/acme/shop/Cart.java": "package org.acme.shop;",
        "shop/src/main/resources/messages.properties": "",
        "shop/src/test/java/org/acme/shop/CartTest.java": "",
        "tax/pom.xml": _POM.format("tax", ""),
        "tax/src/main/kotlin/org/acme/tax/Rate.kt": "package org.acme.tax",
        "kit/pom.xml": _POM.format("kit", ""),
        "kit/src/main/java/org/acme/kit/Check.java": "package org.acme.kit;",
    },
    fix={"shop/src/main/java/org/acme/shop/Cart.java": "package org.acme.shop; //"},
    product="""
        shop/src/main/java/org/acme/shop/Cart.java shop/src/main/resources/messages.properties
        tax/src/main/kotlin/org/acme/tax/Rate.kt +shop/src/main/java/org/acme/shop/New.java
        +shop/src/main/java/org/acme/shop/sub/New.java
    """,
    apart="""
        +shop/src/main/java/org/acme/added/New.java kit/src/main/java/org/acme/kit/Check.java
        +kit/src/main/java/org/acme/kit/New.java
    """,
    missing="""
        +shop/src/main/java/org/junit/jupiter/api/Assertions.java
        +shop/src/main/resources/junit-platform.properties
        +shop/src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener
    """,
    misses=(
        "shop/src/main/java/org/junit/jupiter/api/Assertions.java",
        "shop/src/main/resources/junit-platform.properties",
        "shop/src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener",
    ),
)
COMMANDS = Repository(
    files={"lib/shop.rb": "", "lib/tax.rb": "", "run-tests.sh": "", "spec/cart.rb": ""},
    fix={"lib/shop.rb": "1"},
    product="lib/shop.rb ~lib/new.rb",
    apart="lib/tax.rb run-tests.sh spec/cart.rb",
)
ALL = {
    "Python": PYTHON,
    "JavaScript": JAVASCRIPT,
    "Go": GO,
    "Rust": RUST,
    "JVM": JVM,
    "commands": COMMANDS,
}


@pytest.mark.parametrize("name", ALL)
def test_changes_are_placed_by_recorded_lookups(name: str) -> None:
    repository = ALL[name]
    lookups = PathLookups(frozenset(repository.files), frozenset(repository.misses))
    classes = repository.classes(lookups)
    assert repository.sides(classes) == repository.wanted(by_names=False)
    assert classes.rule == "lookups"


@pytest.mark.parametrize("name", ALL)
def test_changes_are_placed_by_names_alone(name: str) -> None:
    repository = ALL[name]
    classes = repository.classes(None)
    assert repository.sides(classes) == repository.wanted(by_names=True)
    assert (classes.rule, classes.used, classes.missed) == ("names", (), ())


def test_a_class_of_a_library_below_the_default_package_does_not_travel() -> None:
    source, forged = "src/main/java/Cart.java", "src/main/java/org/junit/jupiter/api/Assertions.java"
    variants = variants_of(entries({source: "", "pom.xml": ""}), entries({source: "//"}))
    classes = find_classes(variants, (), PathLookups(frozenset([source]), frozenset([forged])))
    new = {forged: TreeEntry(b""), "src/main/java/tax/Rate.java": TreeEntry(b"")}
    split = split_changes(new, classes, variants.pristine)
    assert (set(split.product), split.left) == ({"src/main/java/tax/Rate.java"}, (forged,))


_CALLERS = {
    "shop/__init__.py": "",
    "shop/calc.py": "",
    "shop/api.py": "from shop import calc\ndef price(): ...",
    "shop/page.py": "from .api import price",
    "shop/checks.py": "from shop.calc import off\ndef same(a):\n    assert off(a)",
    "shop/testing.py": "from shop.calc import off",
    "shop/plugin.py": "import pytest, shop.calc",
    "shop/compare.py": "from shop.calc import off\ndef same(a, b):\n    if off(a) != b: raise ValueError",
    "shop/other.py": "",
    "tests/test_calc.py": "def test_off():\n    compare.same(1, 2)\n    assert price(1) == 2",
    "tools/load.py": "import shop.calc",
}


def test_callers_of_a_changed_python_module_are_the_products() -> None:
    classes = find_classes(variants_of(entries(_CALLERS), entries({"shop/calc.py": "1"})), (), None)
    assert classes.production == ("shop/__init__.py", "shop/api.py", "shop/calc.py", "shop/page.py")


def test_callers_in_a_flat_layout_are_next_to_the_changed_module() -> None:
    files = {"calc.py": "", "api.py": "import calc", "tools/load.py": "import calc"}
    classes = find_classes(variants_of(entries(files), entries({"calc.py": "1"})), (".",), None)
    assert classes.production == ("api.py", "calc.py")


def test_existing_files_that_no_test_looks_up_are_as_good_as_new_ones() -> None:
    files = {
        **dict.fromkeys(("shop/__init__.py", "shop/calc.py", "shop/models.py", "shop/services/mail.py"), ""),
        **dict.fromkeys(("shop/kit/same.py", "shop/kit/idle.py", "shop/used.py", "docs/conf.py", "tool.py"), ""),
    }
    variants = variants_of(entries(files), entries({"shop/calc.py": "1"}))
    used = frozenset(("shop/__init__.py", "shop/calc.py", "shop/kit/same.py", "shop/used.py"))
    changes = dict.fromkeys((*files, "shop/services/new.py", "shop/kit/new.py"), TreeEntry(b"x"))
    split = split_changes(changes, find_classes(variants, (), PathLookups(used)), files)
    idle = {"shop/models.py", "shop/services/mail.py", "shop/services/new.py"}
    assert set(split.product) == {"shop/__init__.py", "shop/calc.py", *idle}
    by_names = split_changes(changes, find_classes(variants, (), None), files)
    assert set(by_names.product) == {"shop/__init__.py", "shop/calc.py"}


@pytest.mark.parametrize(
    ("loader", "code"),
    [
        ("app/load.py", "import_module(f'{__package__}.{name}')"),
        ("app/load.py", "for found in pkgutil.walk_packages(__path__): ..."),
        ("app/load.js", "module.exports = (name) => require(name)"),
        ("app/load.js", "const pages = import.meta.glob('./*.js')"),
    ],
)
def test_modules_that_are_loaded_by_computed_names_are_the_products(loader: str, code: str) -> None:
    end = loader.rpartition(".")[2]
    files = {"app/__init__.py": "", f"app/parts/a.{end}": "", f"other/a.{end}": "", loader: ""}
    with_loader = find_classes(variants_of(entries(files), entries({loader: code})), (), None)
    without = find_classes(variants_of(entries(files), entries({loader: "1"})), (), None)
    assert f"app/parts/a.{end}" in set(with_loader.production) - set(without.production)
    assert f"other/a.{end}" not in with_loader.production


def test_what_cannot_travel_is_no_class() -> None:
    lookups = PathLookups(
        frozenset(PYTHON.files), frozenset(("conftest.py", "vendor/a.py", "tests/data", "a/b.pyc"))
    )
    classes = PYTHON.classes(lookups)
    assert classes.missed == ()
    assert "tests/test_cart.py" not in classes.used
    assert "pyproject.toml" not in classes.used
    assert "helpers/check.py" in classes.used


def test_the_fix_itself_is_the_product() -> None:
    fix = {"vendor/x/a.go": "package x", "testing/fakes.py": "", "Makefile": "all:", "tests/data/a.json": "{}"}
    classes = find_classes(variants_of(entries({"a.py": ""}), entries(fix)), (), None)
    assert set(fix) <= set(classes.production)


def test_too_many_misses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_classes, "MAX_MISSED", 2)
    with pytest.raises(TooManyLookups, match="the tests look for 3 missing files, more than 2"):
        PYTHON.classes(PathLookups(frozenset(), frozenset(("a.ini", "b.ini", "c.ini"))))


_HOSTILE = {
    "pkg/__init__.py": "import pkg." + "a." * 5000 + "b",
    "pkg/deep.py": "(" * 100_000,
    "pkg/sum.py": "x = " + "1 + " * 50_000 + "1",
    "pkg/minus.py": "x = " + "-" * 50_000 + "1",
    "pkg/links.py": "from " + "." * 300 + " import a",
    "web/package.json": '{"exports": ' + "[" * 50_000,
    "web/index.js": "import " * 100_000,
    "Cargo.toml": "a." * 50_000 + "b = 1",
    "src/lib.rs": "#[cfg(" * 50_000 + "mod a;" * 10_000,
    "go.mod": "module ..",
    "main.go": "package main\nimport (" + '"../../x"\n' * 10_000,
    "pom.xml": "<dependency>" * 5000,
    "build.gradle": "project(" * 50_000,
    "src/main/java/A.java": "package " + "a." * 50_000,
}


def test_hostile_files_are_read_in_bounded_time() -> None:
    start = time.process_time()
    classes = find_classes(variants_of(entries(_HOSTILE), entries(dict.fromkeys(_HOSTILE, ""))), ("..", "/"), None)
    assert set(_HOSTILE) <= set(classes.production)
    assert time.process_time() - start < 10


_TREES = st.dictionaries(
    st.lists(
        st.sampled_from(["a", "b", "__init__.py", "c.py", "d.js", "e.go", "go.mod", "f.txt"]),
        min_size=1,
        max_size=3,
    ).map("/".join),
    st.sampled_from(["", "import a.b", "from . import c", "require('./d')", "package main"]),
    max_size=8,
)


@given(_TREES, _TREES.filter(bool), st.sets(st.sampled_from(["x.py", "a/x", "b/x.js", "a", "x/y"])))
def test_what_holds_of_any_tree(files: dict[str, str], fix: dict[str, str], misses: set[str]) -> None:
    variants = variants_of(entries(files), entries(fix))
    names = find_classes(variants, (), None)
    lookups = find_classes(variants, (), PathLookups(frozenset(files), frozenset(misses)))
    assert set(fix) <= set(names.production)
    assert names.production == lookups.production
    assert set(names.packages) <= set(lookups.packages)
    assert not set(lookups.used) & set(lookups.production)
    assert not set(lookups.missed) & {*files, *fix}
