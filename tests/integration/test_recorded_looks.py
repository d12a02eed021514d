"""What shows outcomes of an unfinished campaign records a look: every command, every endpoint of the viewer."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from tests.support import ledgers
from tests.support.ledgers import Fate
from trialfleet_analysis.kept_answer import CampaignAnswer
from trialfleet_analysis.viewer.access import Access
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.server import application
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore

PLAN = ledgers.plan(("alpha", "beta"), reps=3)
TRIAL, OTHER = (next(t for t in ledgers.trials(PLAN) if t.condition == name) for name in ("none", "intent_layer"))

OTHER_UID = "0" * len(PLAN.uid)

Arguments = Callable[[Path], list[str]]
SHOW: dict[str, Arguments] = {
    "report": lambda root: [f"{root}/store/demo", "--out", f"{root}/report"],
    "figures": lambda root: [f"{root}/store/demo", "--out", f"{root}/figures"],
    "tables": lambda root: [f"{root}/store/demo", "--out", f"{root}/tables"],
    "side-by-side": lambda root: [f"{root}/store/demo", f"{root}/store/other"],
    "power": lambda root: f"--from-campaign {root}/store/demo --control none --to 0.7 --reps 4".split(),
    "status": lambda root: [f"{root}/store/demo"],
    "show": lambda root: [f"{root}/store/demo", TRIAL.id],
    "pull": lambda root: [f"{root}/store/demo", f"{root}/copy"],
}
SHOW_NOTHING = {
    "run": "ends as report does",
    "resume": "ends as report does",
    "compare": "ends as report does",
    "view": "its endpoints are below",
    "combine": "refuses campaigns that are not finished",
    "logs": "the agent's output, and no verdict",
    **dict.fromkeys(("validate", "init", "tasks", "plan", "submit", "context", "targets"), "before any trial"),
    **dict.fromkeys(
        ("cancel", "gc", "prepull", "image", "agents", "doctor", "completion", "k8s", "kind"), "no outcome"
    ),
    "examples": "copies what comes with the program",
    "demo": "`run` of campaigns that it has just copied, to their end",
}
Page = Callable[[CampaignSite], object]
PAGES: dict[str, Page] = {
    "/": lambda site: site.home({}),
    "/trials": lambda site: site.trials({}),
    "/trials/found": lambda site: site.found({}),
    "/trials.csv": lambda site: site.table({}),
    "/trials.parquet": lambda site: site.parquet({}),
    "/trial/{trial}": lambda site: site.trial(TRIAL.id),
    "/trial/{trial}/{attempt:attempt}": lambda site: site.trial(TRIAL.id, 1),
    "/now": lambda site: site.now(),
    "/trial/{trial}/{attempt:attempt}/output": lambda site: site.output(TRIAL.id, 1),
    "/trial/{trial}/{attempt:attempt}/file/{path:path}": lambda site: site.file(TRIAL.id, 1, "patch.diff"),
    "/pair/{a}/{b}": lambda site: site.pair(TRIAL.id, OTHER.id),
}
PAGES_OF_NOTHING = {"/assets/{name}", "/live.json"}  # fonts and styles; counts

ANSWER = CampaignAnswer(banner=None, sentences=("No answer yet.",), cautions=(), next_step="Wait.")


def write(root: Path, *, blocks: int) -> DirectoryStore:
    """`blocks` of three are over."""

    def fate(trial: Trial) -> Fate | None:
        passed = trial.task == "alpha" or trial.condition == "intent_layer"
        return Fate(Verdict.PASSED if passed else Verdict.FAILED) if trial.block < blocks else None

    other = ledgers.plan(("alpha", "beta"), name="other", reps=3).model_copy(update={"uid": OTHER_UID})
    ledgers.write(root / "store", other, lambda _: Fate())
    return ledgers.write(root / "store", PLAN, fate)


def site_of(store: DirectoryStore) -> CampaignSite:
    return CampaignSite(WatchedCampaign(store, "demo", compute=lambda _: ANSWER), ServedAddresses())


def test_every_command_is_listed() -> None:
    commands = {point.name for point in metadata.entry_points(group="trialfleet.commands")}
    assert commands == SHOW.keys() | SHOW_NOTHING.keys()


def test_every_endpoint_is_listed(tmp_path: Path) -> None:
    app = cast("Any", application(site_of(write(tmp_path, blocks=0)), Access(8080, "token")))
    assert {route.path for route in app._app.routes} == PAGES.keys() | PAGES_OF_NOTHING


@pytest.mark.parametrize(("blocks", "looks"), [(1, 1), (3, 0)])
@pytest.mark.parametrize("name", SHOW)
def test_a_command_that_shows_outcomes_records_a_look(name: str, blocks: int, looks: int, tmp_path: Path) -> None:
    store = write(tmp_path, blocks=blocks)
    [point] = metadata.entry_points(group="trialfleet.commands", name=name)
    command: click.Command = point.load()
    done = CliRunner().invoke(command, SHOW[name](tmp_path))
    assert done.exit_code == 0, done.output
    found = Ledger(store, "demo").directives.looks()
    assert len(found) == looks
    assert all((one.terminal, one.planned) == (4, 12) for one in found)


@pytest.mark.parametrize(("blocks", "looks"), [(1, 1), (3, 0)])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_shows_outcomes_records_a_look(path: str, blocks: int, looks: int, tmp_path: Path) -> None:
    store = write(tmp_path, blocks=blocks)
    site = site_of(store)
    for _ in range(2):
        PAGES[path](site)
    assert len(Ledger(store, "demo").directives.looks()) == looks


def test_counts_alone_are_no_look(tmp_path: Path) -> None:
    store = write(tmp_path, blocks=1)
    site_of(store).watched.progress()
    assert Ledger(store, "demo").directives.looks() == ()
