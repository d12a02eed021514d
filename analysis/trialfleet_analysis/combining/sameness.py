"""Whether campaigns may be combined: never the same trial twice, and only what compares the same. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic_core import to_jsonable_python

from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_deliveries.condition_parts import parts_of
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.errors import OperatorError

NAMED = 3  # tasks that a difference names
LONGEST = 90  # characters of a value
ABSENT = "none"


@dataclass(frozen=True)
class CampaignDifference:
    """What is not the same in all campaigns: each value with the campaigns that have it."""

    what: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        said = [f"{value} ({', '.join(names)})" for value, names in self.values]
        return f"{self.what}: {'; '.join(said)}"


def refuse_twice(campaigns: Sequence[CampaignEvidence]) -> None:
    """Raises `OperatorError` where two are one campaign, or hold the same trial."""
    seen: set[object] = set()
    for number, one in enumerate(campaigns):
        new = seen.isdisjoint({one.plan.uid, *one.identities})
        seen |= {one.plan.uid, *one.identities}
        for other in () if new else campaigns[:number]:
            if one.plan.uid == other.plan.uid:
                problem = "one campaign is given twice"
            elif same := len(one.identities & other.identities):
                problem = f"two campaigns hold the same trials or bundles ({same:,})"
            else:
                continue
            raise OperatorError(
                f"{problem}: its trials would count twice",
                where=f"{other.where} and {one.where}",
                hint="name each campaign once",
            )


def refuse_different(found: Sequence[CampaignDifference]) -> None:
    """Raises `OperatorError` that names each difference."""
    if found:
        raise OperatorError(
            "the campaigns do not compare the same:\n"
            + "\n".join(f"  {one_line(one.text, 400)}" for one in found),
            hint="leave out the campaigns that differ, or add --across: the answer is then a mean over them",
        )


def differences(campaigns: Sequence[CampaignEvidence]) -> tuple[CampaignDifference, ...]:
    """In agent, model, texts, the content of treatment or control, and what was declared; one entry where both
    conditions differ alike."""
    treatment, control = _sides(campaigns, "treatment"), _sides(campaigns, "control")
    both = [name for name in treatment if treatment[name].values == _values(control.get(name))]
    named = [*treatment, *(name for name in control if name not in treatment)]
    found: list[CampaignDifference] = []
    for name in named:
        if name in both:
            found.append(treatment[name])
            continue
        for side, of in (("treatment", treatment), ("control", control)):
            if name in of:
                found.append(CampaignDifference(f"{side}, {name}", of[name].values))
    return (*found, *_declarations(campaigns), *_texts(campaigns))


def _values(found: CampaignDifference | None) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    return None if found is None else found.values


def _sides(campaigns: Sequence[CampaignEvidence], side: str) -> dict[str, CampaignDifference]:
    facts = {one.label: dict(_facts(one, getattr(one.primary, side))) for one in campaigns}
    names = dict.fromkeys(name for told in facts.values() for name in told)
    found = [_grouped(name, {label: told.get(name, ABSENT) for label, told in facts.items()}) for name in names]
    contents = _contents(campaigns, side)
    return {one.what: one for one in (*found, contents) if one is not None}


def _facts(one: CampaignEvidence, condition: str) -> Iterator[tuple[str, str]]:
    agent = one.plan.agents[condition]
    for part, value in parts_of(one.plan.conditions[condition], agent.spec).items():
        yield part.replace("_", " "), _shown(value)
    yield "agent's time budget", f"{agent.spec.timeout_s:g} s"
    yield "agent's program", agent.digest[:12]


def _contents(campaigns: Sequence[CampaignEvidence], side: str) -> CampaignDifference | None:
    """Of the tasks that several campaigns have: what the condition delivers, by digest."""
    delivered: dict[str, dict[str, str]] = {}
    for one in campaigns:
        condition = getattr(one.primary, side)
        for cell in one.plan.cells:
            if cell.condition.name == condition and cell.task in one.tasks:
                delivered.setdefault(cell.task, {})[one.label] = cell.condition.digest[:12]
    apart = {task: digests for task, digests in delivered.items() if len(set(digests.values())) > 1}
    if not apart:
        return None
    names = ", ".join(list(apart)[:NAMED]) + (f" and {len(apart) - NAMED} more" if len(apart) > NAMED else "")
    return _grouped(f"content for {names}", next(iter(apart.values())))


def _declarations(campaigns: Sequence[CampaignEvidence]) -> Iterator[CampaignDifference]:
    for name in ("estimand", "alpha"):
        told = {one.label: _shown(getattr(one.primary, name)) for one in campaigns}
        if found := _grouped(f"declared {name}", told):
            yield found


def _texts(campaigns: Sequence[CampaignEvidence]) -> Iterator[CampaignDifference]:
    names = sorted({name for one in campaigns for name in one.plan.texts})
    for name in names:
        told = {one.label: one.plan.texts.get(name, ABSENT)[:12] for one in campaigns}
        if found := _grouped(f"text {name}", told):
            yield found


def _grouped(what: str, told: dict[str, str]) -> CampaignDifference | None:
    """None where all say the same."""
    groups: dict[str, list[str]] = {}
    for label, value in told.items():
        groups.setdefault(value, []).append(label)
    if len(groups) < 2:
        return None
    return CampaignDifference(what, tuple((value, tuple(labels)) for value, labels in sorted(groups.items())))


def _shown(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return one_line(value, LONGEST)
    return one_line(json.dumps(to_jsonable_python(value), sort_keys=True, ensure_ascii=False), LONGEST)
