"""Whole attempts whose provider key, or token, is a text of the repository or of what the agent leaves."""

from __future__ import annotations

import pytest

from tests.support.attempts import LIMITS, TRIAL, Lab, Left
from tests.support.scripted_messages import ScriptedMessages
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Verdict

ASK = """
import json, os, urllib.request

token = os.environ["ANTHROPIC_API_KEY"]
body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
headers = {"x-api-key": token, "content-type": "application/json"}
address = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
"""
FIX = """
path = "shop/pricing/rules.py"
source = open(path).read().replace("/ 0", "/ PERCENT")
open(path, "w").write(source + "\\n\\nPERCENT = 100  # hundred_percent_of\\n")
os.makedirs("hundred_percent_of", exist_ok=True)
open("hundred_percent_of/notes", "w").write("[redacted] hundred_percent_of [redacted]\\n")
"""
TOKEN_IN_BASE85 = """
letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
padded, raw = token + "0" * (-len(token) % 5), b""
for start in range(0, len(padded), 5):
    value = 0
    for letter in padded[start : start + 5]:
        value = value * 85 + letters.index(letter)
    raw += value.to_bytes(4, "big")
open("logo.bin", "wb").write(os.urandom(45) + raw + os.urandom(400))
open("leaked.txt", "w").write(token)
"""

pytestmark = pytest.mark.needs("bwrap")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("keys")
    root.chmod(0o755)
    return Lab(root, files={"hundred.md": "hundred_percent_of\n"})


class Keyed:
    """Runs agents that ask the model once with a certain key."""

    def __init__(self, lab: Lab, provider: ScriptedMessages) -> None:
        self.lab, self._url = lab, provider.url

    def run(self, code: str, key: str, *, score_patch_of: int | None = None) -> Left:
        options = {"argv": ["/usr/bin/python3", "-I", "-c", ASK + code], "needs_model": True}
        spec = AgentSpec(kind="command", model="claude-sonnet-4-6", timeout_s=60, options=options)
        number = next(self.lab.numbers)
        grants = self.lab.grants(spec, attempt=number, limits=LIMITS, score_patch_of=score_patch_of)
        return self.lab.run(grants, env={"ANTHROPIC_BASE_URL": self._url, "ANTHROPIC_API_KEY": key})

    def replace_patch(self, attempt: int, **changed: object) -> int:
        """A further attempt's patch: that of `attempt`, changed."""
        raw = self.lab.store.get(f"lab/attempts/{TRIAL}/{attempt}/patch.json")
        left = Left(self.lab, attempt, 0, "").patch
        assert raw is not None
        assert left is not None
        number = next(self.lab.numbers)
        record = left.model_copy(update={"attempt": number, **changed})
        self.lab.store.create(f"lab/attempts/{TRIAL}/{number}/patch.json", canonical_json(record))
        return number


@pytest.fixture
def keyed(lab: Lab, provider: ScriptedMessages) -> Keyed:
    provider.play()
    return Keyed(lab, provider)


def _verdict(left: Left) -> Verdict:
    assert left.end.scored is not None, left.end
    return left.end.scored.verdict


def test_a_key_that_is_a_word_of_the_fix_changes_no_verdict_and_is_shown_nowhere(keyed: Keyed) -> None:
    key = "hundred_percent_of"
    left = keyed.run(FIX, key)
    assert _verdict(left) is Verdict.PASSED
    assert left.patch is not None
    assert len(left.patch.key_marks) == 5  # in a name (three times), a new file and a line
    assert key not in left.said()
    assert "PERCENT = 100  # [redacted]" in left.bundle.files["patch.diff"].decode()
    assert left.end.scored is not None
    control = keyed.run(FIX, "sk-ant-0123456789abcdef")
    assert _verdict(control) is Verdict.PASSED
    assert control.patch is not None
    assert control.patch.key_marks == ()
    assert sha256(control.patch.diff.encode()) == left.end.scored.diff_sha256 == left.patch.diff_sha256

    again = keyed.run("", key, score_patch_of=left.attempt)
    assert _verdict(again) is Verdict.PASSED
    assert key not in again.said()
    other = keyed.run("", "sk-ant-0123456789abcdef", score_patch_of=left.attempt).end.loss
    assert other is not None
    assert (other.loss, other.halt, other.patched) == (LossClass.SCORING, HaltScope.NONE, True)
    assert "a key was changed since" in other.message


def test_a_binary_that_spells_the_token_is_scored_as_it_is(keyed: Keyed) -> None:
    left = keyed.run(TOKEN_IN_BASE85 + FIX, "sk-ant-0123456789abcdef")
    assert _verdict(left) is Verdict.PASSED
    assert "leaked.txt" in left.bundle.files["patch.diff"].decode()
    assert "\n+[redacted]\n" in left.bundle.files["patch.diff"].decode()
    assert left.patch is not None
    assert "[redacted]" not in left.patch.diff.replace("[redacted] hundred_percent_of [redacted]", "")


def test_a_patch_that_does_not_apply_fails_its_own_trial_alone(keyed: Keyed) -> None:
    left = keyed.run(FIX, "sk-ant-0123456789abcdef")
    assert left.patch is not None
    diff = left.patch.diff.replace("-        amount -= amount * discount / 0", "-        other")
    assert diff != left.patch.diff
    number = keyed.replace_patch(left.attempt, diff=diff, diff_sha256=sha256(diff.encode()))
    scored = keyed.run("", "sk-ant-0123456789abcdef", score_patch_of=number)
    assert _verdict(scored) is Verdict.FAILED
    assert any("the patch does not apply" in words for words in scored.bundle.manifest.warnings)
