"""What failed for a reason outside of the commit is examined again; so is all, once the machine's tools change."""

from __future__ import annotations

import threading
import time
from datetime import date
from pathlib import Path

import pytest

from trialfleet_repository.languages import LANGUAGES, PYTHON
from trialfleet_tasks.commands.mine import _settings
from trialfleet_tasks.mining.environment_failures import is_temporary
from trialfleet_tasks.mining.environments import MinedEnvironments, ToolEnvironments
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason
from trialfleet_tasks.mining.history import CandidateCommit, HistoryCommit
from trialfleet_tasks.mining.mine import IN_A_ROW, MiningLimits, open_candidates, run
from trialfleet_tasks.mining.state import MiningState

# What tools print where something outside of the commit is broken, and where it is the commit.
OUTSIDE = [
    "error: Request failed after 3 retries\n  cause: error sending request for url (https://a.example/simple/pytest/)",
    "client error (Connect): dns error: failed to lookup address information: Temporary failure in name",
    "npm error code ENOTFOUND\nnpm error network request to https://a.example/x failed",
    "npm error code EAI_AGAIN",
    " ERR_PNPM_META_FETCH_FAIL  GET https://a.example/x: request failed, reason: connect ECONNREFUSED 127.0.0.1:1",
    'go: github.com/a/b@v1: Get "https://proxy.example/x": dial tcp: lookup proxy.example: no such host',
    'Get "https://proxy.example/x": net/http: TLS handshake timeout',
    "warning: spurious network error (3 tries remaining): [6] Couldn't resolve host name",
    "Could not transfer artifact a:b:pom:1 from/to central: transfer failed: Unknown host a.example",
    "HTTP status server error (503 Service Unavailable) for url (https://a.example/simple/x/)",
    "npm error 502 Bad Gateway - GET https://a.example/x",
    "429 Too Many Requests",
    "mkdir: cannot create directory '/root/.npm': Read-only file system",
    "OSError: [Errno 28] No space left on device",
    "its requirements could not be resolved within 300 s",
]
THE_COMMITS = [
    "No solution found when resolving dependencies: Because a==5 depends on b<1, we can conclude that",
    "npm error code ERESOLVE",
    "error: failed to compile `x`: 503 errors emitted",
    "npm error 404 Not Found - GET https://a.example/gone",
    "missing go.sum entry",
]


@pytest.mark.parametrize("said", OUTSIDE)
def test_a_reason_outside_of_the_commit_is_temporary(said: str) -> None:
    assert is_temporary(RejectionReason.ENVIRONMENT_FAILED, said)
    assert not is_temporary(RejectionReason.CANNOT_RUN_AT_FIX, said), "tests have no network in any case"


@pytest.mark.parametrize("said", THE_COMMITS)
def test_a_reason_of_the_commit_stays(said: str) -> None:
    assert not is_temporary(RejectionReason.ENVIRONMENT_FAILED, said)


def candidate(sha: str) -> CandidateCommit:
    return CandidateCommit(HistoryCommit(sha, "0", date(2025, 1, 1), "Fix", ()), PYTHON, (f"{sha}.py",), (), ())


class OneMiner:
    """Gives the same findings each time, and notes what it examined."""

    def __init__(self, **findings: MiningFinding) -> None:
        self.findings, self.examined = findings, list[str]()

    def examine(self, candidate: CandidateCommit, say: object) -> tuple[MiningFinding, None]:
        self.examined.append(candidate.commit.sha)
        return self.findings[candidate.commit.sha], None


def found(sha: str, reason: RejectionReason, *, temporary: bool = False) -> MiningFinding:
    return MiningFinding(commit=sha, language="Python", outcome=reason, temporary=temporary)


def mined(state: MiningState, miner: OneMiner, *again: RejectionReason) -> list[str]:
    chosen = [candidate(sha) for sha in sorted(miner.findings)]
    miner.examined.clear()
    limits = MiningLimits(9, 1, None, frozenset(again))
    run(miner, chosen, state, limits, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    return list(miner.examined)


def test_the_next_call_examines_what_may_be_gone(tmp_path: Path) -> None:
    state = MiningState.load(tmp_path / "findings.jsonl", lambda _: "", {})
    miner = OneMiner(
        a=found("a", RejectionReason.ENVIRONMENT_FAILED, temporary=True),
        b=found("b", RejectionReason.FLAKY),
        c=found("c", RejectionReason.TOO_SLOW, temporary=True),
    )
    assert mined(state, miner) == ["a", "b", "c"]
    miner.findings["d"] = found("d", RejectionReason.FLAKY)
    assert mined(state, miner) == ["d", "a", "c"], "what is new comes first"
    assert mined(state, miner) == ["a"], "what is too slow twice is too slow"
    assert mined(state, miner, RejectionReason.FLAKY) == ["a", "b", "d"]
    again = MiningState.load(tmp_path / "findings.jsonl", lambda _: "", {})
    assert [one.commit.sha for one in open_candidates([candidate(s) for s in "abcd"], again, ())] == ["a"]


class Tools(ToolEnvironments):
    def find_versions(self) -> dict[str, str]:
        return VERSIONS


VERSIONS = {"pnpm": "10.1"}


def test_another_version_of_a_tool_is_another_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("prompt_source", "repeats", "timeout_s", "build", "wider", "issues")
    environments: dict[str, MinedEnvironments] = {"JavaScript": Tools(LANGUAGES["JavaScript"])}

    def setting(**given: object) -> str:
        return _settings({**dict.fromkeys(names), **given}, environments)("JavaScript")

    first = setting()
    assert setting() == first
    assert setting(repeats=5) != first
    monkeypatch.setitem(VERSIONS, "pnpm", "8.15")
    assert setting() != first


def test_versions_of_this_machines_tools() -> None:
    versions = ToolEnvironments(LANGUAGES["JavaScript"]).find_versions()
    assert set(versions) <= {"node", "npm", "pnpm", "yarn", "bun"}
    assert all(version[0].isdigit() for version in versions.values())


def test_one_cause_in_a_row_ends_the_examination_of_its_language(tmp_path: Path) -> None:
    state = MiningState.load(tmp_path / "findings.jsonl", lambda _: "", {})
    detail = "No module named 'shop': tests/test_{}.py at 3.1{}"
    same = {
        f"a{n:02}": MiningFinding(commit=f"a{n:02}", language="Python", outcome=RejectionReason.CANNOT_RUN_AT_FIX,
                                  detail=detail.format(n, n))
        for n in range(20)
    }  # fmt: skip
    miner = OneMiner(**same)
    assert len(mined(state, miner)) == IN_A_ROW
    miner = OneMiner(**same | {"a04": found("a04", RejectionReason.FLAKY)})
    fresh = MiningState.load(tmp_path / "other.jsonl", lambda _: "", {})
    assert len(mined(fresh, miner)) == 5 + IN_A_ROW
    assert len(mined(fresh, miner)) == 20 - 5 - IN_A_ROW, "the next call goes on"
    flaky = OneMiner(**{f"b{n:02}": found(f"b{n:02}", RejectionReason.FLAKY) for n in range(12)})
    assert len(mined(fresh, flaky)) == 12, "each commit has its own flaky tests"


def test_what_still_runs_is_given_up(tmp_path: Path) -> None:
    state = MiningState.load(tmp_path / "findings.jsonl", lambda _: "", {})
    release = threading.Event()

    class Slow(OneMiner):
        def examine(self, candidate: CandidateCommit, say: object) -> tuple[MiningFinding, None]:
            release.wait(60)
            return super().examine(candidate, say)

    miner = Slow(a=found("a", RejectionReason.FLAKY), b=found("b", RejectionReason.FLAKY))
    started = time.monotonic()
    limits = MiningLimits(9, 1, 0.01)
    end = run(miner, [candidate("a"), candidate("b")], state, limits, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    assert (end.given_up, state.finding("a")) == (1, None)
    assert 0.6 <= time.monotonic() - started < 20
    release.set()
