"""From what the agent left to `patch.json`: the diff that travels, and what was measured on the way."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trialfleet_deliveries.hook_log import FAIL_FAST_LOG, HOOK_LOG, HookLog, denials, read_hook_log
from trialfleet_deliveries.registry import gather_claims
from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.bundle import redacted
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import TOKEN_KINDS, Delivery, Metrics
from trialfleet_ledger.records.receipts import Receipts
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import Parsed, Step, WorkspaceChange
from trialfleet_repository.patch import WorkspacePatch, diff
from trialfleet_runner import metrics
from trialfleet_runner.attempt.agent_run import AgentRun
from trialfleet_runner.attempt.crash import has_crashed
from trialfleet_runner.attempt.delivery_receipts import claim_arrivals
from trialfleet_runner.attempt.key_marks import mask_keys
from trialfleet_runner.attempt.loss import Lost, storable
from trialfleet_runner.attempt.observed_edits import join_changes
from trialfleet_runner.attempt.preflight_run import PreflightRun
from trialfleet_runner.attempt.prepared_inputs import Ready
from trialfleet_sandbox.scratch import Scratch

if TYPE_CHECKING:
    from trialfleet_runner.gateway import GatewayReport

TRAJECTORY_CAP = 4 * 2**20


def patch_of(
    grants: Grants,
    ready: Ready,
    scratch: Scratch,
    run: AgentRun,
    *,
    keys: Mapping[str, str],
    secrets: Collection[str],
    warnings: list[str],
) -> Patch:
    """Raises `Lost(contaminated)` when a text that the condition does not declare reached the model.

    The diff is what will be scored: of it only the provider's `keys` (name -> value) become marks. Names and talk
    are for people, so all `secrets` are masked there. Adds to `warnings` why the agent's edits are not known.
    """
    left = diff(scratch.workspace, ready.given, ready.exclusions)
    stored, marks = mask_keys(left.diff, keys)
    hook = read_hook_log(scratch.home / HOOK_LOG)
    denied = denials(scratch.home / FAIL_FAST_LOG) if grants.condition.fail_fast else None
    delivery = delivered(
        ready.composed.delivery,
        gather_claims(grants.condition, ready.composed.delivery, hook),
        run.gateway,
        run.receipts,
    )
    edits = run.edits.confirm(left.changed)
    if edits.changes is None:
        warnings.append(without(secrets, storable(f"when the agent edited is not known: {edits.lost}")))
    whole, left_out = jsonl(join_changes(run.parsed.steps, edits.changes or ()))
    trajectory = without(secrets, whole)
    return Patch(
        plan=grants.plan,
        trial=grants.trial.id,
        attempt=grants.attempt,
        nonce=grants.intent_nonce,
        at=time.time(),
        diff=stored,
        key_marks=marks,
        diff_sha256=sha256(left.diff.encode()),
        excluded=tuple(sorted(without(secrets, storable(path)) for path in {*left.excluded, *left.odd})),
        stop=Stop.CRASHED if _crashed(run, left) else run.stop,
        throttled_s=run.gateway.throttled_s if run.gateway else 0.0,
        metrics=measured(grants, run, left, hook, denied, edits.changes),
        delivery=delivery,
        trajectory=sha256(trajectory.encode()),
        trajectory_jsonl=trajectory,
        trajectory_left_out=left_out,
    )


def empty_patch(grants: Grants, ready: Ready, run: AgentRun) -> Patch:
    """The patch of an agent that left what cannot be read: no change and no metrics, only why it stopped."""
    return Patch(
        plan=grants.plan,
        trial=grants.trial.id,
        attempt=grants.attempt,
        nonce=grants.intent_nonce,
        at=time.time(),
        diff="",
        excluded=(),
        stop=Stop.CRASHED if has_crashed(run.exit, requests=_requests(run), acted=True) else run.stop,
        throttled_s=run.gateway.throttled_s if run.gateway else 0.0,
        metrics=Metrics(),
        delivery=ready.composed.delivery,
        trajectory=sha256(b""),
        trajectory_jsonl="",
    )


def _crashed(run: AgentRun, left: WorkspacePatch) -> bool:
    acted = bool(run.parsed.turns or run.parsed.steps or left.changed or left.excluded)
    return has_crashed(run.exit, requests=_requests(run), acted=acted)


def _requests(run: AgentRun) -> int | None:
    """That the gateway received; None: there was no gateway."""
    return None if run.gateway is None else run.gateway.received


def without(secrets: Collection[str], text: str) -> str:
    """`text` for people, with every secret masked."""
    return redacted(text.encode(), secrets).decode()


def delivered(
    planned: Delivery,
    parts: Mapping[str, Sequence[str]],
    report: GatewayReport | None,
    receipts: Receipts | None,
) -> Delivery:
    """The delivery with its claims: which `parts` (channel -> names of its texts) reached the model, and how much
    of them. Without a model, or if it got no request, the claims stay None; so do those of texts without a word.
    What did not arrive, or in part, is recorded: the trial counts, and the report says so.
    """
    if report is None or receipts is None or report.answered == 0:
        return planned.model_copy(update={"reached_model": dict.fromkeys(parts)})
    if report.undeclared and (loss := loss_of_event(EndEvent.OTHER_TEXT)):
        raise Lost(loss, f"reached the model undeclared: {', '.join(report.undeclared)}")
    claims, shares = claim_arrivals(parts, receipts)
    first = receipts.first_request_sha256
    return planned.model_copy(
        update={"reached_model": claims, "sent_share": shares, "first_request_sha256": first}
    )


def jsonl(steps: tuple[Step, ...]) -> tuple[str, int]:
    """The trajectory, one step a line, and the bytes left out: it is cut at a whole line when it is longer than
    4 MiB."""
    lines: list[bytes] = []
    size = left_out = 0
    for step in steps:
        line = canonical_json(step)
        if left_out or size + len(line) > TRAJECTORY_CAP:
            left_out += len(line)
        else:
            lines.append(line)
            size += len(line)
    return b"".join(lines).decode(), left_out


def measured(
    grants: Grants,
    run: AgentRun,
    left: WorkspacePatch,
    hook: HookLog,
    denied: int | None,
    edits: Sequence[WorkspaceChange] | None,
) -> Metrics:
    """Metrics of the agent's run; scoring adds others. `edits` None: they are not known."""
    parsed, report, condition = run.parsed, run.gateway, grants.condition
    turns = report.turns if report else parsed.turns
    phases = metrics.phases(edits or (), parsed.steps, turns)
    size = metrics.diff_size(left.diff)
    counted = _tokens(parsed, report)
    return Metrics(
        turns=turns,
        tool_calls=parsed.tool_calls,
        **counted,
        cost_usd=report.cost_usd if report else parsed.cost_usd,
        uncached_cost_usd=report.uncached_cost_usd if report else None,
        agent_s=round(run.exit.wall_s, 3) if run.exit else None,
        throttled_s=report.throttled_s if report else None,
        agent_core_s=run.exit.core_s if run.exit else None,
        edits=None if edits is None else len(edits),
        **phases._asdict(),
        context_files_read=metrics.context_files_read(parsed.steps) if parsed.steps else None,
        hook_firings=len(hook.emitted) if grants.condition.hook else None,
        target_hit=metrics.has_edited_target(edits, size.files, grants.task.targets),
        lines_added=size.added,
        lines_removed=size.removed,
        files_changed=len(size.files),
        rule_firings=len(hook.rules) if run.composed.rule else None,
        fail_fast_denials=denied,
        **metrics.extension_uses(condition, parsed.steps, run.tools),
        predicted_hit=grants.prediction.hit if grants.prediction else None,
        provider_gave_up=None if report is None else report.provider_error is not None,
        **(_looked(run.look, grants) if run.look else {}),
    )


def _looked(look: PreflightRun, grants: Grants) -> dict[str, Any]:  # Any: counts, dollars and a claim
    """What the pre-flight took and whether it pointed at the fix; all but the claim is in the totals, too."""
    report, parsed = look.report, look.parsed
    files = [found.file for found in look.preflight.findings]
    return {
        "preflight_hit": metrics.target_hit(files, grants.task.targets),
        "preflight_turns": look.turns,
        "preflight_tool_calls": parsed.tool_calls or 0,
        **{f"preflight_{kind}": value for kind, value in _tokens(parsed, report).items()},
        "preflight_cost_usd": report.cost_usd if report else parsed.cost_usd,
        "preflight_s": round(look.exit.wall_s, 3) if look.exit else 0.0,
    }


def _tokens(parsed: Parsed, report: GatewayReport | None) -> dict[str, int | None]:
    """By kind: as the gateway counted them, else as the agent says."""
    source: GatewayReport | Parsed = report or parsed
    return {kind: getattr(source, kind) for kind in TOKEN_KINDS}
