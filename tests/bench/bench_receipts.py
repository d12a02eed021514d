"""What the account of received texts takes in one trial of 60 requests, each of which repeats those before it."""

from __future__ import annotations

import json
import random
import resource
import statistics

from tests.bench.figure import Figure
from trialfleet_deliveries.received_texts import DeclaredText, ReceivedTexts
from trialfleet_ledger.records.receipts import Arrival
from trialfleet_runner.gateway.canary import strings

REQUESTS, RUNS = 60, 5
CONTEXT_FILES = 12  # of some 4 kB
WORDS_A_FILE, WORDS_A_RESULT, WORDS_OF_SYSTEM = 600, 500, 6_000


def measure() -> list[Figure]:
    taken, size, whole = zip(*(_trial(seed) for seed in range(RUNS)), strict=True)
    note = f"{size[0] / 1e6:.1f} MB of requests, {CONTEXT_FILES} files, {whole[0]} of which were sent"
    return [Figure("receipts, a trial of 60 requests", statistics.median(taken), "core s", 0.1, note)]


def _trial(seed: int) -> tuple[float, int, int]:
    """Core seconds of the account, bytes of all requests, and how many files were sent whole."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(8_000)]

    def text(count: int) -> str:
        return " ".join(rng.choices(words, k=count)).replace(" ", "\n", count // 12)

    files = [DeclaredText(f"files:{n}", text(WORDS_A_FILE), "files") for n in range(CONTEXT_FILES)]
    tools = [{"name": f"tool{n}", "description": text(150)} for n in range(15)]
    system = f"{text(WORDS_OF_SYSTEM)}\n{files[0].text}"
    messages = list[dict[str, object]]()
    began, spent, size = _core_s(), 0.0, 0
    account = ReceivedTexts(files)
    spent += _core_s() - began
    for turn in range(REQUESTS):
        read = files[turn // 10].text if turn % 10 == 9 else ""
        messages.append({"role": "assistant", "content": [{"type": "tool_use", "input": {"command": text(10)}}]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "content": f"{text(WORDS_A_RESULT)}\n{read}"}]}
        )
        data = json.dumps({"system": system, "tools": tools, "messages": messages})
        body, size = json.loads(data), size + len(data)
        began = _core_s()
        account.confirm_request(account.read_request(strings(body)))
        spent += _core_s() - began
    whole = sum(one.arrival is Arrival.WHOLE for one in account.make_receipts())
    return spent, size, whole


def _core_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
