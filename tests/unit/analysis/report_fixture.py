"""A report made by hand: every part of the document filled, of any size, without running an analysis."""

from __future__ import annotations

import hashlib
import io
import random
from base64 import b32encode

from rich.console import Console

from tests.unit.analysis.analysis_fixture import made_analysis
from trialfleet_analysis.losses import LossCount, LossMessage, LossRate, OperatorStops
from trialfleet_analysis.process import (
    BlockResult,
    Channel,
    CoreSeconds,
    InlineText,
    StopCount,
    Typical,
    VerdictCount,
)
from trialfleet_analysis.rates import CellResult, ConditionResult, LeftOut
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import CampaignProgress, ManifestLine, RefusedBundle, Report
from trialfleet_analysis.report.terminal import show
from trialfleet_analysis.tables.rows import TaskRow, Use
from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.metric_table import REPORTED
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.stage_reached import Stage
from trialfleet_statistics.estimates import EffectiveInterval, Interval, Test
from trialfleet_statistics.intervals import PooledInterval, clopper_pearson, wilson

PROJECTS = ("ansible", "graphiti", "pdm", "luigi", "keras", "scrapy", "httpie", "black")
BUGS = ("split-args-quoting", "edge-dates-none", "lock-groups-order", "env-vars-empty", "retry-backoff-cap")
DELIVERIES = ("none", "placebo", "flat_llm", "intent_layer", "intent_layer_preamble")


def names(tasks: int, conditions: int) -> tuple[list[str], list[str]]:
    """Names as real campaigns have them."""
    of_tasks = [
        f"{PROJECTS[n % 8]}-{BUGS[n // 8 % 5]}" + (f"-{n // 40 + 1}" if n >= 40 else "") for n in range(tasks)
    ]
    of_conditions = [DELIVERIES[n % 5] + (f"_v{n // 5 + 1}" if n >= 5 else "") for n in range(conditions)]
    return of_tasks, of_conditions


def on_terminal(report: Report, *, width: int = 80) -> str:
    stream = io.StringIO()
    show(report, Console(file=stream, width=width, force_terminal=False))
    return stream.getvalue()


def made(
    tasks: int = 6, conditions: int = 5, reps: int = 10, *, declared: bool = True, lost: float = 0.02
) -> Report:
    """A finished campaign. Same arguments: the same report."""
    draw = random.Random(f"{tasks}/{conditions}/{reps}")
    of_tasks, of_conditions = names(tasks, conditions)
    cells = tuple(_cell(draw, task, name, reps, lost) for task in of_tasks for name in of_conditions)
    bare = Report(
        dry_run=False,
        title="made-by-hand",
        schema_version=2,
        campaign="made-by-hand",
        banner=None,
        verified=True,
        progress=CampaignProgress(
            interim=False,
            planned=len(cells) * reps,
            terminal=len(cells) * reps,
            measured=sum(cell.valid for cell in cells),
            missing=sum(cell.lost for cell in cells),
            blocks=reps,
            complete_blocks=reps,
            beyond=0,
            cancelled=False,
            out_of_time=False,
            looks=0,
            reps_in_plan=reps,
            extended_after_look=False,
        ),
        answer=(),
        cautions=(),
        decision=None,
        summary=(),
        analysis=made_analysis(draw, of_tasks, of_conditions, reps, declared=declared),
        tasks=tuple(TaskRow(task, Use.PRIMARY, None, True, "failing_test") for task in of_tasks),
        compared=tuple(of_tasks),
        left_out=(LeftOut("a-task-apart", "no valid trial under placebo"),),
        conditions=tuple(_condition(draw, name, cells) for name in of_conditions),
        cells=cells,
        verdicts=tuple(
            VerdictCount(name, verdict, draw.randint(1, 50))
            for name in of_conditions
            for verdict in (*Verdict, None)
        ),
        stops=tuple(StopCount(name, stop, 40, draw.randint(0, 40)) for name in of_conditions for stop in Stop),
        losses=tuple(
            LossCount(name, loss, stage, draw.randint(1, 9))
            for name in of_conditions
            for loss, stage in ((LossClass.EVICTED, Stage.MID_RUN), (LossClass.IMAGE_PULL, Stage.BEFORE_AGENT))
        ),
        loss_rates=tuple(LossRate(name, 5, 2, 60, 5 / 60, 321.0, 3, 1) for name in of_conditions),
        operator_stops=OperatorStops(
            conditions=tuple(of_conditions),
            cells=(("task", of_conditions[0], 2),),
            stopped=tuple(2 for _ in of_conditions),
            trials=tuple(60 for _ in of_conditions),
            test=Test(0.5, None, "exact"),
            monte_carlo_se=None,
        ),
        loss_messages=(LossMessage(LossClass.EVICTED, Stage.MID_RUN, "node was drained", 7, "abc"),),
        metrics=tuple(
            Typical(
                measure.name,
                name,
                draw.uniform(0, 1) if measure.unit == "share" else draw.uniform(1, 9e4),
                50,
                tasks,
            )
            for measure in REPORTED
            for name in of_conditions
        ),
        core_seconds=CoreSeconds(50, 0.5, 2.2, 0.9, 3.6, 3.7),
        blocks=tuple(BlockResult(n, draw.randint(0, len(cells)), len(cells), 0) for n in range(reps)),
        channels=tuple(
            Channel(name, channel, True, 50, draw.choice([0, 0, 3]), 2 * (channel == "hook"), 0)
            if channel != "rules"
            else Channel(name, channel, False, 0, 0, 0, 50)
            for name in of_conditions
            for channel in list_channels()
        ),
        inline=(InlineText(of_conditions[-1], 40, 10, 4, 412.0, ("o200k",)),),
        quarantined=(RefusedBundle("q" * 26, of_tasks[0], of_conditions[0], 1, "b", "its SHA-256 differs"),),
        unplanned=(),
        manifest=(
            ManifestLine("Campaign", "seed", "20261121"),
            ManifestLine("Agent", "model", "a-model-1"),
            ManifestLine("This report", "trialfleet", "0.1.0"),
        ),
    )
    return worded(bare)


def _cell(draw: random.Random, task: str, condition: str, reps: int, lost: float) -> CellResult:
    rate = draw.betavariate(0.8, 0.8)
    endings = "".join(
        "-" if draw.random() < lost else "p" if draw.random() < rate else draw.choice("fft") for _ in range(reps)
    )
    passes, valid = endings.count("p"), reps - endings.count("-")
    return CellResult(
        task=task,
        condition=condition,
        use=Use.PRIMARY,
        passes=passes,
        valid=valid,
        lost=reps - valid,
        wilson=wilson(passes, valid),
        clopper_pearson=clopper_pearson(passes, valid),
        coverage_none=reps if draw.random() < 0.03 else 0,
        trials=tuple(_id(task, condition, rep) for rep in range(reps)),
        endings=endings,
    )


def _id(task: str, condition: str, rep: int) -> str:
    return b32encode(hashlib.sha256(f"{task}/{condition}/{rep}".encode()).digest()).decode().lower()[:26]


def _condition(draw: random.Random, name: str, cells: tuple[CellResult, ...]) -> ConditionResult:
    mine = [cell for cell in cells if cell.condition == name]
    rate = draw.uniform(0.2, 0.8)
    icc = Interval(0.31, 0.1, 0.6, 0.95, len(mine), "pooled_random_icc")
    return ConditionResult(
        condition=name,
        tasks=len(mine),
        passes=sum(cell.passes for cell in mine),
        valid=sum(cell.valid for cell in mine),
        lost=sum(cell.lost for cell in mine),
        these_tasks=EffectiveInterval(
            rate, rate - 0.08, rate + 0.07, 0.95, 50, "wilson", "these_tasks", None, 71.5
        ),
        tasks_like_these=PooledInterval(
            rate, rate - 0.16, rate + 0.15, 0.95, 50, "pooled", "tasks_like_these", None, icc
        ),
        first_runs_missing=3,
        worst=rate - 0.03,
        best=rate + 0.02,
    )
