"""A command's silence is judged by what the command does, and not by what else its machine does."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.support.silence import Silence, StarvedTime


def test_the_longest_silence_counts_and_a_word_of_a_wait_frees_the_next() -> None:
    times = iter([0.0, 2.0, 6.0, 90.0, 93.0])
    silence = Silence(lambda: 0.0, lambda: next(times))
    for output in (b"2 tasks\n", b"waiting for the store\n", b"done\n", b""):
        silence.hear(output)
    assert silence.longest_s == 4.0


def test_the_time_without_a_free_core_is_no_silence() -> None:
    times, starved = iter([0.0, 30.0]), iter([0.0, 27.0])
    silence = Silence(lambda: next(starved), lambda: next(times))
    silence.hear(b"")
    assert silence.longest_s == 3.0


def test_a_process_that_shares_a_core_is_starved_and_one_that_sleeps_is_not() -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    processes = [subprocess.Popen(["sleep", "60"]), *busy]
    try:
        for process in busy:
            os.sched_setaffinity(process.pid, {0})
        time.sleep(0.3)
        clocks = [StarvedTime(process.pid) for process in processes]
        began = [clock.sample() for clock in clocks]
        time.sleep(0.7)
        sleeping, *computing = [clock.sample() - before for clock, before in zip(clocks, began, strict=True)]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert sleeping < 0.1 < min(computing)
