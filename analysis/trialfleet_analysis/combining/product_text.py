"""A product of evidence in sentences and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from trialfleet_analysis.combining.product import EvidenceProduct, MultipliedCampaign
from trialfleet_analysis.combining.sections import methods_section, record_section
from trialfleet_designs.document.figures import bare_p, evidence, p_value
from trialfleet_designs.document.tables import (
    ReportSection,
    difference,
    difference_limits,
    number,
    section,
    table,
    text,
)
from trialfleet_designs.looks.section import DECISIONS
from trialfleet_ledger.plurals import plural

NAMED = 5  # factors that the sentence names


def worded_product(bare: EvidenceProduct) -> EvidenceProduct:
    """With the sentences and the cautions that are made of its numbers."""
    return dataclasses.replace(
        bare, answer=(f"{_decision(bare)}: {_product(bare)}.",), cautions=tuple(_cautions(bare))
    )


def _decision(found: EvidenceProduct) -> str:
    a, b = found.treatment, found.control
    campaigns = plural(len(found.campaigns), "campaign")
    on = f"these {plural(sum(one.tasks for one in found.campaigns), 'task')} of {campaigns}"
    if found.decision in ("more", "less"):
        return f"On {on}, {a} passed {found.decision} often than {b}"
    if found.decision == "conflict":
        return f"On {on}, {a} and {b} differ, but not in the same direction in every campaign"
    return f"No difference was shown so far between {a} and {b} on {on}"


def _product(found: EvidenceProduct) -> str:
    named = [f"{evidence(one.log_evidence)} ({one.label})" for one in found.campaigns[:NAMED]]
    if len(found.campaigns) > NAMED:
        named.append(f"{plural(len(found.campaigns) - NAMED, 'more factor')}")
    product = f"E = {' × '.join(named)}" + (f" = {evidence(found.log_evidence)}" if len(named) > 1 else "")
    return f"{product}, {p_value(found.p_value, found.alpha)}, valid at any look"


def _cautions(found: EvidenceProduct) -> Iterator[str]:
    for one in found.differences:
        yield f"The campaigns differ in {one.text}. The product asks whether there is a difference in any of them."
    for campaign in found.campaigns:
        yield from _incomplete(campaign)
    if found.shared_tasks:
        yield f"{plural(len(found.shared_tasks), 'task')} of several campaigns: each campaign bet on it."
    if not found.verified:
        yield "Bundles were not verified: they were not read, or not pulled."


def _incomplete(one: MultipliedCampaign) -> Iterator[str]:
    lost = f"{plural(one.broken, 'pair')} lost a trial" if one.broken else ""
    halted = f"{', '.join(one.halted)} halted" if one.halted else ""
    if why := " and ".join(said for said in (lost, halted) if said):
        yield (
            f"{one.label}: {why}; its guarantee needs losses that, within a task and a condition, do not depend "
            "on what the trial would have shown."
        )


def product_sections(found: EvidenceProduct) -> tuple[ReportSection, ...]:
    return (
        section(
            "campaigns",
            "Each campaign",
            "What was multiplied is E after each campaign's last look. A campaign's own p is of its largest E so "
            "far. The product is valid for campaigns that were chosen without regard to their results; each may "
            "go on, and the product may be taken again.",
            table(
                "Campaigns",
                found.campaigns,
                text("Campaign", lambda one: one.label),
                number("Tasks", lambda one: one.tasks),
                number("Blocks", lambda one: one.blocks),
                number("Treatment alone passed", lambda one: one.won),
                number("Control alone passed", lambda one: one.lost),
                number("Equal", lambda one: one.equal),
                number("E", lambda one: evidence(one.log_evidence)),
                number("p, at any look", lambda one: bare_p(one.p_value, found.alpha)),
                number("Difference", lambda one: difference(one.difference)),
                number("Limits, at any look", lambda one: difference_limits(one.difference)),
                text("State", lambda one: DECISIONS[one.ended or "continue"]),
            ),
        ),
        record_section(found.campaigns, found.differences, found.versions),
        methods_section("combined.json holds ln E, unrounded.", METHODS),
    )


METHODS = (
    ("E of a campaign", "sign betting on discordant task × block pairs, at its last look (Ville)"),
    ("E of all", "the product; p = min(1, 1/E), for no difference in any of the campaigns"),
    ("a campaign's limits", "confidence sequence from the same bets"),
)
