"""Python packages below the root: whose requirements count, and which folders are imported from."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.python_workspace import project_of_tests

MEMBERS = {
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n[dependency-groups]\ndev = ["pytest>8"]\n',
    "uv.lock": '[[package]]\nname = "click"\nversion = "8.1.7"\n',
    "packages/cart/pyproject.toml": '[project]\nname = "Shop.Cart"\ndependencies = ["shop-money>=1", "click"]\n'
    '[dependency-groups]\ntest = ["shop-testing"]\n',
    "packages/cart/src/shop_cart/__init__.py": "",
    "packages/money/pyproject.toml": '[project]\nname = "shop-money"\ndependencies = ["rich", "shop_cart"]\n',
    "packages/money/src/shop_money/__init__.py": "",
    "packages/testing/setup.cfg": "[metadata]\nname = shop-testing\n[options]\ninstall_requires =\n  attrs\n",
    "packages/testing/shop_testing.py": "",
    "packages/other/pyproject.toml": '[project]\nname = "shop-other"\ndependencies = ["numpy"]\n',
}


def tree(files: Mapping[str, str]) -> dict[str, TreeEntry]:
    return {path: TreeEntry(text.encode()) for path, text in files.items()}


def test_a_package_and_those_of_the_repository_that_it_needs() -> None:
    project, sources = project_of_tests(tree(MEMBERS), ["packages/cart/tests/test_total.py"])
    assert project.name == "Shop.Cart"
    assert project.pins == ("click==8.1.7",), "of the root's lock"
    assert project.requirements(development=True) == ("click", "rich", "attrs", "pytest>8")
    assert sources == ("packages/cart/src", "packages/money/src", "packages/testing")


def test_a_package_that_needs_no_other() -> None:
    project, sources = project_of_tests(tree(MEMBERS), ["packages/other/tests/test_a.py"])
    assert (project.name, project.dependencies) == ("shop-other", ("numpy",))
    assert sources == ("packages/other",)


def test_tests_of_the_root() -> None:
    """Settings of tools alone make no package, nor does a module that is called setup: their folder belongs to the
    root."""
    files = {
        "setup.py": "from setuptools import setup\nsetup(name='shop', install_requires=['click'])\n",
        "src/shop/__init__.py": "",
        "tests/pyproject.toml": "[tool.ruff]\n",
        "pkg/pyproject.toml": "[tool.ruff]\n",
        "src/shop/tracing/setup.py": "def setup(tracer):\n    ...\n",
    }
    for test in ("tests/test_a.py", "pkg/test_a.py", "src/shop/tracing/test_a.py"):
        project, sources = project_of_tests(tree(files), [test])
        assert (project.name, project.dependencies, sources) == ("shop", ("click",), ("src",))
