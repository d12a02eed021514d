"""What mining has found so far, kept on disk after every commit, so that it can go on where it was interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.task import TaskSpec
from trialfleet_tasks.mining.findings import MiningFinding

METHOD = 18  # of mining: raise it when older findings say something else


class ExaminedCommit(Frozen):
    """One line of the file. `setting`: digest of what the finding depends on besides the commit, also the versions
    of the machine's tools."""

    method: int
    setting: str
    finding: MiningFinding
    task: TaskSpec | None = None


@dataclass
class MiningState:
    """`findings.jsonl` of one setting for each language. Threads may share it; another mining may add to the file
    meanwhile."""

    path: Path
    setting: Callable[[str], str]
    languages: Mapping[str, str]
    _found: dict[str, ExaminedCommit] = field(default_factory=dict[str, ExaminedCommit])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def load(cls, path: Path, setting: Callable[[str], str], languages: Mapping[str, str]) -> MiningState:
        """The findings of this method and of the setting for their language; a line that was cut off is left out.
        `languages`: of the candidates, by commit; a finding of such a commit in another language is left out as
        well."""
        state = cls(path, setting, languages)
        state.refresh()
        return state

    def refresh(self) -> None:
        """Read what another process has added to the file as well."""
        with self._turn:
            for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            examined = ExaminedCommit.model_validate_json(line)
        except ValueError:
            return
        commit, language = examined.finding.commit, examined.finding.language or "Python"
        if (examined.method, examined.setting) == (METHOD, self.setting(language)) and (
            self.languages.get(commit, language) == language
        ):
            self._found[commit] = examined

    def add(self, finding: MiningFinding, task: TaskSpec | None) -> None:
        """Keep one more, on disk first."""
        setting = self.setting(finding.language or "Python")
        examined = ExaminedCommit(method=METHOD, setting=setting, finding=finding, task=task)
        with self._turn:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() and not self._ends_whole():
                    file.write(b"\n")
                file.write(canonical_json(examined).strip() + b"\n")
            self._found[finding.commit] = examined

    def _ends_whole(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read() == b"\n"

    def finding(self, commit: str) -> MiningFinding | None:
        """None: the commit has not been examined."""
        examined = self._found.get(commit)
        return None if examined is None else examined.finding

    def findings(self, commits: Iterable[str]) -> list[MiningFinding]:
        """Of those commits, in their order."""
        return [self._found[commit].finding for commit in commits if commit in self._found]

    def tasks(self, commits: Iterable[str]) -> list[TaskSpec]:
        """The tasks that those commits gave, in their order."""
        found = (self._found[commit].task for commit in commits if commit in self._found)
        return [task for task in found if task is not None]
