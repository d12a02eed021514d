"""One screen: the answer, its size drawn, where it came from, what it cost, and what to doubt."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.comparisons import find_differences, find_extreme_tasks, list_effects
from trialfleet_analysis.report.figures.conditions import find_first_rates
from trialfleet_analysis.report.findings.first_costs import tabulate_cost
from trialfleet_analysis.report.html.forests import show_forest
from trialfleet_analysis.report.html.markup import Node, framed, h
from trialfleet_analysis.report.html.sentences import NEXT, below_title, cautions_list, in_one_minute
from trialfleet_analysis.report.verdict_label import label_verdict


def first_screen(report: Report) -> Element:
    """What an engineer reads in two minutes."""
    effects = [find_differences(report), *list_effects(report), find_extreme_tasks(report)]
    drawn = [show_forest(one) for one in effects if one is not None]
    rates = show_forest(find_first_rates(report))
    arrived = below_title("Did the context arrive?", arrival_line(report))
    left = h("div", drawn or rates)
    ahead = below_title(NEXT, report.next_step)
    right = h("div", rates if drawn else None, _cost(report), ahead, arrived, cautions_list(report.cautions))
    shown = [one for one in (left, right) if len(one)]
    screen = h("div", shown, class_="screen") if shown else None
    return in_one_minute(report.answer, screen, label=label_verdict(report), lists_words=True)


def _cost(report: Report) -> Node:
    found = tabulate_cost(report)
    if found is None:
        return None
    return h("figure", h("h3", found.title), framed(found, whole=True), id="figure-cost")
