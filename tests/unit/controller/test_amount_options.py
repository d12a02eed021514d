"""Options that take an amount of CPU or memory read it as the campaign file does."""

from __future__ import annotations

from typing import Any

import click
import pytest

from trialfleet_controller.commands.options import ResourceAmount
from trialfleet_controller.commands.submit import submit
from trialfleet_controller.operate.job import Submission, job
from trialfleet_ledger.errors import OperatorError


def option(name: str) -> click.Option:
    found = next(one for one in submit.params if one.name == name)
    assert isinstance(found, click.Option)
    assert isinstance(found.type, ResourceAmount)
    return found


def given(name: str, text: str) -> Any:
    return option(name).type.convert(text, option(name), None)


@pytest.mark.parametrize(
    ("cpu", "memory", "requests"),
    [
        ("100m", "512Mi", {"cpu": "100m", "memory": "512Mi"}),
        ("0.5", "1G", {"cpu": "500m", "memory": "1000000000"}),
        ("2", "1.5Gi", {"cpu": "2000m", "memory": "1536Mi"}),
    ],
)
def test_a_controllers_job_requests_what_was_given(cpu: str, memory: str, requests: dict[str, str]) -> None:
    submission = Submission("s3://b/c", "0" * 32, "trialfleet", "image:1")
    amounts = {"cpu": given("cpu", cpu), "memory_bytes": given("memory", memory)}
    manifest = job(Submission(**{**vars(submission), **amounts}))
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == requests
    assert container["resources"]["limits"] == {"memory": requests["memory"]}


def test_defaults_are_written_in_the_same_notation() -> None:
    submission = Submission("s3://b/c", "0" * 32, "trialfleet", "image:1")
    assert given("cpu", str(option("cpu").default)) == submission.cpu
    assert given("memory", str(option("memory").default)) == submission.memory_bytes


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cpu", "100Mi", "--cpu: '100Mi' is not an amount of CPU\n  fix: write cores: 2, 0.5, or 500m"),
        ("cpu", "0", "--cpu: '0' is no possible amount: input should be greater than 0"),
        ("memory", "3GB", "--memory: '3GB' is not a size\n  fix: write 4Gi, 500Mi, 1G or a number of bytes"),
        ("memory", "3", "--memory: 3 bytes are too few for a controller: the least is 256Mi"),
    ],
)
def test_another_amount_is_refused_by_name(name: str, text: str, said: str) -> None:
    with pytest.raises(OperatorError) as caught:
        given(name, text)
    assert str(caught.value).startswith(said)
