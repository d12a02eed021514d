"""Which files are tests."""

from __future__ import annotations

import pytest

from trialfleet_targets.testfiles import is_test


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_app.py",
        "pkg/app_test.py",
        "conftest.py",
        "tests/helpers.py",
        "testing/python/fixtures.py",
        "src/app.spec.ts",
        "src/app.test.tsx",
        "packages/core/__tests__/api.ts",
        "packages/dts/ref.test-d.ts",
        "runtime-tests/node/index.ts",
        "server/server_test.go",
        "pkg/testdata/gen.go",
        "crates/core/tests/regression.rs",
        "src/parser/tests.rs",
        "src/parser/test_util.rs",
        "benches/speed.rs",
        "src/test/java/com/acme/ServiceTest.java",
        "core/src/integrationTest/java/com/acme/Fixture.java",
        "ServiceTest.java",
    ],
)
def test_tests(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/flask/testing.py",
        "src/pytest/__init__.py",
        "pkg/contest.py",
        "pkg/latest.py",
        "src/attestation.ts",
        "src/spectrum.ts",
        "src/testing/index.ts",
        "pkg/httptest/server.go",
        "pkg/testing/flags.go",
        "src/latest.rs",
        "src/main/java/org/mockito/internal/junit/TestFinishedEvent.java",
        "src/main/java/com/acme/test/Probe.java",
        "Attest.java",
        "docs/test.md",
        "tests/data.json",
    ],
)
def test_product_code(path: str) -> None:
    assert not is_test(path)
