"""Which text of a test file is a test's, and which of the names in it only the fix adds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.added_names import added_names, using_tests
from trialfleet_tasks.mining.declared_tests import DeclaredTests

GO = """
package cart

// func TestOld(t *testing.T) { comment() }
func TestOld(t *testing.T) {
	if "}" == `{` || '}' == 'x' {
		old()
	}
}

func (s *CartSuite) TestMethod() { s.method(func() { inner() }) }
func TestCart(t *testing.T) { suite.Run(t, new(CartSuite)) }
func helper(a struct{ b int }) string { return "func TestNone() { no() }" }

func TestTable(t *testing.T) {
	for _, c := range []struct{ name string }{{"sub"}} {
		t.Run(c.name, func(t *testing.T) { table() })
	}
}
"""
JAVASCRIPT = """
import { total } from '../src/total'
// it('old', () => comment())
describe("total", () => {
  beforeEach(() => { before() })
  it('old', () => { old(`}) ${ "}" }`) })
  test.concurrent("it's > split", async () => {
    inner(/[})"]/, '}')
  });
  it("don\\'t", function () { dont() })
  it.each([[1, 2], [2, 3]])('adds %i to %i', (a, b) => { each(a) })
})
it("never closed", () => {
"""
RUST = """
use shop::total;

#[test]
fn old() -> Result<(), Box<dyn Error>> {
    let c = '}'; let s = r#"} " fn none() {}"#; let l: &'static str = "}";
    old_call();
    Ok(())
}

mod inner {
    #[rstest]
    #[case("{", 1)]
    #[case(seen_in_attribute)]
    fn param(#[case] text: &str) where [u8; 3]: Sized { param_call() }
    fn later() { later_call() }
}
"""
JAVA = """
class FooTest {
    private int field = adds(1);

    @Test
    void old() throws IOException { assertEquals("}", old_call()); adds(); }

    @ParameterizedTest
    @ValueSource(strings = {"a", "b"})  // }
    void adds(int x)
    {
        if (x > 0) { many(new Foo() { void nested() { nested_call(); } }); }
    }
    @Nested class Inner { @Test void works() { works_call(); } }
}
"""
KOTLIN = """
class FooTest {
    @Test fun `doesn't add {`() { first() }
    @Test fun short() = assertEquals(1, second())
    @Test fun <T> run() = runTest(timeout) {
        third()
    }
}
"""


@pytest.mark.parametrize(
    ("language", "text", "name", "inside", "outside"),
    [
        ("Go", GO, "TestOld", "old()", "comment table inner"),
        ("Go", GO, "TestCart/TestMethod", "suite.Run inner()", "table old()"),
        ("Go", GO, "TestTable/sub", "table() struct", "old() inner"),
        ("JavaScript", JAVASCRIPT, "total > old", "old(", "comment before inner dont"),
        ("JavaScript", JAVASCRIPT, "total > it's > split", "inner(", "old( dont"),
        ("JavaScript", JAVASCRIPT, "total don't", "dont()", "inner( each"),
        ("Rust", RUST, "old", "old_call #[test]", "param_call none; use"),
        ("Rust", RUST, "inner::param::case_2", "param_call seen_in_attribute rstest", "old_call later_call mod"),
        ("Java", JAVA, "old()", "old_call @Test IOException", "field many"),
        ("Java", JAVA, "adds(int)[1]", "many( nested_call @ValueSource", "field old_call works_call"),
        ("Java", JAVA, "Inner.works()", "works_call", "many"),
        ("Java", KOTLIN, "doesn't add {()", "first", "second third"),
        ("Java", KOTLIN, "short()", "second", "first third"),
        ("Java", KOTLIN, "run()", "third", "first"),
    ],
)
def test_the_text_of_a_test(language: str, text: str, name: str, inside: str, outside: str) -> None:
    found = DeclaredTests(text, language).find(name)
    assert found is not None
    for word in inside.split():
        assert word in found
    for word in outside.split():
        assert word not in found


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("Go", GO, "TestNone"),
        ("JavaScript", JAVASCRIPT, "total > adds 1 to 2"),
        ("JavaScript", JAVASCRIPT, "never closed"),
        ("Rust", RUST, "none"),
        ("Java", JAVA, "many(int)"),
        ("Java", JAVA, "field"),
    ],
)
def test_a_test_that_is_not_found(language: str, text: str, name: str) -> None:
    assert DeclaredTests(text, language).find(name) is None


def tree(**files: str) -> dict[str, TreeEntry]:
    return {name.replace("__", "/").replace("_DOT_", "."): TreeEntry(t.encode()) for name, t in files.items()}


ADDED = frozenset({"rounded", "Rounding"})


def test_go_tests_that_use_what_the_fix_adds() -> None:
    fixed = tree(
        main_test_DOT_go="func TestTotal(t *testing.T) { Rounding() }",
        cart__cart_test_DOT_go="func TestTotal(t *testing.T) { total() }\nfunc TestNew() { Rounding() }",
        cart__other_test_DOT_go="func TestOther(t *testing.T) { total() }",
    )
    ids = ["example.com/m/cart::TestTotal", "example.com/m/cart::TestNew/sub", "example.com/m/cart::TestOther/a"]
    ids += ["example.com/m::TestTotal", "example.com/m/cart::TestGenerated"]
    files = ["cart/cart_test.go", "main_test.go"]
    found = using_tests(ADDED, ids, before={}, fixed=fixed, language=LANGUAGES["Go"], files=files)
    assert found == dict.fromkeys((ids[1], ids[3], ids[4]), "Rounding"), (
        "what the fix does not change uses no new name"
    )


def test_javascript_tests_that_use_what_the_fix_adds() -> None:
    old = "it('old', () => { total() })\n"
    new = f"{old}it.each([1])('adds %i', () => {{ rounded() }})\nit('plain', () => {{ total() }})\n"
    before, fixed = (
        tree(src__a_DOT_test_DOT_ts=old),
        tree(src__a_DOT_test_DOT_ts=new, src__b_DOT_test_DOT_ts="rounded"),
    )
    ids = ["src/a.test.ts::old", "src/a.test.ts::plain", "src/a.test.ts::sums > adds 1"]
    files = ["src/a.test.ts", "src/b.test.ts"]
    found = using_tests(ADDED, ids, before=before, fixed=fixed, language=LANGUAGES["JavaScript"], files=files)
    assert found == {ids[2]: "rounded"}, "its title is a pattern: all added lines of its file count"
    package = ["a.test.ts::old", "web/src/a.test.ts::adds 1", "unknown::adds 1"]
    found = using_tests(ADDED, package, before=fixed, fixed=fixed, language=LANGUAGES["JavaScript"], files=files)
    assert found == {}, "nothing is added"


def test_rust_tests_that_use_what_the_fix_adds() -> None:
    text = "#[case(Rounding::Up)]\nfn adds() { total() }\nmod inner { fn works() { total() } }\n"
    text += "fn new() { rounded() }"
    inline = "mod tests { #[test] fn inline() { total() } }"
    fixed = tree(tests__cart_DOT_rs=text, src__lib_DOT_rs="mod cart;", src__cart_DOT_rs=inline)
    ids = [
        "tests/cart.rs::adds::case_1",
        "tests/cart.rs::inner::works",
        "tests/cart.rs::new",
        "src/lib.rs::cart::tests::inline",
    ]
    found = using_tests(ADDED, ids, before={}, fixed=fixed, language=LANGUAGES["Rust"], files=["tests/cart.rs"])
    assert found == {ids[0]: "Rounding", ids[2]: "rounded"}


def test_java_tests_that_use_what_the_fix_adds() -> None:
    path = "src/test/java/org/x/FooTest.java"
    fixed = {
        path: TreeEntry(b"class FooTest { @Test void old() { total(); }\n@Test void rounds() { rounded(); } }"),
        "src/test/java/org/y/FooTest.java": TreeEntry(b"class FooTest { void old() { rounded(); } }"),
    }
    ids = [
        "org.x.FooTest::old()",
        "org.x.FooTest::rounds()[1]",
        "org.x.FooTest$Inner::rounds()",
        "org.y.FooTest::old()",
    ]
    found = using_tests(ADDED, ids, before={}, fixed=fixed, language=LANGUAGES["Java"], files=list(fixed))
    assert found == dict.fromkeys(ids[1:], "rounded")


WORDS = (
    """func fn it test void ( ) { } [ ] ; " ' ` / // /* */ r#" \"\"\" \\ #[test] TestA a . => , = throws fun < >"""
)
CODE = st.lists(st.sampled_from([*WORDS.split(), "\n"]) | st.text(max_size=3)).map(" ".join)


@given(st.sampled_from([name for name in LANGUAGES if name != "Python"]), CODE | st.text(), CODE | st.text())
def test_no_text_is_too_odd(language: str, text: str, name: str) -> None:
    found = DeclaredTests(text, language).find(name)
    assert found is None or found
    files = {"a_test.go": TreeEntry(text.encode(errors="replace"))}
    used = using_tests(
        frozenset({"TestA"}),
        [name, f"a::{name}"],
        before={},
        fixed=files,
        language=LANGUAGES[language],
        files=["a_test.go"],
    )
    assert set(used.values()) <= {"TestA"}


REPEATED = (
    '\\"', '"', "'", "`", "(/", "(/[", "/*", "//", "{", "(", "}", "it('a', () => {", "func a() {", "fn a() {",
    "fn a ", "fun a() ", "void a() ", "a(", "it ", "it.", "r#", 'r#"', 'r"', '"""', "func (", "func(a", "it(",
    "{(", "[}", "(; ", "\n", " ", "@A(", "a.", "fun <", "fun ", "`a`(", "it(`${", "''", "'\\",
)  # fmt: skip


@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "Python"])
def test_the_time_is_linear(language: str) -> None:
    """Twenty milliseconds each; what grows with the square of the length takes seconds, each time."""

    def used_s(text: str) -> float:
        started = time.process_time()
        DeclaredTests(text, language).find("a " * 1000)
        DeclaredTests(text, language).find("a")
        return time.process_time() - started

    for part in REPEATED:
        for text in (part * (20_000 // len(part)), part * 2000 + " " * 10_000 + "{}" + ")" * 2000 + "}" * 2000):
            assert any(used_s(text) < 0.5 for _ in range(3)), repr(part)


def test_what_go_code_takes_from_another_module_is_not_the_fixs() -> None:
    """`http.ErrAborted` is the library's name. A name of this module is new wherever it is."""
    before = {"go.mod": TreeEntry(b'// shop\nmodule "example.com/shop"\n'), "a.go": TreeEntry(b"package shop\n")}
    fix = b"""package shop

import "example.com/shop/cart"
import (
	"net/http" // http.ErrOfComment
	errs "github.com/x/errors/v2"
	"example.com/shopping/basket"
	"gopkg.in/yaml.v3"
)

func Total() error {
	if cart.Empty() || basket.Full(yaml.Strict) {
		return http.ErrAborted
	}
	return errs.Wrap(Rounded, "cents")
}
"""
    found = added_names(before, {"a.go": TreeEntry(fix)})
    assert {"Total", "Empty", "Rounded", "cents"} <= found
    assert found.isdisjoint({"ErrAborted", "ErrOfComment", "Wrap", "Full", "Strict"})


def test_a_word_of_prose_is_no_name() -> None:
    fix = {path: TreeEntry(b"rounded") for path in ("README.md", "docs/a.rst", "CHANGES.txt")}
    assert added_names({}, fix) == frozenset()
    assert added_names({}, {**fix, "a.toml": TreeEntry(b"rounded")}) == {"rounded"}
