"""`--metrics-port` is refused where nothing would be served, before anything starts."""

from __future__ import annotations

import socket

import pytest

from trialfleet_controller.driving import Hosts
from trialfleet_controller.hosting.place import place
from trialfleet_runner.errors import OperatorError


@pytest.mark.parametrize(
    ("no_ray", "address", "local"), [(True, None, False), (False, "head:6379", False), (False, None, True)]
)
def test_only_a_ray_of_our_own_exports_at_it(no_ray: bool, address: str | None, local: bool) -> None:
    with pytest.raises(OperatorError) as refused:
        Hosts.asked(no_ray=no_ray, ray_address=address, log=None, local=local, metrics_port=9400)
    assert refused.value.where == "--metrics-port"


def test_it_is_handed_on() -> None:
    assert (
        Hosts.asked(no_ray=False, ray_address=None, log=None, local=False, metrics_port=9400).metrics_port == 9400
    )


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(OperatorError, match=f"port {port}: Address already in use"),
            place(use_ray=True, address=None, metrics_port=port),
        ):
            pass
