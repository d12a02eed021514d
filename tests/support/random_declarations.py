"""Campaigns that are declared and have not run, drawn at random: what `plan` and `power` are asked about."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tests.support.ledgers import plan, write_plan
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.plan import Plan

NAMES = ("none", "intent_layer", "placebo", "flat_llm", "preamble_only")
CONTRASTS = ("fixed", "looks", "bets", "halving")
QUESTIONS = ("question", "looked question", "joint", "looked joint")
KINDS = (*CONTRASTS, *QUESTIONS, "metric", "looked metric", "trend", "nothing")
SHA = "0123456789012345678901234567890123456789"


@dataclass(frozen=True)
class DrawnDeclaration:
    """`spec`: the campaign file's content; None: `text` is refused. `repositories`: of each task."""

    kind: str
    text: str
    spec: CampaignSpec | None
    repositories: tuple[str, ...]
    apart: int

    @property
    def lacks_room(self) -> bool:
        """Whether its effect cannot be over a control that passes half of its trials, as `power` assumes."""
        declared = self.spec.primary if self.spec else None
        return declared is not None and (declared.planned_effect or 0) >= 0.5

    def write(self, folder: Path) -> Path:
        """The campaign file with its task files."""
        (folder / "tasks.d").mkdir(parents=True)
        for name in dict.fromkeys(self.repositories):
            own = [at for at, one in enumerate(self.repositories) if one == name]
            (folder / f"tasks.d/{name}.yaml").write_text(_task_file(name, own, self.apart))
        (folder / "tasks.d/lock.txt").write_text("")
        (folder / "campaign.yaml").write_text(self.text)
        return folder / "campaign.yaml"

    def freeze(self, folder: Path) -> tuple[Path, Plan]:
        """A plan of it in a store, without results, and the campaign's folder."""
        assert self.spec is not None
        names = tuple(f"task-{at}" for at in range(len(self.repositories)))
        conditions = tuple(name for name, _ in self.spec.single_conditions)
        made = plan(names, conditions, reps=self.spec.reps, no_oracle=names[: self.apart])
        declared, cost = self.spec.primary, self.spec.limits.cost_usd
        placed = [
            task.model_copy(update={"repository": name})
            for task, name in zip(made.tasks, self.repositories, strict=True)
        ]
        update: dict[str, Any] = {
            "limits": made.limits.model_copy(update={"cost_usd": cost.trial}),
            "cost_usd_campaign": cost.campaign,
            "tasks": tuple(placed),
            **({} if declared is None else {declared.field: declared}),
        }
        made = made.model_copy(update=update)
        write_plan(folder, made)
        return folder / made.campaign, made


def draw_declaration(seed: int) -> DrawnDeclaration:
    """Of 2 to 40 tasks in 1 to 6 repositories, 1 to 40 reps, 2 to 5 conditions. Same seed, same declaration."""
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    tasks, reps = round(2 * 20 ** draw.random()), round(40 ** draw.random())
    of = draw.randint(1, min(6, tasks))
    least = {"trend": 3, "halving": 5}.get(kind, 2)
    names = NAMES[: draw.randint(least, 5)]
    repositories = sorted(f"r{draw.randrange(of)}" for _ in range(tasks))
    apart = draw.choice((0, 0, 0, 1)) if tasks > 2 else 0
    trial, campaign = draw.choice((None, 0.0333, 1, 2.5, 12)), draw.choice((None, None, 40, 1e4))
    given: dict[str, Any] = {
        "campaign": "demo",
        "seed": 1,
        "tasks": ["tasks.d/*.yaml"],
        "conditions": list(names),
        "reps": reps,
        "agent": {"kind": "search"},
        "store": "store",
        "allow_no_oracle": True,
    }
    cost = {key: value for key, value in (("trial", trial), ("campaign", campaign)) if value is not None}
    if cost:
        given["limits"] = {"cost_usd": cost}
    if (primary := _primary(kind, names, reps, draw)) is not None:
        given["primary"] = primary
    try:
        spec = CampaignSpec.model_validate(given)
    except ValidationError:
        spec = None
    return DrawnDeclaration(kind, yaml.safe_dump(given, sort_keys=False), spec, tuple(repositories), apart)


def _primary(kind: str, names: tuple[str, ...], reps: int, draw: random.Random) -> dict[str, Any] | None:
    if kind == "nothing":
        return None
    found: dict[str, Any] = {}
    if draw.random() < 0.5:
        found["alpha"] = draw.choice((0.01, 0.025, 0.1, 0.2))
    if kind == "trend":
        found |= {"trend": list(names), "doses": sorted(draw.sample(range(9), len(names)))}
    else:
        found |= {"treatment": names[1], "control": names[0]}
    own = _contrast if kind in (*CONTRASTS, "trend") else _question if kind in QUESTIONS else _metric
    found |= own(kind, draw)
    if "looked" in kind or kind == "looks":
        found["stop"] = _looks(kind, reps, draw)
    return found


def _contrast(kind: str, draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (effect := draw.choice((None, None, 0.05, 0.1, 0.2, 0.35, 0.6))) is not None:
        found["effect"] = effect
    if kind == "fixed":
        found["estimand"] = draw.choice(("these_tasks", "tasks_like_these", "other_repositories"))
    if kind == "fixed" and draw.random() < 0.2:
        found["margin"] = draw.choice((0.1, 10))
    if kind == "halving":
        found["halve"] = True
    if kind == "bets":
        found["stop"] = {"anytime": draw.choice(("half", "mixture"))}
    return found


def _question(kind: str, draw: random.Random) -> dict[str, Any]:
    joint = "joint" in kind
    found: dict[str, Any] = {"margin": draw.choice((5, 0.1, 15, 0.3))}
    found["question"] = "cheaper_and_not_worse" if joint else draw.choice(("not_worse", "equivalent"))
    if joint and draw.random() < 0.5:
        found["metric"] = draw.choice(("tokens", "turns", "agent_s"))
    if kind == "question" and draw.random() < 0.3:
        found["estimand"] = "tasks_like_these"
    return found


def _metric(kind: str, draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"metric": draw.choice(("cost_usd", "tokens", "turns", "agent_s"))}
    if kind == "metric" and draw.random() < 0.4:
        found["scale"] = "difference"
    if draw.random() < 0.5:
        found["effect"] = draw.choice((0.5, 0.7, 0.9, 1.3))
    return found


def _looks(kind: str, reps: int, draw: random.Random) -> dict[str, Any]:
    stop: dict[str, Any] = {"looks": draw.choice((2, 3, 5, 10))}
    if draw.random() < 0.3 and reps > 2:
        stop["looks"] = [*sorted(draw.sample(range(1, reps), min(2, reps - 1))), reps]
    if draw.random() < 0.5:
        stop["spending"] = "obrien_fleming"
    rules: list[Any] = [
        None,
        "none",
        {"predictive": 0.1},
        {"predictive": 0.05, "side": "gain"},
        {"conditional": 0.2},
    ]
    rule = draw.choice(rules if kind == "looks" else rules[:3])
    if rule is not None:
        stop["futility"] = rule
    if kind == "looks" and reps > 4 and draw.random() < 0.5:
        at = stop["looks"][0] if isinstance(stop["looks"], list) else round(reps / min(stop["looks"], reps))
        if draw.random() < 0.5:
            stop["drop_saturated"] = at
        if draw.random() < 0.5:
            stop["reestimate"] = {"after": at, "cap": reps + draw.choice((0, 5, 30))}
    return stop


def _task_file(repository: str, numbers: list[int], apart: int) -> str:
    return yaml.safe_dump(
        {
            "repo": {"url": f"https://example.invalid/{repository}"},
            "tasks": [
                {
                    "id": f"task-{at}",
                    "pre_fix_commit": SHA,
                    "fix_commit": SHA,
                    "test_file": "tests/test_it.py",
                    "prompt_source": "failing_test",
                    "environment": {"python": ["3.11"], "lock": "lock.txt"},
                    "status": "no_oracle" if at < apart else "validated",
                    "fail_to_pass": [] if at < apart else ["tests/test_it.py::test_it"],
                }
                for at in numbers
            ],
        }
    )
