"""`--metrics-port` is refused where nothing would be served, before anything starts."""

from __future__ import annotations

import socket

import pytest

from trialfleet_controller.hosting.place import Hosts, place
from trialfleet_ledger.errors import OperatorError


@pytest.mark.parametrize(
    ("ray", "address", "local"), [(False, None, False), (None, "head:6379", False), (None, None, True)]
)
def test_only_a_ray_of_our_own_exports_at_it(ray: bool | None, address: str | None, local: bool) -> None:
    with pytest.raises(OperatorError) as refused:
        Hosts.asked(ray=ray, ray_address=address, log=None, local=local, metrics_port=9400)
    assert refused.value.where == "--metrics-port"


def test_it_is_handed_on() -> None:
    assert Hosts.asked(ray=None, ray_address=None, log=None, local=False, metrics_port=9400).metrics_port == 9400


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(OperatorError, match=f"port {port}: Address already in use"),
            place(Hosts(ray=True, metrics_port=port), trials=1),
        ):
            pass
