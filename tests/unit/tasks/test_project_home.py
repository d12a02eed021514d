"""`init`, `tasks mine` and `compare` agree on where a repository's campaigns live, from any of its folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.git_repositories import Made
from trialfleet_controller.commands.compare import compare
from trialfleet_tasks.commands.init import init
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.mining.history import open_repository
from trialfleet_tasks.project_home import find_home


@pytest.fixture
def shop(tmp_path: Path) -> Made:
    made = Made(tmp_path / "shop")
    made.write("packages/cart/pyproject.toml", '[project]\nname = "cart"\n')
    made.write("CLAUDE.md", "One.\n")
    made.commit("Start", packages__cart__cart__total="x = 1\n", packages__mail__mail="x = 1\n")
    return made


@pytest.mark.parametrize("folder", [".", "packages", "packages/cart/cart"])
def test_without_one_it_is_the_roots(folder: str, shop: Made) -> None:
    assert find_home(open_repository(shop.folder), shop.folder / folder) == shop.folder / "trialfleet"


def test_the_nearest_above_comes_first(shop: Made) -> None:
    repository, own = open_repository(shop.folder), shop.folder / "packages/cart/trialfleet"
    assert find_home(repository, shop.folder / "packages/cart", here=True) == own
    own.mkdir()
    assert find_home(repository, shop.folder / "packages/cart/cart") == own
    assert find_home(repository, shop.folder / "packages/mail.py") == shop.folder / "trialfleet"


def test_above_the_repository_nothing_counts(shop: Made) -> None:
    (shop.folder.parent / "trialfleet").mkdir()
    assert find_home(open_repository(shop.folder), shop.folder) == shop.folder / "trialfleet"


def test_a_bare_repository_has_it_in_the_folder_that_is_named(shop: Made, tmp_path: Path) -> None:
    shop.git("clone", "-q", "--bare", str(shop.folder), str(tmp_path / "bare.git"))
    assert (
        find_home(open_repository(tmp_path / "bare.git"), tmp_path / "bare.git")
        == tmp_path / "bare.git/trialfleet"
    )


@pytest.mark.parametrize("home", [".", "packages/cart"])
def test_the_commands_agree(home: str, shop: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.folder / "packages/cart/cart")
    place = shop.folder / home
    made = CliRunner().invoke(init, [str(place), "--here"] if home != "." else [], catch_exceptions=False)
    assert (place / "trialfleet/campaign.yaml").exists(), made.output
    assert "trialfleet run ../" in made.output, "the command works from here"
    mined = CliRunner().invoke(tasks, ["mine", "--commits", "1"], catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    assert (place / "trialfleet/tasks/.mining").is_dir()
    compared = CliRunner().invoke(compare, ["HEAD..HEAD"])
    assert "No such file" not in str(compared.exception), compared.exception
    assert {path.name for path in shop.folder.rglob("trialfleet")} == {"trialfleet"}
    assert len([*shop.folder.rglob("trialfleet")]) == 1
