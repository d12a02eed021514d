"""The default plan of analysis, from columns to findings: pure."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.plan_of_analysis.columns import Columns, Counts, FourCounts, Scheme, counted, places
from trialfleet_analysis.plan_of_analysis.edits import timing
from trialfleet_analysis.plan_of_analysis.families import all_contrasts, sides
from trialfleet_analysis.plan_of_analysis.margin import equivalences
from trialfleet_analysis.plan_of_analysis.measures import measured
from trialfleet_analysis.plan_of_analysis.methods import methods
from trialfleet_analysis.plan_of_analysis.money import cost_ratios, costs
from trialfleet_analysis.plan_of_analysis.order import drift_checks
from trialfleet_analysis.plan_of_analysis.outlook import outlook
from trialfleet_analysis.plan_of_analysis.passing import incidence, times_to_pass
from trialfleet_analysis.plan_of_analysis.repeated import repeats
from trialfleet_analysis.plan_of_analysis.screens import Screened, screened
from trialfleet_analysis.plan_of_analysis.sensitivity import loss_test, robust, sensitivities
from trialfleet_analysis.plan_of_analysis.spread import distributions
from trialfleet_analysis.plan_of_analysis.subgroups import Factors, by_factor
from trialfleet_analysis.report.document.analysis import Analysis
from trialfleet_analysis.report.document.contrasts import Contrast, Declared


def analyse(
    scheme: Scheme,
    columns: Columns,
    *,
    lost_attempts: Sequence[int] = (),
    asked: Sequence[tuple[str, str]] = (),
    everything: tuple[Scheme, Columns] | None = None,
) -> Analysis:
    """Everything that the plan of analysis finds. Same columns, scheme and seed: the same numbers.

    `lost_attempts`: of each condition, those lost once the agent had started (none known: empty). `asked`:
    further contrasts, (treatment, control), that the plan did not name. `everything`: scheme and columns of all
    primary tasks, where some are not compared since they lost every trial of a condition: losses are judged on
    these. Order of trials does not matter.
    """
    counts, losses = counted(columns, scheme), everything or (scheme, columns)
    found = all_contrasts(scheme, columns, counts, sides(scheme, asked))
    primary = next((one for one in found.contrasts if one.role == "primary"), None)
    factors = by_factor(primary, scheme, counts) if primary else Factors((), ())
    screens = _screens(found.contrasts, scheme, counts)
    metrics = measured(found.contrasts, scheme, columns)
    return Analysis(
        declared=Declared(**scheme.declared.model_dump()) if scheme.declared else None,
        monitored=scheme.monitored,
        contrasts=found.contrasts,
        families=(*found.families, *factors.families, *(one.family for one in screens), *metrics.families),
        equivalence=equivalences(scheme, counts),
        subgroups=factors.subgroups,
        screens=tuple(one.screen for one in screens),
        robustness=robust(primary, _arms(primary, scheme, counts), *losses) if primary else (),
        sensitivities=sensitivities(primary, scheme, columns) if primary else (),
        loss_test=loss_test(*losses),
        measures=metrics.measures,
        costs=costs(scheme, columns, lost_attempts or [0] * len(scheme.conditions)),
        cost_ratios=cost_ratios(found.contrasts, scheme, columns),
        incidence=incidence(scheme, columns),
        time_to_pass=times_to_pass(found.contrasts, scheme, columns),
        distributions=distributions(scheme, columns),
        timing=timing(scheme, columns),
        drift=drift_checks(scheme, columns),
        outlook=outlook(primary or next(iter(found.contrasts), None), scheme, counts),
        repeats=repeats(scheme, counts),
        methods=methods(scheme),
    )


def _arms(one: Contrast, scheme: Scheme, counts: Counts) -> FourCounts:
    place = places(scheme.conditions)
    return counts.arms(place[one.treatment], place[one.control])


def _screens(contrasts: Sequence[Contrast], scheme: Scheme, counts: Counts) -> list[Screened]:
    """Of the planned contrasts: screening every pair of conditions would find something somewhere."""
    planned = [one for one in contrasts if one.role not in ("unplanned", "ceiling")]
    return [found for one in planned if (found := screened(one, scheme, counts)) is not None]
