"""The report's last section: sentences and numbers for a paper's methods section, and what to cite. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import CLAIMS
from trialfleet_designs.registry import DESIGNS
from trialfleet_ledger.plurals import enumerate_words, plural

TITLE = "For the methods section"
CELL = "a cell's rate"
LEAD = "Sentences and numbers to paste, and a BibTeX entry for each published method that they name."
# A word of the methods' descriptions, and who is cited for it
CITED = (
    ("Wilson", "wilson1927"),
    ("Clopper", "clopper1934"),
    ("exact conditional", "mehta1985"),
    ("mid-p", "lancaster1961"),
    ("Miettinen", "miettinen1985"),
    ("McNemar", "mcnemar1947"),
    ("group-sequential", "lan1983"),
    ("Ville", "ville1939"),
    ("Holm", "holm1979"),
    ("Gail", "gail1985"),
    ("Hochberg", "benjamini1995"),
    ("Tarone", "tarone1990"),
    ("Freeman", "freeman1951"),
    ("Pratt", "pratt1959"),
    ("Hodges", "hodges1963"),
    ("beta-binomial", "skellam1948"),
    ("interaction test", "zelen1971"),
    ("two one-sided tests", "schuirmann1987"),
    ("trend test", "mantel1963"),
    ("Breslow", "breslow1980"),
    ("bootstrap", "efron1979"),
    ("permutation", "phipson2010"),
    ("cumulative incidence", "aalen1978"),
    ("paired t-test", "student1908"),
    ("Satterthwaite", "satterthwaite1946"),
    ("HC3", "mackinnon1985"),
    ("Mantel-Haenszel", "mantel1959"),
    ("Kruskal", "kruskal1952"),
    ("unbiased per task", "chen2021"),
)


@dataclass(frozen=True)
class MethodsText:
    """`entries`: BibTeX, in the order of `CITED`."""

    paragraphs: tuple[str, ...]
    entries: str


def methods_text(report: Report) -> MethodsText:
    paragraphs = tuple(" ".join(part) for part in (_design(report), _analysis(report), report.answer))
    described = " ".join(one.method for one in report.analysis.methods if one.number not in _unused(report))
    keys = [key for word, key in CITED if word in described]
    return MethodsText(tuple(filter(None, paragraphs)), "\n\n".join(bibliography()[key] for key in keys))


def _design(report: Report) -> Iterator[str]:
    progress, names = report.progress, report.condition_names
    yield f"{plural(len(report.tasks), 'task')} went to {_agent(report)}"
    yield f"under {plural(len(names), 'condition')} ({', '.join(names)}):"
    yield f"{plural(progress.planned, 'trial')} in {plural(progress.blocks, 'block')}, each block in random order."
    yield f"{plural(progress.measured, 'trial')} ended with a verdict, {progress.missing:,} without one:"
    yield "these are missing data, not failures."
    lost = sum(one.attempts for one in report.losses)
    yield f"{plural(lost, 'attempt')} at trials {'was' if lost == 1 else 'were'} lost in all."
    yield from report.design.describe_changes(report.analysis.found)
    if progress.interim:
        yield f"The numbers are interim, of {plural(progress.complete_blocks, 'complete block')}."
    if progress.looks:
        yield f"Results were looked at {plural(progress.looks, 'time')} before the end."
    if progress.extended_after_look:
        yield "Repetitions were added after a look."


def _agent(report: Report) -> str:
    """Kind, version and model of each agent, as the manifest has them."""
    agents: dict[str, dict[str, str]] = {}
    for line in report.manifest:
        if line.group.split(" ")[0] == "Agent":
            agents.setdefault(line.group, {})[line.name] = line.value
    said = [
        f"{' '.join(one[name] for name in ('kind', 'version') if name in one) or 'the agent'}"
        + (f" (model {one['model']})" if "model" in one else "")
        for one in agents.values()
    ]
    return enumerate_words(said) or "the agent"


def _analysis(report: Report) -> Iterator[str]:
    declared, method = report.analysis.declared, {one.number: one.method for one in report.analysis.methods}
    if declared is not None:
        own = report.design.describe_alpha(report.analysis.found)
        yield (
            f"Declared before the first trial: {declared.treatment} against {declared.control} on "
            f"{CLAIMS[declared.estimand]}, α = {declared.alpha:g}{own}."
        )
    yield f"A contrast on these tasks: {method.get('a contrast, these tasks')};"
    yield f"its difference: {method.get('its difference')}; on tasks like these:"
    yield f"{method.get('a contrast, tasks like these')}."
    yield f"The rate of one task under one condition: {method.get(CELL)}."
    versions = [f"{line.name} {line.value}" for line in report.manifest if line.group == "This report"]
    yield f"Computed with {', '.join(versions)}."


def _unused(report: Report) -> set[str]:
    """Methods that the table describes and that this campaign has not declared."""
    declared, own = report.analysis.declared, set(report.design.uses)
    if declared is not None and declared.margin is not None:
        own.add("equivalence")
    return {number for design in DESIGNS.values() for number in design.uses} - own


@cache
def bibliography() -> dict[str, str]:
    """Entries by key."""
    text = files("trialfleet_analysis.report").joinpath("references.bib").read_text(encoding="utf-8")
    return {found[1]: one for one in text.strip().split("\n\n") if (found := re.match(r"@\w+\{(\w+),", one))}
