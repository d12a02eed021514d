"""A release of the project in site-packages: refused unless it is older than the tree before the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_tasks.validate.own_release import own_release
from trialfleet_tasks.validate.record import ProblemKind


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """With attrs 25.3.0, which has two packages, zope.event 5.0 and a module of one file."""
    packages = tmp_path / "lib/python3.11/site-packages"
    for name, version, files in (
        ("attrs", "25.3.0", ("attr/__init__.py", "attrs/__init__.py")),
        ("zope.event", "5.0", ("zope/event/__init__.py",)),
        ("six", "1.17.0", ("six.py",)),
    ):
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        for file in files:
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            (packages / file).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("module", "distribution", "version"),
    [
        (None, "attrs", "25.2.0"),
        (None, "Attrs", "25.3.0.dev7"),
        (None, "attrs", "25.3.0"),
        (None, "attrs", None),
        (None, "attrs", "unknown"),
        ("attr", None, "22.1"),
        ("attrs", None, None),
        ("zope.event", None, "4.6"),
        (None, "zope-event", "4.6"),
        ("six", "my-six", "1.16"),
    ],
)
def test_a_release_that_may_hold_the_fix_is_refused(
    environment: Path, module: str | None, distribution: str | None, version: str | None
) -> None:
    problem = own_release(environment, module=module, distribution=distribution, version=version)
    assert problem is not None
    assert problem.kind is ProblemKind.OWN_RELEASE
    assert "an agent could copy the fix" in problem.message


@pytest.mark.parametrize(
    ("module", "distribution", "version"),
    [
        (None, "attrs", "25.4.0"),  # pytest may need an older release
        ("attr", None, "25.4.0.dev1"),
        ("zope", None, "1.0"),  # a namespace of others
        ("shop", "shop", "1.0"),
        (None, None, None),
    ],
)
def test_an_older_release_and_other_projects_stay(
    environment: Path, module: str | None, distribution: str | None, version: str | None
) -> None:
    assert own_release(environment, module=module, distribution=distribution, version=version) is None
