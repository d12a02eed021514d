"""Names and labels of pods: the same from every controller, so that a second POST conflicts with the first."""

from __future__ import annotations

from hashlib import sha256

from trialfleet_ledger.trial_order import base32

DOMAIN = "trialfleet.dev"
CAMPAIGN = f"{DOMAIN}/campaign"  # the plan's uid
SHARD = f"{DOMAIN}/shard"  # of the controller that created the pod, for people: another may drive it later
TRIAL = f"{DOMAIN}/trial"
ATTEMPT = f"{DOMAIN}/attempt"
GRANTS = f"{DOMAIN}/grants"  # annotation: the address of fresh grants, for a runner whose grants are refused
SPEC = f"{DOMAIN}/spec"  # annotation: the digest of the manifest without the address of the grants

RUNNER, AGENT, SCORE = "runner", "agent", "score"  # the containers of an attempt's pod
CONTAINERS = (RUNNER, AGENT, SCORE)


def pod(campaign_uid: str, trial: str, attempt: int) -> str:
    """The name of an attempt's pod.

    >>> pod("0f" * 16, "a" * 26, 2)
    't-xqp3btjsoqdd2wge-a2'
    """
    letters = base32(sha256(f"{campaign_uid}\0{trial}".encode()).digest())[:16]
    return f"t-{letters}-a{attempt}"


def config_map(campaign_uid: str) -> str:
    """The campaign's ConfigMap, which owns its pods: deleting it deletes them."""
    return f"trialfleet-{campaign_uid[:12]}"


def expiry(campaign_uid: str) -> str:
    """The Job without pods that owns the ConfigMap: see the module `expiry`."""
    return f"trialfleet-expiry-{campaign_uid[:12]}"


def labels(campaign_uid: str, trial: str, attempt: int) -> dict[str, str]:
    """They never change after creation: a pod that stopped matching the selector would look deleted."""
    return {CAMPAIGN: campaign_uid, TRIAL: trial, ATTEMPT: str(attempt)}


def selector(campaign_uid: str) -> str:
    """Of a campaign's pods in all shards: a resume with another width divides the trials differently."""
    return f"{CAMPAIGN}={campaign_uid}"
