"""The one rule that says which paths are tests, and where the rules of `search` and `targets` differ from it.

These two packages stand alone and keep their own. `search` repairs Python alone, and looks for code to edit: it
takes any file of a test's name for a test, and knows no other language. `targets` ranks files that a change may
edit: it leaves out what is probably a test, since a test in its list takes the place of a target. The one rule
decides what of an agent's work is dropped before it is scored and what mining takes for source: it takes a path
for a test only if no product has code there.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages import LANGUAGES, is_test_path
from trialfleet_repository.languages.protocol import TEST_FOLDERS
from trialfleet_search.probe import is_test_path as is_test_of_search
from trialfleet_targets.testfiles import is_test as is_test_of_targets

OTHER_LANGUAGE = "search knows Python alone"
NOT_CODE = "targets ranks code alone"
MAY_BE_PRODUCT = "products have code of that name; targets leaves it out all the same"
# path, the one rule, search, targets, why they differ
TABLE = """
istest.py                           no  no  no  -
contest.py                          no  no  no  -
latest.py                           no  no  no  -
conftest.py                         yes yes yes -
pkg/test_cart.py                    yes yes yes -
pkg/cart_test.py                    yes yes yes -
testing/helpers.py                  yes yes yes -
src/flask/testing.py                no  no  no  -
pkg/testing/helpers.py              no  no  no  -
test/units/cart.py                  yes yes yes -
pkg/test/cart.py                    yes no  yes search takes test for a folder of tests at the root alone
app/tests.py                        yes no  yes search looks for what pytest collects by itself
app/test.py                         no  no  yes MAY_BE_PRODUCT
pkg/cart_tests.py                   no  no  yes MAY_BE_PRODUCT
test_data.json                      no  yes no  search asks about files that Python runs alone
tests/data.json                     yes yes no  NOT_CODE
docs/test.md                        no  no  no  -
e2e/login.ts                        yes no  yes OTHER_LANGUAGE
web/e2e/login.ts                    yes no  yes OTHER_LANGUAGE
src/login.e2e.ts                    yes no  yes OTHER_LANGUAGE
cypress/login.ts                    yes no  yes OTHER_LANGUAGE
src/login.cy.ts                     yes no  yes OTHER_LANGUAGE
spec/a.js                           yes no  yes OTHER_LANGUAGE
spec/openapi.json                   no  no  no  -
src/spec/a.ts                       no  no  yes MAY_BE_PRODUCT
src/cart-test.js                    no  no  yes MAY_BE_PRODUCT
src/a.bench.ts                      no  no  yes MAY_BE_PRODUCT
src/test.ts                         no  no  yes MAY_BE_PRODUCT
src/a.test-d.ts                     yes no  yes OTHER_LANGUAGE
__tests__/a.tsx                     yes no  yes OTHER_LANGUAGE
src/__snapshots__/a.ts.snap         yes no  no  NOT_CODE
benches/x.rs                        yes no  yes OTHER_LANGUAGE
tests/common/mod.rs                 yes yes yes -
src/test_utils.rs                   no  yes yes MAY_BE_PRODUCT
src/cart_test.rs                    yes no  yes OTHER_LANGUAGE
foo_test.go                         yes no  yes OTHER_LANGUAGE
cart/testdata/a.json                yes no  no  NOT_CODE
src/test/java/org/x/CartTest.java   yes no  yes OTHER_LANGUAGE
src/main/java/org/x/test/Cart.java  no  no  no  -
tests/a/src/main/java/Cart.java     yes yes no  targets asks the source set alone
src/it/java/CartIT.java             yes no  yes OTHER_LANGUAGE
src/jmh/java/CartBenchmark.java     yes no  yes OTHER_LANGUAGE
src/integrationTest/kotlin/A.kt     yes no  no  targets reads no Kotlin
core/CartTest.java                  no  no  yes MAY_BE_PRODUCT
integration-tests/a.ts              no  no  yes MAY_BE_PRODUCT
"""
ROWS = [re.split(r"\s+", line, maxsplit=4) for line in TABLE.strip().splitlines()]
WORDS = {"yes": True, "no": False}


@pytest.mark.parametrize(("path", "one", "search", "targets", "why"), ROWS, ids=[row[0] for row in ROWS])
def test_the_one_rule_and_where_others_differ(path: str, one: str, search: str, targets: str, why: str) -> None:
    assert is_test_path(path) is WORDS[one]
    assert is_test_of_search(path) is WORDS[search]
    assert is_test_of_targets(path) is WORDS[targets]
    assert (why == "-") is (one == search == targets), "a difference has its reason, and nothing else has one"


def test_every_language_has_a_row_of_each_kind() -> None:
    for language in LANGUAGES.values():
        verdicts = {one for path, one, *_ in ROWS if path.endswith(language.suffixes)}
        assert verdicts == ({"yes"} if language.name == "Go" else {"yes", "no"}), language.name


WORDS_OF_PATHS = "a src main java kotlin tests test testdata spec e2e A.java a.kt a.ts a.py mod.rs a.go"
PARTS = st.sampled_from(WORDS_OF_PATHS.split())


@given(st.lists(PARTS, min_size=1, max_size=6).map("/".join))
def test_below_a_test_folder_all_but_product_code_of_a_source_set_is_a_test(path: str) -> None:
    folders = path.split("/")[:-1]
    product = re.search(r"(?:^|/)src/main/(?:java|kotlin)/.*\.(?:java|kt)$", path)
    before = folders if product is None else path[: product.start()].split("/")
    if not TEST_FOLDERS.isdisjoint(before):
        assert is_test_path(path)
