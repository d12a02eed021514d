"""Computes a campaign's answer in a separate process: the server stays quick and small meanwhile."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass, field

from trialfleet_analysis.kept_answer import CampaignAnswer, versions
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_ledger.child_program import python_module


class AnswerError(Exception):
    """The process could not compute it; its last words."""


@dataclass
class AnswerProcess:
    """One at a time. `close` ends it."""

    _running: subprocess.Popen[bytes] | None = field(default=None)
    _closed: bool = False

    def __call__(self, found: CampaignTables) -> CampaignAnswer:
        """Raises `AnswerError`."""
        pipe = subprocess.PIPE
        # A separate session: Ctrl-C goes to the server, which ends this process
        with subprocess.Popen(
            python_module(__name__), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            self._running = process
            if self._closed:
                process.kill()
            said, errors = process.communicate(pickle.dumps(found))
        self._running = None
        if process.returncode:
            raise AnswerError((errors.decode(errors="replace").strip().splitlines() or ["it was killed"])[-1])
        return CampaignAnswer.model_validate_json(said)

    def close(self) -> None:
        self._closed = True
        if self._running is not None:
            self._running.kill()


def computed(found: CampaignTables) -> CampaignAnswer:
    """In this process: imports all the statistics."""
    from trialfleet_analysis.report.assemble import answer_of, assemble

    return answer_of(assemble(found, versions=versions()))


if __name__ == "__main__":
    answer = computed(pickle.load(sys.stdin.buffer))  # noqa: S301 what the server has just written
    sys.stdout.buffer.write(answer.model_dump_json().encode())
