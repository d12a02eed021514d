"""`trialfleet logs`: what an agent prints, also while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trialfleet_controller.ledger import Ledger

EVERY_S = 2.0
LOG_CAP = 64 * 2**20


@click.command("logs")
@click.argument("campaign")
@click.argument("trial")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--attempt", type=click.IntRange(1), help="Which attempt. [default: the last]")
@click.option("--follow", "-f", is_flag=True, help="Go on until the attempt ends.")
def logs(campaign: str, trial: str, store: str | None, attempt: int | None, follow: bool) -> None:
    """Print the output of an attempt of TRIAL in CAMPAIGN; while it runs, what has arrived so far."""
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.ledger import Ledger
    from trialfleet_controller.lookup import trial_id
    from trialfleet_runner.errors import OperatorError

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    wanted = trial_id(found.store, found.name, trial)
    count = len(ledger.chain(wanted))
    n = attempt or count
    if n > count:
        raise OperatorError(f"the trial has {count} attempts", where="--attempt", hint=f"1 to {count}")
    shown = 0
    hint = _pods_words(ledger, wanted, n)
    while True:
        text, over = _read(ledger, wanted, n)
        if hint and not text and not over:
            click.echo(hint, err=True)
            hint = None
        click.echo(text[shown:], nl=False)
        shown = max(shown, len(text))
        if over or not follow:
            return
        time.sleep(EVERY_S)


def _pods_words(ledger: Ledger, trial: str, n: int) -> str | None:
    """How to read what is not in the store: what the pod itself printed. None: the attempt is in no pod."""
    from trialfleet_controller.kube import names

    plan = ledger.plan()
    if plan.kubernetes is None:
        return None
    pod, namespaces = names.pod(plan.uid, trial, n), plan.kubernetes.namespaces
    where = f"-n {namespaces[0]}" if len(namespaces) == 1 else f"-n NAMESPACE ({', '.join(namespaces)})"
    return (
        f"nothing has arrived yet; the runner's own words, while its pod is there: "
        f"kubectl {where} logs {pod} -c {names.RUNNER}"
    )


def _read(ledger: Ledger, trial: str, n: int) -> tuple[str, bool]:
    """The output so far, safe for a terminal, and whether the attempt is over."""
    from trialfleet_controller import keys
    from trialfleet_controller.commands.show import open_bundle, printable

    attempt = ledger.attempt(trial, n)
    if attempt is not None and attempt.end is not None and attempt.end.bundle is not None:
        bundle, fault = open_bundle(ledger, (attempt,), None)
        text = bundle.text("agent/stdout.log") if bundle is not None else f"{fault}\n"
        return printable(text or "", LOG_CAP), True
    raw = ledger.store.get(keys.attempt_file(ledger.campaign, trial, n, "live.log.zst"))
    over = attempt is None or attempt.end is not None
    return printable(_inflated(raw), LOG_CAP) if raw else "", over


def _inflated(raw: bytes) -> str:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
            return reader.read(LOG_CAP).decode(errors="replace")
    except zstandard.ZstdError:
        return "[the live log cannot be read]\n"
