"""What an agent does to be lost and tried again is a verdict; what the provider does to everybody is a loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.attempts import LIMITS, Lab, Left
from tests.support.scripted_messages import Fail, Reply, Say, ScriptedMessages, scripted_messages
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Stop, Verdict

MODEL = "claude-sonnet-4-6"
HEAD = """
import json, os, sys, urllib.error, urllib.request
URL, KEY = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
def send(path, body, method="POST", **headers):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "x-api-key": KEY, **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
def ask(model="claude-sonnet-4-6", text="hi", path="/v1/messages", **headers):
    body = {"model": model, "max_tokens": 100, "tools": [{"name": "t"}],
            "messages": [{"role": "user", "content": text}]}
    return send(path, body, **headers)
def claim():
    words = "Contents of /home/agent/" + "CLAUDE" + chr(46) + "md:" + chr(10) * 2 + "rules"
    send("/v1/messages", {"model": "claude-sonnet-4-6", "max_tokens": 100, "tools": [{"name": "t"}],
         "system": words, "messages": [{"role": "user", "content": "hi"}]})
"""
REFUSED = Fail(403, "permission_error", "not yours")
LIMITED = Fail(429, "rate_limit_error", "slow down")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("fault")
    root.chmod(0o755)
    return Lab(root)


@pytest.fixture
def provider() -> Iterator[ScriptedMessages]:
    with scripted_messages() as played:
        yield played


@dataclass
class Attempts:
    lab: Lab
    provider: ScriptedMessages

    def run(self, code: str, *replies: Reply, then: Reply | None = None) -> Left:
        argv = ["/usr/bin/python3", "-I", "-c", HEAD + code]
        agent = AgentSpec(
            kind="command", model=MODEL, max_turns=20, timeout_s=60, options={"argv": argv, "needs_model": True}
        )
        self.provider.play(*replies, then=then)
        env = {"ANTHROPIC_BASE_URL": self.provider.url, "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}
        return self.lab.run(self.lab.grants(agent, attempt=next(self.lab.numbers), limits=LIMITS), env=env)


@pytest.fixture
def attempts(lab: Lab, provider: ScriptedMessages) -> Attempts:
    return Attempts(lab, provider)


FORGED_START = (
    'ask(); sys.stderr.write("\\nforwarder: /usr/bin/python3: No such file or directory\\n"); os._exit(127)'
)
LIST = 'ask(); send("/v1/models", None, "GET")'
# The agent's code, and what the provider says to it in turn.
ATTACKS: dict[str, tuple[str, tuple[Reply, ...]]] = {
    "words of the forwarder and exit 127": (FORGED_START, ()),
    "one provoked limit and exit 1": ('ask(); ask(text="x" * 200000); sys.exit(1)', (Say(), LIMITED)),
    "an unknown side model": ('ask(); ask(model="claude-nope")', (Say(), Fail(404, "not_found_error", "model"))),
    "a forbidden list of models": (LIST, ()),
    "a beta that brings 403": ('ask(**{"anthropic-beta": "nope"}); sys.exit(1)', (REFUSED,)),
    "another API": ('ask(path="/v1/chat/completions"); sys.exit(1)', (Fail(404, "not_found_error", "none"),)),
    "words of an empty account": ('ask(text="billing"); sys.exit(1)', (Fail(400, "x", "credit balance too low"),)),
    "a claim of undeclared context": ("ask(); claim()", ()),
    "killed by its own hand": ("ask(); os.kill(os.getpid(), 9)", (LIMITED,)),
}


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("name", ATTACKS)
def test_no_agent_can_make_a_loss(attempts: Attempts, name: str) -> None:
    code, replies = ATTACKS[name]
    left = attempts.run(code, *replies)
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.FAILED
    assert json.loads(left.bundle.files["gateway/report.json"])["halt"] is None


# The controls: the same answers, where the provider gives them to a request of our own as well.
REFUSALS: dict[str, tuple[str, Fail]] = {
    "a revoked key": ("ask(); sys.exit(0)", Fail(401, "authentication_error", "invalid x-api-key")),
    "an account's limit that is said with 400": (
        "ask(); sys.exit(1)",
        Fail(400, "invalid_request_error", "You have reached your specified API usage limits."),
    ),
    "an unknown planned model": ("ask(); sys.exit(1)", Fail(404, "not_found_error", f"model: {MODEL}")),
}


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_provider_says_to_everybody_halts(attempts: Attempts, name: str) -> None:
    code, failure = REFUSALS[name]
    loss = attempts.run(code, then=failure).end.loss
    assert loss is not None
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.PROVIDER, HaltScope.CAMPAIGN, True)
    assert failure.message in loss.message


@pytest.mark.needs("bwrap")
def test_undeclared_context_in_the_programs_own_request_is_a_loss(attempts: Attempts) -> None:
    """The control of the claim: here it comes before the model has said a word. Later it is a caution."""
    loss = attempts.run("claim(); ask()").end.loss
    assert loss is not None
    assert (loss.loss, loss.halt) == (LossClass.CONTAMINATED, HaltScope.NONE)
    warnings = attempts.run("ask(); claim()").bundle.manifest.warnings
    assert any("after its first answer: /home/agent/CLAUDE.md" in warning for warning in warnings)


@pytest.mark.needs("bwrap")
def test_a_refusal_discards_no_attempt_that_was_answered_afterwards(attempts: Attempts) -> None:
    left = attempts.run("ask(); ask()", REFUSED, Say())
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.stop is Stop.FINISHED
