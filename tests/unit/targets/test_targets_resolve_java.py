"""Imports of Java projects, real-shaped."""

from __future__ import annotations

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.syntax_facts import EdgeKind

MAIN, TEST = "core/src/main/java/com/acme", "core/src/test/java/com/acme"
SERVICE = {
    f"{MAIN}/app/Service.java": (
        "package com.acme.app;\nimport com.acme.base.Base;\nimport com.acme.model.*;\n"
        "import com.acme.base.Base.Nested;\n"
        "import static com.acme.util.Checks.notNull;\nimport static com.acme.util.Words.*;\n"
        "import java.util.List;\n"
        "public class Service extends Base {\n  private Helper helper = new Helper();\n"
        "  void run(Order o, Nested n) { notNull(o); join(); Dates.now(); helper.go(); com.acme.util.Deep.x(); }\n"
        "}\n"
    ),
    f"{MAIN}/app/Helper.java": "package com.acme.app;\nclass Helper { void go() {} }\n",
    f"{MAIN}/app/Dates.java": "package com.acme.app;\nclass Dates { static void now() {} }\n",
    f"{MAIN}/app/Unused.java": "package com.acme.app;\nclass Unused {}\n",
    f"{MAIN}/base/Base.java": "package com.acme.base;\npublic class Base { public static class Nested {} }\n",
    f"{MAIN}/model/Order.java": "package com.acme.model;\npublic record Order(int id) implements Priced {}\n",
    f"{MAIN}/model/Priced.java": "package com.acme.model;\ninterface Priced {}\n",
    f"{MAIN}/model/Other.java": "package com.acme.model;\nclass Other {}\n",
    f"{MAIN}/util/Checks.java": "package com.acme.util;\npublic class Checks extends Parent {}\n",
    f"{MAIN}/util/Parent.java": "package com.acme.util;\nclass Parent { static void notNull(Object o) {} }\n",
    f"{MAIN}/util/Words.java": "package com.acme.util;\npublic class Words { static void join() {} }\n",
    f"{TEST}/app/ServiceTest.java": (
        "package com.acme.app;\nclass ServiceTest { void t() { new Service(); new Helper(); } }\n"
    ),
    f"{TEST}/app/Helper.java": "package com.acme.app;\nclass Helper {}\n",
}


def names(found: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {path.removeprefix(f"{MAIN}/"): symbols for path, symbols in found.items()}


def test_imports_wildcards_static_imports_and_the_same_package() -> None:
    found = edges_of(SERVICE)
    assert names(leads(found, f"{MAIN}/app/Service.java")) == {
        "base/Base.java": ("Base", "Nested"),
        "model/Order.java": ("Order",),
        "util/Checks.java": (),
        "util/Parent.java": ("notNull",),
        "util/Words.java": (),
        "app/Helper.java": ("Helper",),
        "app/Dates.java": ("Dates",),
    }


def test_calls_and_parents() -> None:
    found = edges_of(SERVICE)
    assert names(leads(found, f"{MAIN}/app/Service.java", EdgeKind.CALL)) == {
        "app/Helper.java": ("Helper",),
        "app/Dates.java": ("Dates",),
        "util/Parent.java": ("notNull",),
        "util/Words.java": ("join",),
    }
    assert names(leads(found, f"{MAIN}/app/Service.java", EdgeKind.EXTENDS)) == {"base/Base.java": ("Base",)}
    assert names(leads(found, f"{MAIN}/model/Order.java", EdgeKind.EXTENDS)) == {"model/Priced.java": ("Priced",)}


def test_of_two_files_for_one_type_the_nearer_and_never_a_test_for_product_code() -> None:
    found = edges_of(SERVICE)
    assert f"{TEST}/app/Helper.java" not in leads(found, f"{MAIN}/app/Service.java")
    assert leads(found, f"{TEST}/app/ServiceTest.java") == {
        f"{MAIN}/app/Service.java": ("Service",),
        f"{TEST}/app/Helper.java": ("Helper",),
    }


def test_classes_that_extend_each_other_end() -> None:
    found = edges_of(
        {
            "A.java": "package p;\nclass A extends B {}\n",
            "B.java": "package p;\nclass B extends A {}\n",
            "C.java": "package p;\nimport static p.A.gone;\nclass C { void m() { gone(); } }\n",
        }
    )
    assert leads(found, "C.java") == {"A.java": ()}


def test_the_default_package_and_a_file_without_a_type() -> None:
    found = edges_of({"Main.java": "class Main { Util u; }\n", "Util.java": "class Util {}\n", "Empty.java": ""})
    assert leads(found, "Main.java") == {"Util.java": ("Util",)}
