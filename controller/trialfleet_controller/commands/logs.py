"""`trialfleet logs`: prints an agent's output, also while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_ledger.ledger import Ledger

EVERY_S = 2.0


@click.command("logs")
@click.argument("campaign")
@click.argument("trial")
@store_option
@click.option("--attempt", type=click.IntRange(1), help="Number of the attempt. [default: the last]")
@click.option("--follow", "-f", is_flag=True, help="Print new output until the attempt ends.")
def logs(campaign: str, trial: str, store: str | None, attempt: int | None, follow: bool) -> None:
    """Print the agent's output in one attempt of TRIAL in CAMPAIGN. While the attempt runs, print the output that
    has reached the store.

    The agent's standard error is printed to standard error after the attempt has ended.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.lookup import trial_id
    from trialfleet_ledger.errors import OperatorError

    found = find(campaign, store)
    ledger = found.ledger
    wanted = trial_id(found.store, found.name, trial)
    count = len(ledger.attempts.chain(wanted))
    n = attempt or count
    if n > count:
        raise OperatorError(f"the trial has {plural(count, 'attempt')}", where="--attempt", hint=f"1 to {count}")
    shown = 0
    hint = _kubectl_hint(ledger, wanted, n)
    while True:
        text, errors, over = _read(ledger, wanted, n)
        if hint and not text and not over:
            click.echo(hint, err=True)
            hint = None
        click.echo(text[shown:], nl=False)
        shown = max(shown, len(text))
        if errors:
            click.echo(f"── standard error\n{errors}", nl=False, err=True)
        if over or not follow:
            return
        time.sleep(EVERY_S)


def _kubectl_hint(ledger: Ledger, trial: str, n: int) -> str | None:
    """How to read what the pod itself printed, which is not in the store. None: the attempt has no pod."""
    from trialfleet_controller.backends.kube import names

    plan = ledger.plan()
    if plan.kubernetes is None:
        return None
    pod, namespaces = names.pod(plan.uid, trial, n), plan.kubernetes.namespaces
    where = f"-n {namespaces[0]}" if len(namespaces) == 1 else f"-n NAMESPACE ({', '.join(namespaces)})"
    return (
        f"no output has reached the store yet; while the pod exists, read the runner's output with: "
        f"kubectl {where} logs {pod} -c {names.RUNNER}"
    )


def _read(ledger: Ledger, trial: str, n: int) -> tuple[str, str, bool]:
    """The output so far and, once it has a bundle, the standard error, both safe for a terminal; and whether the
    attempt has ended."""
    from trialfleet_controller.commands.show import open_bundle
    from trialfleet_ledger import keys
    from trialfleet_ledger.display_text import visible
    from trialfleet_ledger.live_output import LOG_CAP, inflated

    attempt = ledger.attempts.attempt(trial, n)
    over = attempt is None or attempt.end is not None
    if attempt is None or attempt.end is None or attempt.end.bundle is None:
        raw = ledger.store.get(keys.attempt_file(ledger.campaign, trial, n, "live.log.zst"))
        return visible(inflated(raw), LOG_CAP) if raw else "", "", over
    bundle, fault = open_bundle(ledger, (attempt,), None)
    if bundle is None:
        return f"{fault}\n", "", over
    said, errors = (bundle.text(f"agent/{name}.log") or "" for name in ("stdout", "stderr"))
    return visible(said, LOG_CAP), visible(errors, LOG_CAP), over
