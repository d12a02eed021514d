"""The gateway of one agent: how it is opened, how the agent reaches it, and what it leaves in the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from trialfleet_agents.protocol import Setup
from trialfleet_agents.side_models import side_models
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_repository.mounts import MountedScratch
from trialfleet_sandbox.protocol import Job

if TYPE_CHECKING:  # agents without a model need not pay for importing the gateway
    from trialfleet_runner.gateway import Canaries, Gateway, GatewayReport
    from trialfleet_runner.gateway.upstream import Upstream

REPORT = "report.json"
PORT = 8080  # of the gateway, inside a sandbox with a separate loopback


def make_gateway(
    provider: Upstream,
    spec: AgentSpec,
    place: MountedScratch,
    *,
    max_cost_usd: float | None,
    request_tokens: int | None = None,
    canaries: Canaries | None = None,
) -> Gateway:
    """The gateway of the agent, which must be entered. It records into the scratch folder of `place`.
    `request_tokens`: of the largest request; None: the model's window."""
    from trialfleet_ledger.prices import largest_request, own_prices
    from trialfleet_runner.gateway import Canaries, Gateway, TrialBudget
    from trialfleet_runner.gateway.gateway import PATIENCE_S

    return Gateway(
        provider,
        record=place.scratch.record,
        listen=place.gateway_socket,
        budget=TrialBudget(max_turns=spec.max_turns, max_cost_usd=max_cost_usd),
        canaries=canaries or Canaries(),
        model=spec.model,
        side_models=None if spec.model is None else side_models(spec),
        request_tokens=largest_request(spec, request_tokens),
        prices=own_prices(spec),
        fields=tuple(spec.options.get("fields") or ()),
        given=_list_texts(spec.options),
        patience_s=min(spec.timeout_s, PATIENCE_S),
    )


def _list_texts(value: object) -> Iterator[str]:
    """The strings in a value of JSON, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _list_texts([*cast("Mapping[str, object]", value).values()])
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[object]", value):
            yield from _list_texts(one)


def connect_setup(setup: Setup, gateway: Gateway | None) -> Setup:
    """With the address and the token of the gateway, as the agent reaches it; unchanged without one."""
    if gateway is None:
        return setup
    url = f"http://127.0.0.1:{PORT}" if gateway.socket else gateway.url
    return replace(setup, gateway_url=url, gateway_token=gateway.token)


def connect_job(job: Job, gateway: Gateway | None) -> Job:
    """With the gateway as its only way out, and more time while the provider throttles; unchanged without one."""
    if gateway is None:
        return job
    job = replace(job, extra_time_s=gateway.throttled_s)
    return replace(job, gateway=gateway.socket, gateway_port=PORT) if gateway.socket else job


def write_report(gateway: Gateway | None, place: MountedScratch) -> GatewayReport | None:
    """The gateway's report, which is written into the record."""
    if gateway is None:
        return None
    report = gateway.report()
    (place.scratch.record / REPORT).write_bytes(canonical_json(report))
    return report
