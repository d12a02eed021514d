"""Development commands taken out of context files: everywhere, once, and nothing else."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trialfleet_deliveries.commands import strip, strip_files
from trialfleet_deliveries.markdown import LineKind, scan

COMMANDS = r"""
make test
make
make -C docs html
uv sync
uv sync --all-extras
uv run pytest
pip install -e .
python -m pip install -e '.[dev]'
uv pip install -e .
pip3 install -r x.txt
poetry install
poetry run pytest
tox
tox -e py311
nox -s tests
npm install
npm test
npm run build
yarn
pnpm install
pytest
pytest tests/
python -m pytest -x
cargo test
go test ./...
docker compose up -d
docker-compose up
pre-commit run --all-files
ruff check .
mypy src
$ make test
> make test
sudo apt-get install libpq-dev
CI=1 make test
cd x && make test
export A=1; uv sync
ansible-test units --docker
pdm run pytest
python setup.py develop
conda env create -f env.yml
hatch run test
make test  # all of it
"""
OTHER_CODE = r"""
make = 1
from pkg import pytest_plugin
import tox
pip = Pip()
self.make(test)
npm = None
git log --oneline
ls -l
python script.py
pdm lock
pdm install --frozen
ansible-playbook x
print('uv')
makefile
cmake_test()
return make_test(x)
curl localhost
"""


def stripped(text: str) -> str:
    return strip(dedent(text))


@pytest.mark.parametrize("command", COMMANDS.strip().splitlines())
def test_commands_in_a_fence_go_with_their_fence(command: str) -> None:
    assert stripped(f"# Title\n\n```bash\n{command}\n```\n\nText.\n") == "# Title\n\nText.\n"


@pytest.mark.parametrize("code", OTHER_CODE.strip().splitlines())
def test_other_code_stays(code: str) -> None:
    text = f"# T\n\n```\n{code}\n```\n"
    assert strip(text) is text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # whole items and paragraphs
        ("- Run `make test`.\n- Keep it.\n", "- Keep it.\n"),
        ("- `uv sync`\n", ""),
        ("1. **Install**: `pip install -e .`\n2. Other.\n", "2. Other.\n"),
        ("- [ ] `npm ci`\n- [x] other\n", "- [x] other\n"),
        ("> Run `tox` first.\n", ""),
        ("Run make test before you commit.\n\nText.\n", "Text.\n"),
        # sentences
        ("Locks are shared. Run `make test` to see. They expire.\n", "Locks are shared. They expire.\n"),
        ("- The cache is global. Use `uv run pytest -k cache` to try.\n", "- The cache is global.\n"),
        ("- Run `pip install -e .` first. Then read\n  the docs.\n- b\n", "- Then read\n  the docs.\n- b\n"),
        ("See a.py:1. Then run uv sync. Done.\n", "See a.py:1. Done.\n"),
        # tables, headings, comments
        ("| a | b |\n|---|---|\n| `make test` | all |\n| x | y |\n", "| a | b |\n|---|---|\n| x | y |\n"),
        ("### `make test`\n\n### Other\ntext\n", "### Other\ntext\n"),
        ("<!-- make test -->\ntext\n", "text\n"),
        # what is left behind
        ("## Build\n\n```\nmake\n```\n\n## Design\n\ntext\n", "## Design\n\ntext\n"),
        ("## Build\n\n### Install\n- `uv sync`\n\n## Design\ntext\n", "## Design\ntext\n"),
        ("Run the tests:\n\n```sh\nmake test\n```\n\nText.\n", "Text.\n"),
        ("Nice. Commands:\n- `make test`\n- `uv sync`\n\nText.\n", "Nice.\n\nText.\n"),
        ("Commands:\n- `make test`\n- read it\n", "Commands:\n- read it\n"),
        # in a fence: the rest stays, continuation lines go
        ("```\nuv sync\ngit log\n```\n", "```\ngit log\n```\n"),
        ("```\n# install\nuv sync\n```\n", ""),
        ("```\npip install \\\n  -e . \\\n  --quiet\nls\n```\n", "```\nls\n```\n"),
        ("    make test\n    ls\n\ntext\n", "    ls\n\ntext\n"),
        ("- x:\n\n  ```\n  make test\n  ```\n- y\n", "- y\n"),
    ],
)
def test_what_goes_and_what_stays(before: str, after: str) -> None:
    assert strip(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "- Make sure that tests pass.\n- We make tests deterministic.\n",
        "- `pytest` collects `conftest.py` first.\n- Fixtures of `pytest`.\n",
        "- `pdm lock` writes the hashes; `pdm install` reads them.\n",
        "- Use `make_test()` and `tests.make`.\n",
        "- pip installs wheels. A pip install is slow.\n",
        "```\n```\n",
        "# T\r\n\r\ntext\r\n",
        "",
    ],
)
def test_nothing_to_take_out_gives_the_very_same_text(text: str) -> None:
    assert strip(text) is text


def test_no_phrase_survives_in_any_shape() -> None:
    """As in the context files that this rule was made for."""
    text = dedent("""\
        # Project

        A code base. Install with `uv sync --extra dev` or pip install -e ".[dev]".

        ## Commands
        - **Test**: `make test`
        - **Lint**: `make lint` (ruff)
        * Everything: make test && make lint

        ```bash
        # set up
        uv sync
        make test   # unit
        DISABLE=1 uv run pytest tests/ -k "not int"
        ```

        ## Pitfalls
        - The driver is shared. Run `make test` twice to see it.
        - Never mutate a node.
        """)
    after = strip(text)
    assert after == dedent("""\
        # Project

        A code base.

        ## Pitfalls
        - The driver is shared.
        - Never mutate a node.
        """)


LINES = st.sampled_from(
    [
        *(
            "- `make test`",
            "- keep. Run `uv sync` now. Keep.",
            "Run make test.",
            "text",
            "text:",
            "",
            "# H",
            "## P",
        ),
        *("```", "~~~", "````", "uv sync", "# comment", "ls", "  - `tox`", "  more", "| `make` | x |", "    make"),
        *("pip install \\", "<!-- make test", "-->", "> `npm test`", "1. one", "   ```sh", "- x:", "`uv", "sync`"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(LINES, max_size=14).map("\n".join))
@example("- x: `make test`\n  ```\n  uv sync\n  ```\n\n")
def test_stripping_twice_changes_nothing(text: str) -> None:
    once = strip(text)
    assert strip(once) == once


@settings(max_examples=400, deadline=None)
@given(st.lists(LINES, max_size=14).map("\n".join))
def test_no_fence_is_left_empty(text: str) -> None:
    assert hollow(strip(text)) <= hollow(text)


def hollow(text: str) -> int:
    """How many closed fences hold nothing."""
    lines = scan(text)
    count = 0
    for block in {line.block for line in lines} - {0}:
        inside = [line for line in lines if line.block == block]
        closed = sum(line.kind is LineKind.FENCE for line in inside) == 2
        count += closed and not any(line.text.strip() for line in inside if line.kind is LineKind.CODE)
    return count


def test_files_and_their_diff() -> None:
    files = {
        "CLAUDE.md": b"# A\n\n- `make test`\n- b\n",
        "pkg/AGENTS.md": b"## Pitfalls\n- c\n",
        "logo.png": b"\x89PNG make test",
        "bad.md": b"\xff make test",
        ".cursor/rules/x.mdc": b"uv sync is needed: uv sync\n",
    }
    done = strip_files(files)
    assert done.files["CLAUDE.md"] == b"# A\n\n- b\n"
    assert done.files[".cursor/rules/x.mdc"] == b""
    assert {p: done.files[p] for p in ("pkg/AGENTS.md", "logo.png", "bad.md")} == {
        p: files[p] for p in ("pkg/AGENTS.md", "logo.png", "bad.md")
    }
    assert "--- a/CLAUDE.md\n+++ b/CLAUDE.md\n" in done.diff
    assert "\n-- `make test`\n" in done.diff
    assert "AGENTS.md" not in done.diff
    assert strip_files(done.files).diff == ""
