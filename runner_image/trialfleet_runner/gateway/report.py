"""What the gateway saw of one attempt."""

from __future__ import annotations

from typing import Literal

from trialfleet_runner.contract import Frozen, Stop


class ProviderError(Frozen):
    """One failed request. `at_s`: seconds since the gateway opened; `status` None: no HTTP answer."""

    at_s: float
    status: int | None
    fault: Literal["transient", "fatal", "request"]
    message: str


class GatewayReport(Frozen):
    """Counts of the gateway; an agent's own claims are kept apart (`Parsed`) and must agree.

    `requests`: model requests that were forwarded; `answered`: those that came back whole. `turns`: answered
    requests to the main model, and of these only those that carry tools if any does. `side_requests`: the other
    answered ones (titles, probes, sub-agents on smaller models); their tokens and cost are counted too. Token
    kinds do not overlap.
    `cost_usd`: None when a model without a known price answered. `estimated_output_tokens`: of answers cut
    before the provider's count came; not in `output_tokens`, but charged to budget and cost.
    """

    requests: int
    answered: int
    turns: int
    side_requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated_output_tokens: int
    cost_usd: float | None
    prices_as_of: str
    models: tuple[str, ...]  # as answered, sorted
    main_model: str | None  # as asked
    throttled_s: float
    errors: tuple[ProviderError, ...]  # the first 100
    error_count: int
    provider_error: str | None  # the main model's last request failed and nothing after it succeeded: a loss
    halt: str | None  # credentials, credit or model: no trial of this campaign can succeed
    stop: Stop | None  # MAX_TURNS or COST: the budget ended the agent
    refused: tuple[str, ...]  # why requests were not forwarded, each reason once
    unauthorised: int  # requests without the token
    interrupted: int  # answers cut because the agent or the runner hung up
    reached: dict[str, bool]  # declared delivery -> it was in a request that the model answered
    undeclared: tuple[str, ...]  # contamination: paths or names, sorted
    own_files: tuple[
        str, ...
    ]  # memory files that the agent named before its program loaded them: no contamination
    first_request_s: float | None  # since the gateway opened
    last_answer_s: float | None
