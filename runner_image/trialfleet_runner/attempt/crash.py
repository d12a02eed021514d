"""Whether an agent crashed: it never began to work. The one place that decides it; everything else reads its
`Stop`."""

from __future__ import annotations

from trialfleet_sandbox.protocol import Exit


def has_crashed(ended: Exit | None, *, requests: int | None, acted: bool) -> bool:
    """`ended`: None if nothing was run. `requests`: what the gateway received for a model, in all runs of the
    attempt; None: there was no gateway, because the agent needs no model, so that nobody can tell. `acted`: it has
    taken a turn or a step, or changed a file.

    An agent that needs a model crashed if its program ended by itself, with any exit code, or by its time limit,
    and the gateway had received no request: neither its exit code nor its output can tell. Any other crashed if
    its program ended by itself with an error before it acted. One that ran out of memory or disk did not crash:
    the limit decides.

    >>> has_crashed(Exit(0, "itself", 1.0, None), requests=0, acted=True)
    True
    >>> has_crashed(Exit(0, "itself", 1.0, None), requests=None, acted=False)
    False
    """
    if ended is None:
        return False
    if requests is not None:
        return ended.cause in ("itself", "timeout") and requests == 0
    return ended.cause == "itself" and ended.code != 0 and not acted
