"""Imports of Python projects, real-shaped."""

from __future__ import annotations

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.syntax_facts import EdgeKind

FLASK = {
    "pyproject.toml": "[project]\nname = 'web'\n",
    "src/web/__init__.py": "from .app import App as App\nfrom .views import View\nfrom . import signals\n",
    "src/web/app.py": (
        "import typing as t\nimport web.helpers as h\nfrom .scaffold import Scaffold\n"
        "from .globals import g, request\n"
        "if t.TYPE_CHECKING:\n    from .views import View\n\n"
        "class App(Scaffold):\n    def run(self):\n        from .cli import main\n"
        "        h.find()\n        main()\n"
        "        return request.args\n"
    ),
    "src/web/scaffold.py": "class Scaffold:\n    pass\n",
    "src/web/globals.py": "g = 1\nrequest = object()\n",
    "src/web/helpers.py": "def find(): ...\n",
    "src/web/views.py": "class View: ...\n",
    "src/web/signals.py": "from importlib import import_module\nimport_module('web.helpers')\n",
    "src/web/cli.py": "from web import App, View\nimport web\n\ndef main():\n    web.App()\n    View()\n",
    "src/web/json/__init__.py": (
        "from ..globals import g\nfrom .provider import *\n\ndef dumps():\n    return load(g)\n"
    ),
    "src/web/json/provider.py": "def load(x): ...\nclass Provider: ...\n",
    "tests/conftest.py": "from web import App\n",
    "tests/test_app.py": "from conftest import app\nimport web.json\n\ndef test():\n    web.json.dumps()\n",
}


def test_an_import_is_followed_through_the_package_that_passes_it_on() -> None:
    found = edges_of(FLASK)
    assert leads(found, "src/web/cli.py") == {
        "src/web/__init__.py": (),
        "src/web/app.py": ("App",),
        "src/web/views.py": ("View",),
    }
    assert leads(found, "src/web/cli.py", EdgeKind.BARREL).keys() == {"src/web/__init__.py"}
    assert leads(found, "src/web/cli.py", EdgeKind.CALL) == {
        "src/web/app.py": ("App",),
        "src/web/views.py": ("View",),
    }


def test_relative_type_only_and_dynamic_imports() -> None:
    found = edges_of(FLASK)
    assert leads(found, "src/web/app.py", EdgeKind.VALUE) == {
        "src/web/helpers.py": (),
        "src/web/scaffold.py": ("Scaffold",),
        "src/web/globals.py": ("g", "request"),
    }
    assert leads(found, "src/web/app.py", EdgeKind.TYPE) == {"src/web/views.py": ("View",)}
    assert leads(found, "src/web/app.py", EdgeKind.DYNAMIC) == {"src/web/cli.py": ("main",)}
    assert leads(found, "src/web/app.py", EdgeKind.EXTENDS) == {"src/web/scaffold.py": ("Scaffold",)}
    assert leads(found, "src/web/app.py", EdgeKind.CALL) == {
        "src/web/helpers.py": ("find",),
        "src/web/cli.py": ("main",),
    }
    assert leads(found, "src/web/signals.py") == {"src/web/helpers.py": ()}


def test_barrels_lead_to_what_they_pass_on() -> None:
    found = leads(edges_of(FLASK), "src/web/__init__.py", EdgeKind.BARREL)
    assert found == {"src/web/app.py": ("App",), "src/web/views.py": ("View",), "src/web/signals.py": ()}


def test_a_star_import_and_a_parent_package() -> None:
    found = edges_of(FLASK)
    assert leads(found, "src/web/json/__init__.py") == {
        "src/web/globals.py": ("g",),
        "src/web/json/provider.py": (),
    }
    assert leads(found, "src/web/json/__init__.py", EdgeKind.CALL) == {"src/web/json/provider.py": ("load",)}


def test_tests_see_the_package_and_their_own_folder() -> None:
    found = edges_of(FLASK)
    assert leads(found, "tests/test_app.py") == {"tests/conftest.py": (), "src/web/json/__init__.py": ()}
    assert leads(found, "tests/test_app.py", EdgeKind.CALL) == {"src/web/json/__init__.py": ("dumps",)}


def test_namespace_packages_have_no_init() -> None:
    found = edges_of(
        {
            "plugins/pyproject.toml": "[tool.setuptools.packages.find]\nwhere = ['code']\n",
            "plugins/code/acme/audio/mixer.py": "def mix(): ...\n",
            "plugins/code/acme/video/cut.py": (
                "from acme.audio.mixer import mix\nfrom acme.audio import mixer\nmix()\n"
            ),
        }
    )
    assert leads(found, "plugins/code/acme/video/cut.py") == {"plugins/code/acme/audio/mixer.py": ("mix",)}


def test_of_two_packages_of_one_name_the_nearer_one() -> None:
    found = edges_of(
        {
            "services/a/app/__init__.py": "",
            "services/a/app/db.py": "x = 1\n",
            "services/a/app/main.py": "from app.db import x\n",
            "services/b/app/__init__.py": "",
            "services/b/app/db.py": "x = 1\n",
            "services/b/app/main.py": "from app.db import x\n",
        }
    )
    assert leads(found, "services/b/app/main.py") == {"services/b/app/db.py": ("x",)}
    assert leads(found, "services/a/app/main.py") == {"services/a/app/db.py": ("x",)}


def test_inside_a_package_an_absolute_import_is_no_sibling() -> None:
    found = edges_of({"pkg/__init__.py": "", "pkg/logging.py": "x = 1\n", "pkg/app.py": "import logging\n"})
    assert leads(found, "pkg/app.py") == {}


def test_circles_end() -> None:
    found = edges_of(
        {
            "p/__init__.py": "from .a import x\n",
            "p/a.py": "from .b import x\nfrom .b import *\n",
            "p/b.py": "from .a import x\nfrom .a import *\nx()\n",
            "use.py": "from p import x, y\nx()\n",
        }
    )
    assert leads(found, "use.py") == {"p/__init__.py": ()}
