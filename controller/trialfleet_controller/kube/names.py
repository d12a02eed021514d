"""What pods are called and labelled: the same for every controller, so that a second POST meets the first."""

from __future__ import annotations

from hashlib import sha256

from trialfleet_controller.plan import base32

DOMAIN = "trialfleet.dev"
CAMPAIGN = f"{DOMAIN}/campaign"  # the plan's uid
SHARD = f"{DOMAIN}/shard"  # of the controller that made the pod, for people: another may drive it later
TRIAL = f"{DOMAIN}/trial"
ATTEMPT = f"{DOMAIN}/attempt"
SPEC = f"{DOMAIN}/spec"  # annotation: what the manifest says, without the address of the grants

RUNNER, AGENT, SCORE = "runner", "agent", "score"  # the containers of an attempt's pod
CONTAINERS = (RUNNER, AGENT, SCORE)


def pod(campaign_uid: str, trial: str, attempt: int) -> str:
    """An attempt's pod.

    >>> pod("0f" * 16, "a" * 26, 2)
    't-xqp3btjsoqdd2wge-a2'
    """
    letters = base32(sha256(f"{campaign_uid}\0{trial}".encode()).digest())[:16]
    return f"t-{letters}-a{attempt}"


def config_map(campaign_uid: str) -> str:
    """The campaign's ConfigMap, which owns its pods: deleting it deletes them."""
    return f"trialfleet-{campaign_uid[:12]}"


def labels(campaign_uid: str, trial: str, attempt: int) -> dict[str, str]:
    """They never change after creation: a pod that no longer matched would look deleted."""
    return {CAMPAIGN: campaign_uid, TRIAL: trial, ATTEMPT: str(attempt)}


def selector(campaign_uid: str) -> str:
    """Of a campaign's pods, whichever shard made them: a resume of another width divides otherwise."""
    return f"{CAMPAIGN}={campaign_uid}"
