"""Which extras the commands of a Python project install: nothing of them runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.declared_extras import declared_extras
from trialfleet_tasks.mining.python_project import PythonProject

GROUPS = ("fast", "async", "voice", "docs", "dev")
EXTRAS = ("fast", "async", "docs")
CI = ".github/workflows/tests.yml"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("Makefile", "sync:\n\tuv sync --all-extras --all-packages --group voice\n", ("fast", "async", "voice")),
        (CI, "    - run: uv sync --extra fast --extra=async\n", ("fast", "async")),
        (CI, "    - run: uv run --all-extras pytest\n", ("fast", "async")),
        (CI, "    - run: pip install -e '.[fast, docs]'\n", ("fast",)),
        (CI, "    - run: python -m pip install .[async]\n", ("async",)),
        (CI, "    - run: pip install other[fast] requests[async]\n", ()),
        (
            CI,
            '    - run: poetry install -E voice --extras "fast async" \\\n        --with dev\n',
            (*GROUPS[:3], "dev"),
        ),
        (CI, "    - run: pdm install -G:all -d\n", ("fast", "async")),
        (CI, "    - run: pytest -E fast\n", ()),
        (".gitlab-ci.yml", "script:\n  - pdm sync -G fast\n", ("fast",)),
        ("tox.ini", "[testenv]\nextras =\n    fast\n    voice  # for players\ndeps = pytest\n", ("fast", "voice")),
        ("tox.ini", "[testenv]\ndeps = .[async]\ncommands = pip install {toxinidir}[fast]\n", ("fast", "async")),
        ("noxfile.py", 'session.install("-e", ".[fast]")\n', ("fast",)),
        ("docs/Makefile", "sync:\n\tuv sync --all-extras\n", ()),
    ],
)
def test_what_a_command_installs(path: str, text: str, found: tuple[str, ...]) -> None:
    assert declared_extras({path: TreeEntry(text.encode())}, GROUPS, EXTRAS) == found


def test_requirements_with_declared_groups() -> None:
    project = PythonProject(
        "shop", groups={"test": ("pytest",), "voice": ("numpy", "shop[fast]"), "fast": ("cython",)}
    )
    wanted = project.requirements(development=True, declared=("voice", "test"))
    assert wanted == ("pytest", "numpy", "cython")


@given(st.sampled_from(["tox.ini", "noxfile.py", "Makefile", ".gitlab-ci.yml", CI]), st.binary())
def test_no_file_is_too_odd(path: str, content: bytes) -> None:
    assert set(declared_extras({path: TreeEntry(content)}, GROUPS, EXTRAS)) <= set(GROUPS)
