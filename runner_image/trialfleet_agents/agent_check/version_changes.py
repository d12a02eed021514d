"""What another version of an agent changes of its measured deliveries. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, DeliveryMatrix


def list_changes(before: DeliveryMatrix, after: DeliveryMatrix) -> list[str]:
    """Sentences; none of two versions that measure the same. Which root files are sent, how much of long ones,
    which deliveries reach the model, and what each brings along into the first request."""
    found = (_root_files, _cuts, _deliveries, _brought_along)
    return [said for find in found for said in find(before, after)]


def _root_files(before: DeliveryMatrix, after: DeliveryMatrix) -> Iterator[str]:
    for verb, names in (
        ("no longer sends", _without(before.root_files, after.root_files)),
        ("now sends", _without(after.root_files, before.root_files)),
    ):
        if names:
            yield f"{verb} {', '.join(names)} of the workspace's root"


def _cuts(before: DeliveryMatrix, after: DeliveryMatrix) -> Iterator[str]:
    for name in CheckedDelivery:
        was, now = (f"{one.cut[name]:,} characters" if name in one.cut else "all" for one in (before, after))
        if was != now:
            yield f"{name}: of a long one, {now} are sent, no longer {was}"


def _deliveries(before: DeliveryMatrix, after: DeliveryMatrix) -> Iterator[str]:
    for name in CheckedDelivery:
        if before.reached[name] is not after.reached[name]:
            yield f"{name}: {'now reaches' if after.reached[name] else 'no longer reaches'} the model"


def _brought_along(before: DeliveryMatrix, after: DeliveryMatrix) -> Iterator[str]:
    for name in CheckedDelivery:
        was, now = before.also_differ.get(name), after.also_differ.get(name)
        if was is None or now is None:  # not given in one of them, which its own line says
            continue
        yield from (f"with {name}, the first request now also differs in {one}" for one in _without(now, was))
        yield from (f"with {name}, the first request no longer differs in {one}" for one in _without(was, now))
    for one in _without(after.control, before.control):
        yield f"two runs that are given the same now differ in {one}"
    for one in _without(before.control, after.control):
        yield f"two runs that are given the same no longer differ in {one}"


def _without(some: Sequence[str], others: Sequence[str]) -> list[str]:
    return [one for one in some if one not in others]
