"""What became of the treatments that are not in the declared contrast, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.document.figures import p_value, percent
from trialfleet_designs.document.trials_taken import trials_taken
from trialfleet_designs.halving.finding import HalvingFinding
from trialfleet_designs.protocol import Reported
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import rejects


def halving_sentences(found: HalvingFinding, reported: Reported) -> Iterator[str]:
    """Nothing while the halving has not been done; no test while the campaign is not over."""
    if not found.left_out:
        return
    chosen = next((one for one in reported.contrasts if one.treatment == found.chosen), None)
    if chosen is not None and not reported.monitored:
        yield _chosen(chosen, found.each)
    rates = {one.condition: percent(one.rate) for one in found.counts}
    names = " and ".join(f"{name} ({rates[name]})" for name in found.left_out)
    were, are = ("was", "is") if len(found.left_out) == 1 else ("were", "are")
    yield (
        f"Halved as declared: {names} {were} left out after block {found.after} of {found.planned_blocks} and "
        f"{are} not tested; those left are tested at {found.each:g}, a quarter of {found.alpha:g}. "
        f"{'So far this took' if reported.monitored else 'This answer took'} "
        f"{trials_taken(found.trials)}; four treatments to the end take "
        f"{plural(found.planned_trials, 'trial')}."
    )


def _chosen(contrast: Contrast, alpha: float) -> str:
    test, name = contrast.these_tasks.test, contrast.treatment
    if test.p_value is None:
        return f"{name}, chosen of the three others, has no answer: {test.reason}."
    size = (
        f"{percent(contrast.treatment_rate)} against {percent(contrast.control_rate)} under {contrast.control}, "
        f"{p_value(test.p_value, alpha)}"
    )
    if not rejects(test.p_value, alpha):
        return f"No difference was shown for {name}, chosen of the three others: {size}."
    if contrast.these_tasks.conflict:
        return f"{name}, chosen of the three others, differs, but no direction can be stated: {size}."
    return f"{name}, chosen of the three others, passed {'more' if test.direction > 0 else 'less'} often: {size}."
