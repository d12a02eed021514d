"""What tools say when they are too old or too new, or when a registry wants credentials."""

from __future__ import annotations

import pytest

from trialfleet_tasks.mining.environment_failures import HINTS, told_apart
from trialfleet_tasks.mining.findings import RejectionReason

FAILED, NO_RUN = RejectionReason.ENVIRONMENT_FAILED, RejectionReason.CANNOT_RUN_AT_FIX
TOO_OLD = """\
go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)
error: rustc 1.95.0 is not supported by the following package:
  this version of Cargo is older than the `2027` edition, and only supports `2015`, `2018` and `2021` editions.
[ERROR] Fatal error compiling: error: release version 99 not supported
[ERROR] error: invalid target release: 99
Your Node version is incompatible: ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment
error This project uses "packageManager": "yarn@4.1.0". However the current global version of Yarn is 1.22.22.
this machine's Gradle 4.4.1 cannot read a build in Kotlin
> Could not find method useJUnitPlatform() for arguments [] on task ':test'.
yarn.lock is of Yarn 2 or newer, which this Yarn 1 cannot read
error shop@1.0.0: The engine "node" is incompatible with this module. Expected version ">=99".
the project needs Python >=3.99, which this machine does not have
"""
TOO_NEW = """\
 ERR_PNPM_LOCKFILE_BREAKING_CHANGE  Lockfile /workspace/pnpm-lock.yaml not compatible with current pnpm
this machine has yarn 4.18.1, not 1
[ERROR] Source option 5 is no longer supported. Use 7 or later.
[ERROR] error: Target option 6 is no longer supported. Use 8 or later.
> Could not open init generic class cache: Unsupported class file major version 65
"""
PRIVATE = """\
npm error code E401
 ERR_PNPM_FETCH_403  GET https://npm.example.com/shop: Forbidden - 403
fatal: could not read Username for 'https://git.example.com': terminal prompts disabled
error: failed to authenticate when downloading repository: ssh://git@git.example.com/shop
Could not transfer artifact org.example:shop:pom:1 from/to own (https://m.example.com): status: 401 Unauthorized
error: Failed to fetch: `https://pypi.example.com/shop/` HTTP status client error (401 Unauthorized) for url
"""
NEITHER = """\
npm error code E404
ModuleNotFoundError: No module named 'shop'
go: shop.invalid/lost@v1.0.0: unrecognized import path
version solving failed: 401 packages were considered
"""


@pytest.mark.parametrize("reason", [FAILED, NO_RUN])
def test_what_the_tool_says(reason: RejectionReason) -> None:
    assert {told_apart(reason, line) for line in TOO_OLD.splitlines()} == {RejectionReason.TOOLCHAIN_TOO_OLD}
    assert {told_apart(reason, line) for line in TOO_NEW.splitlines()} == {RejectionReason.TOOLCHAIN_TOO_NEW}
    private = (
        RejectionReason.PRIVATE_PACKAGES if reason is FAILED else reason
    )  # tests of a server print these words
    assert {told_apart(reason, line) for line in PRIVATE.splitlines()} == {private}
    assert {told_apart(reason, line) for line in NEITHER.splitlines()} == {reason}


def test_a_program_that_is_absent() -> None:
    said = "there is no program pnpm on this machine"
    assert told_apart(FAILED, said) is RejectionReason.NO_TOOLCHAIN
    assert told_apart(NO_RUN, said) is NO_RUN


def test_a_test_that_prints_such_words_stays_what_it_is() -> None:
    assert told_apart(RejectionReason.FAILS_AT_FIX, TOO_OLD + PRIVATE) is RejectionReason.FAILS_AT_FIX


def test_each_has_a_way_out() -> None:
    assert {told_apart(FAILED, said) for said in (TOO_OLD, TOO_NEW, PRIVATE)} == set(HINTS)
