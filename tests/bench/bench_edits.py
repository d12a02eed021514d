"""What it takes to see when files change: one trial of 60 requests, on a repository of 1,000 files."""

from __future__ import annotations

import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.ignore_rules import IgnoreRules
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import Template, build_template, clone
from trialfleet_repository.workspace_watch import WorkspaceWatch

FILES, FOLDERS, REQUESTS, RUNS = 1_000, 120, 60, 5
EDITED = range(20, 30)  # the requests before which a file has changed; before one more, there is a new one


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        text = b"def f(x):\n    return x\n" * 100
        tree = {f"p{n % 12}/q{n % FOLDERS}/f{n}.py": TreeEntry(text + b"%d\n" % n) for n in range(FILES)}
        template = build_template(Path(folder, "template"), tree)
        runs = [_trial(template, Path(folder, str(run))) for run in range(RUNS)]
        spent, waited, compared = (statistics.median(each) for each in zip(*runs, strict=True))
    note = f"{FILES:,} files, {len(EDITED) + 1} edits, tests run in between"
    return [
        Figure("first edits, a trial of 60 requests", spent, "core s", 0.05, note),
        Figure("first edits, longest wait of a request", 1000 * waited, "ms", 5.0, note),
        Figure("first edits without inotify, a request", 1000 * compared, "ms", None, "every status is compared"),
    ]


def _trial(template: Template, folder: Path) -> tuple[float, float, float]:
    """Core seconds of all looks, the longest look, and a look without inotify, in seconds."""
    folder.mkdir()
    workspace = folder / "workspace"
    clone(template, workspace)
    exclusions = Exclusions(template.manifest, (), is_context=is_context_file)
    rules = IgnoreRules(template, folder / "rules")
    spent, waits = 0.0, list[float]()
    began = _core_s()
    watch = WorkspaceWatch(workspace, template.manifest, is_edited=exclusions.counts_as_edit, rules=rules)
    spent += _core_s() - began
    for request in range(REQUESTS):
        if request % 5 == 4:
            subprocess.run(["python3", "-m", "compileall", "-q", "p1"], cwd=workspace, check=True)
        if request in EDITED:
            (workspace / "p0/q0/f0.py").write_text(f"x = {request}\n")
        if request == EDITED.stop:
            (workspace / "p0/new.py").write_text("x = 1\n")
        began, clock = _core_s(), time.perf_counter()
        watch.look()
        waits.append(time.perf_counter() - clock)
        spent += _core_s() - began
    began = _core_s()
    watch.find_ignored(watch.changed)
    spent += _core_s() - began
    watch.close()
    assert watch.changed == {"p0/q0/f0.py", "p0/new.py"}
    plain = WorkspaceWatch(
        workspace, template.manifest, is_edited=exclusions.counts_as_edit, rules=rules, use_events=False
    )
    plain.look()
    clock = time.perf_counter()
    plain.look()
    return spent, max(waits), time.perf_counter() - clock


def _core_s() -> float:
    """Of this process and of git, which it starts."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
