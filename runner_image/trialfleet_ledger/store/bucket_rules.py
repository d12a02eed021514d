"""Lifecycle rules of a bucket that would delete results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import LifecycleRuleOutputTypeDef


def expiring(rules: Sequence[LifecycleRuleOutputTypeDef], above: str) -> list[str]:
    """Names of the enabled rules that delete objects whose key begins with `above`, or some of them.

    An expired commit could be created again: a re-roll.

    >>> rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "run"}, "Expiration": {"Days": 30}}
    >>> expiring([rule], "runs/"), expiring([rule], "other/")
    (['old'], [])
    """
    return [rule.get("ID", "unnamed") for rule in rules if _deletes(rule) and _touches(rule, above)]


def _deletes(rule: LifecycleRuleOutputTypeDef) -> bool:
    expiration = rule.get("Expiration", {})
    return rule["Status"] == "Enabled" and ("Days" in expiration or "Date" in expiration)


def _touches(rule: LifecycleRuleOutputTypeDef, above: str) -> bool:
    chosen: Mapping[str, Any] = rule.get("Filter", {})
    both: Mapping[str, Any] = chosen.get("And", {})
    if chosen.get("Tag") or both.get("Tags"):
        return False  # our objects have no tags
    prefix = str(chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or "")
    return prefix.startswith(above) or above.startswith(prefix)
