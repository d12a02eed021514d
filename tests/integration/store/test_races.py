"""Writers that race have one winner; readers see whole values."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.support.stores import Place
from trialfleet_ledger.store.protocol import Store


def test_threads_that_race_have_one_winner(store: Store) -> None:
    for game in range(5):
        start = threading.Barrier(12)

        def run(racer: int, game: int = game, start: threading.Barrier = start) -> bool:
            start.wait()
            return store.create(f"race/{game}", b"%d" % racer)

        with ThreadPoolExecutor(12) as pool:
            won = list(pool.map(run, range(12)))
        assert won.count(True) == 1
        assert store.get(f"race/{game}") == b"%d" % won.index(True)


RACE = """
import json, multiprocessing, sys
from trialfleet_ledger.store.open import open_store
url, endpoint, racers, games = sys.argv[1], sys.argv[2] or None, int(sys.argv[3]), int(sys.argv[4])
open_store(url, endpoint=endpoint)  # imports, before the fork

def run(racer, start, won):
    store = open_store(url, endpoint=endpoint)
    store.get("warm")
    for game in range(games):
        start.wait()
        if store.create(f"race/{game}", b"%d" % racer):
            won.put((game, racer))

fork = multiprocessing.get_context("fork")
start, won = fork.Barrier(racers), fork.SimpleQueue()
children = [fork.Process(target=run, args=(n, start, won)) for n in range(racers)]
for child in children: child.start()
for child in children: child.join()
found = []
while not won.empty(): found.append(won.get())
assert all(child.exitcode == 0 for child in children)
print(json.dumps(found))
"""


def test_processes_that_race_have_one_winner(place: Place) -> None:
    store, games = place.fresh(), 40 if place.kind == "directory" else 5
    argv = [sys.executable, "-c", RACE, store.url, place.endpoint or "", "12", str(games)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    winners: list[tuple[int, int]] = json.loads(done.stdout)
    assert sorted(game for game, _ in winners) == list(range(games))
    for game, racer in winners:
        assert store.get(f"race/{game}") == b"%d" % racer


def test_readers_never_see_half_a_value(store: Store) -> None:
    values = [bytes([letter]) * 200_000 for letter in b"ab"]
    store.put("live", values[0])
    enough = threading.Event()

    def overwrite() -> int:
        for turn in itertools.count():
            store.put("live", values[turn % 2])
            if turn >= 40 and enough.is_set():
                return turn
        raise AssertionError

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(overwrite)
        try:
            reads = 0
            while reads <= 3 or not writer.done():
                assert store.get("live") in values
                reads += 1
                if reads > 3:
                    enough.set()
        finally:
            enough.set()
        assert writer.result() >= 40
