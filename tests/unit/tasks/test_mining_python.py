"""What is read from a Python project's files: nothing of it runs."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.added_names import added_names, using_tests
from trialfleet_tasks.mining.bound_names import without_bound
from trialfleet_tasks.mining.python_project import PythonProject, read_project


def tree(**files: str) -> dict[str, TreeEntry]:
    return {name.replace("__", "/").replace("_DOT_", "."): TreeEntry(t.encode()) for name, t in files.items()}


PEP_621 = """
[project]
name = "Shop"
requires-python = ">=3.9"
dependencies = ["click>8"]
[project.scripts]
shop = "shop.cli:main"
[project.optional-dependencies]
fast = ["numpy", "shop[faster]"]
faster = ["shop[fast]", "cython"]
[dependency-groups]
test = ["pytest>7", {include-group = "lint"}, "shop[fast]"]
lint = ["ruff", {include-group = "test"}]
dev = ["ipython"]
"""


def test_pyproject_with_groups_that_include_each_other() -> None:
    found = read_project(tree(pyproject_DOT_toml=PEP_621))
    assert (found.name, found.requires_python) == ("Shop", ">=3.9")
    assert found.requirements(development=False) == ("click>8", "pytest>7", "ruff", "numpy", "cython")
    assert found.requirements(development=True)[-1] == "ipython"
    assert found.entry_points == "[console_scripts]\nshop = shop.cli:main\n"


def test_poetry() -> None:
    text = """
[tool.poetry]
name = "shop"
[tool.poetry.dependencies]
python = "^3.9"
click = "^8.1"
rich = {version = "~13.2", optional = true, extras = ["jupyter"]}
local = {path = "../local"}
[tool.poetry.group.test.dependencies]
pytest = "*"
"""
    found = read_project(tree(pyproject_DOT_toml=text))
    assert found.requires_python == ">=3.9,<4"
    wanted = found.requirements(development=False)
    assert wanted == ("click<9,>=8.1", "rich[jupyter]<13.3,>=13.2", "pytest")


def test_setup_cfg_and_literals_of_setup_py() -> None:
    cfg = "[metadata]\nname = shop\n[options]\npython_requires = >=3.8\ninstall_requires =\n  click\n"
    cfg += "[options.extras_require]\ntests =\n  pytest  # a note\n  -e .\n"
    assert read_project(tree(setup_DOT_cfg=cfg)).requirements(development=False) == ("click", "pytest")
    py = "from setuptools import setup\nsetup(name='shop', install_requires=['click'], packages=find_packages())\n"
    found = read_project(tree(setup_DOT_py=py))
    assert (found.name, found.requirements(development=False)) == ("shop", ("click", "pytest"))


@pytest.mark.parametrize(
    ("lines", "keywords"),
    [
        ("requires = ['click', 'rich']", "install_requires=requires"),
        ("requires = ['click']\nrequires += ['rich']", "install_requires=requires"),
        ("requires = ['click']\nrequires.append('rich')", "install_requires=list(requires)"),
        ("a = ('click',)\nb: list[str] = ['rich']\na.extend(b)", "install_requires=a"),
        (
            "requires = open('requirements.txt').read()\nrequires = ['click', *['rich']]",
            "install_requires=requires",
        ),
        ("requires = 'click\\nrich'", "install_requires=requires"),
        ("", "install_requires='click rich'.split()"),
        ("base = ['click']", "install_requires=base + ['rich']"),
        ("requires = ['click', 'rich']\nversion, *rest = load()\nprint(requires)", "install_requires=requires"),
        ("requires = ['click', 'rich']\nfor name in requires:\n    check(name)", "install_requires=requires"),
        ("more = {'all': load(), 'cli': ['rich']}", "install_requires=['click', *more['cli']]"),
        ("x = " + "+".join("1" * 1500) + "\nrequires = ['click', 'rich']", "install_requires=requires"),
        ("facts = dict(install_requires=['click'])\nfacts['install_requires'] += ['rich']", "**facts"),
        ("facts = {'install_requires': ['click', 'rich']}\nfacts.update({'name': 'shop'})", "**facts"),
        ("more = {'cli': ['rich']}", "install_requires=['click', *more['cli']]"),
        ("try:\n    requires = ['click', 'rich']\nexcept Exception:\n    pass", "install_requires=requires"),
        ("with open('a') as f:\n    requires = ['click', 'rich']", "install_requires=requires"),
        (
            "requires = ['click', 'rich']\nif sys.version_info < (3,):\n    requires += ['six']",
            "install_requires=requires",
        ),
    ],
)
def test_what_setup_py_writes_before_its_call(lines: str, keywords: str) -> None:
    for call in (f"setup({keywords})", f"if __name__ == '__main__':\n    setuptools.setup({keywords})"):
        found = read_project(tree(setup_DOT_py=f"{lines}\n{call}\n"))
        assert found.dependencies == ("click", "rich")
    indented = "\n".join(f"    {line}" for line in [*lines.splitlines(), f"setup({keywords})"])
    assert read_project(tree(setup_DOT_py=f"def main():\n{indented}\n")).dependencies == ("click", "rich")


UNKNOWN = [
    "requires = read()",
    "requires = requires + requires\n" * 60,
    "requires.extend(requires)\n" * 60,
    "requires = {'a': 'click'}",
    "requires = 7",
    "requires, x = load()",
    "requires[:] = load()",
    "requires += open('requirements.txt').read().splitlines()",
    "requires = ['six', *open('requirements.txt')]",
    "for line in open('requirements.txt'):\n    requires.append(line)",
    "with open('requirements.txt') as file:\n    requires.extend(file.read().split())",
    "from shop import requires",
    "import shop as requires",
    "for requires in load():\n    pass",
    "with load() as requires:\n    pass",
    "requires.remove('click')",
    "other = requires\nother.insert(0, 'six')",
    "other = requires\nother += load()",
    "del requires[0]",
    "requires *= 0",
    "if WINDOWS:\n    requires = ['six']",
    "try:\n    pass\nexcept Exception:\n    requires = ['six']",
    "def requires(): ...",
    "requires = list({'a': 1})",
    "requires = list('click')",
    "x = (requires := load())",
]


@pytest.mark.parametrize("lines", UNKNOWN)
def test_control_what_setup_py_does_not_say_is_not_guessed(lines: str) -> None:
    """Then a requirements.txt counts."""
    text = f"requires = ['click']\n{lines}\nsetup(install_requires=requires)"
    assert read_project(tree(setup_DOT_py=text)).dependencies == ()
    table = lines.replace("requires", "facts['install_requires']") if lines.startswith("requires = r") else ""
    text = f"facts = {{'install_requires': ['click']}}\n{table or 'facts.pop(k)'}\nsetup(**facts)"
    assert read_project(tree(setup_DOT_py=text, requirements_DOT_txt="rich\n")).dependencies == ("rich",)


@pytest.mark.parametrize(
    "call",
    [
        "try:\n    import six\nexcept ImportError:\n    pass\nelse:\n    setup(install_requires=R)",
        "try:\n    import six\nexcept ImportError:\n    setup(install_requires=R)",
        "if __name__ != '__main__':\n    pass\nelse:\n    setup(install_requires=R)",
        "if sys.argv:\n    setup(install_requires=R)",
        "def main():\n    setup(install_requires=R)\nR = ['click']\nmain()",
        "class Setup:\n    x = setup(install_requires=R)",
    ],
)
def test_where_setup_py_may_call(call: str) -> None:
    assert read_project(tree(setup_DOT_py=f"R = ['click']\n{call}\n")).dependencies == ("click",)


ABOUT = "__title__ = 'shop'\n__version__: str = '1.2'\nneeds = ['click']\n"


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("with open(path.join(here, 'src', 'shop', '__about__.py'), 'r') as f:\n    exec(f.read(), about)", True),
        ("exec(open('src/shop/__about__.py').read(), about)", True),
        ("exec(compile(Path('src/shop/__about__.py').read_text(), '', 'exec'), about)", True),
        ("with open(other) as f:\n    exec(f.read(), about)", False),
        ("with open('src/shop/__about__.py') as f:\n    pass\nexec(g.read(), about)", False),
        ("exec(open('src/shop/__about__.py').read(), about)\nexec(code, about)", False),
        ("exec(open('src/shop/__about__.py').read(), about)\nif x:\n    about = {}", False),
        ("exec(open('other/__about__.py').read(), about)", False),
    ],
)
def test_a_file_that_setup_py_executes_names_the_project(lines: str, known: bool) -> None:
    call = "setup(name=about['__title__'], install_requires=about['needs'])"
    py = f"about = {{}}\n{lines}\n{call}\n"
    found = read_project({**tree(setup_DOT_py=py), "src/shop/__about__.py": TreeEntry(ABOUT.encode())})
    assert (found.name, found.dependencies) == (("shop", ("click",)) if known else (None, ()))


@pytest.mark.parametrize(
    "text",
    [
        "a=['x']\n" + "a.extend(a)\n" * 60,
        "x=['a']*1\nx=" + str(["a"] * 9000) + "\ny=[" + "*x," * 9000 + "]",
        "x=" + str(["a"] * 9000) + "\n" + "".join(f"a{n}=list(x)\n" for n in range(6000)),
        "x='a '*1\nx='" + "a " * 100_000 + "'\n" + "".join(f"a{n}=x.split()\n" for n in range(6000)),
        "x={}\n" + "x.update(x)\n" * 20_000,
    ],
)
def test_a_hostile_setup_py_takes_little(text: str) -> None:
    started = time.process_time()
    tracemalloc.start()
    read_project(tree(setup_DOT_py=text))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - started < 20
    assert peak < 100 * 2**20


def test_requirements_files() -> None:
    found = read_project(
        tree(
            requirements_DOT_txt="click==8.1 \\\n  --hash=sha256:aa\n-r other.txt\n",
            requirements__test_DOT_txt="pytest\n",
            requirements__docs_DOT_txt="mkdocs\n",
        )
    )
    assert found.requirements(development=False) == ("click==8.1", "pytest")


def test_a_lock_in_the_tree_pins() -> None:
    lock = '[[package]]\nname = "click"\nversion = "8.1.7"\n' + "".join(
        f'[[package]]\nname = "two"\nversion = "{n}"\n' for n in (1, 2)
    )
    assert read_project(tree(uv_DOT_lock=lock)).pins == ("click==8.1.7",)


@pytest.mark.parametrize(
    ("lock", "needs"),
    [
        ("uv.lock", 'dependencies = [{ name = "Zope_Event", marker = "sys_platform == \'linux\'" }]'),
        ("pdm.lock", "dependencies = [\"Zope.Event>=1; python_version > '3'\"]"),
        ("poetry.lock", '[package.dependencies]\n"zope-event" = ">=1"'),
    ],
)
def test_pins_of_what_needs_a_package_that_cannot_be_had(lock: str, needs: str) -> None:
    text = f'[[package]]\nname = "keys"\nversion = "2"\n{needs}\n[[package]]\nname = "rich"\nversion = "3"\n'
    project = read_project({lock: TreeEntry(text.encode())})
    assert project.pins_without(["zope-event"]) == ("rich==3",)
    assert project.pins_without(["other"]) == ("keys==2", "rich==3")


def test_without_groups_for_tests_those_for_development_are_taken() -> None:
    assert PythonProject(groups={"dev": ("tox",)}).requirements(development=False) == ("tox", "pytest")


def test_requirements_with_a_test_runner_are_the_developers_own() -> None:
    setup = 'setup(name="shop", install_requires=["click"], extras_require={"fast": "numpy==2.*", "slow": ["x"]})'
    files = tree(setup_DOT_py=setup, requirements_DOT_txt="-e .[fast, gone]\n# Tests\npytest==5.*\ntrustme\n")
    found = read_project(files)
    assert found.requirements(development=False) == ("click", "numpy==2.*", "pytest==5.*", "trustme")
    pinned = read_project(tree(setup_DOT_py=setup, requirements_DOT_txt="click==8.1\npytest-cov\n"))
    assert pinned.requirements(development=False) == ("click", "pytest"), "an environment of the program's users"


@given(st.sampled_from(["pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "uv.lock"]), st.binary())
def test_no_file_is_too_odd(name: str, content: bytes) -> None:
    read_project({name: TreeEntry(content)}).requirements(development=True)


@pytest.mark.parametrize(
    "text",
    [
        "project = 3",
        "[project]\ndependencies = 'click'\nname = 7",
        "[project]\noptional-dependencies = [1]",
        "[dependency-groups]\ntest = [{include-group = 3}, 4]",
        "[tool.poetry]\ndependencies = 'x'",
        "[tool.poetry.dependencies]\nclick = 3",
        "[tool.poetry.group]\ntest = 4",
        "[tool]\npdm = 'x'",
        "[project]\nscripts = 'x'",
        "[tool.poetry]\ndependencies = {python = '^'}",
    ],
)
def test_metadata_of_the_wrong_kind_is_left_out(text: str) -> None:
    assert read_project(tree(pyproject_DOT_toml=text)).requirements(development=True) == ("pytest",)


def test_names_that_only_the_fix_adds() -> None:
    before = {"shop.py": TreeEntry(b"def total(prices): return sum(prices)\n")}
    fix = {"shop.py": TreeEntry(b"def total(prices, rounded=False): return sum(prices)\n"), "gone.py": None}
    added = added_names(before, fix)
    assert added == {"rounded", "False"}
    tests = b"""
def test_old(): total([1])
class TestNew:
    @mark("rounded")
    def test_new(self): pass
async def test_param(): total([1], **{"rounded": 1})
"""
    ids = [
        "t.py::test_old",
        "t.py::TestNew::test_new[a]",
        "t.py::test_param",
        "t.py::test_gone",
        "other.py::test_x",
    ]
    found = using_tests(added, ids, before={}, fixed={"t.py": TreeEntry(tests)})
    assert found == {"t.py::TestNew::test_new[a]": "rounded", "t.py::test_param": "rounded"}
    assert using_tests(added, ids, before={}, fixed={"t.py": TreeEntry(b"def (")}) == {}


@pytest.mark.parametrize(
    ("body", "used"),
    [
        ("rounded = cart.total()\n    assert rounded == Cart(name='rounded').all(rounded)", False),
        ("for rounded in cart:\n        assert rounded", False),
        ("assert rounded(cart)", True),
        ("rounded = 1\n    assert cart.total(rounded=rounded)", True),
        ("rounded = 1\n    monkeypatch.setattr(cart, 'rounded', rounded)", True),
        ("rounded = 1\n    assert cart['rounded'] == rounded", True),
        ("rounded = cart.rounded", True),
        ("from shop import rounded\n    rounded = rounded + 1", True),
        ('"A rounded total."\n    assert cart  # rounded', False),
    ],
)
def test_a_tests_own_variables_are_not_the_fixs_names(body: str, used: bool) -> None:
    fixed = {"t.py": TreeEntry(f"def test_a(cart):\n    {body}\n".encode())}
    found = using_tests(frozenset({"rounded"}), ["t.py::test_a"], before={}, fixed=fixed)
    assert bool(found) == used


@pytest.mark.parametrize(
    ("test", "used"),
    [
        ("def test_a(): assert total([1]) == CENTS", False),
        ("def test_a(): assert total([1]) == EXPECTED", True),
        ("def test_a(): check()", True),
        ("def test_a(cart): assert total(cart) == 1", True),
        ("class TestA:\n    def ready(self): return rounded\n    def test_a(self): assert self.ready()", True),
        ("class TestA:\n    def check(self): return 1\n    def test_a(self): assert self.other()", False),
        ("@mark(TABLE)\ndef test_a(x): assert total([x]) == 1", True),
        ("def test_a(): assert again()", False),
    ],
)
def test_what_a_test_names_in_its_file_is_its_own(test: str, used: bool) -> None:
    """A constant, a helper, a fixture: what they hold, the prompt's failure need not show."""
    file = """
CENTS = 1
EXPECTED: dict = {"help": _rounded_by}
_rounded_by = "rounded"
TABLE = [EXPECTED]
def check(): assert total([1], rounded=1)
def cart(): return [rounded]
def again(): return again()
"""
    fixed = {"t.py": TreeEntry(f"{file}{test}\n".encode())}
    name = "t.py::TestA::test_a" if "class" in test else "t.py::test_a"
    assert bool(using_tests(frozenset({"rounded"}), [name], before={}, fixed=fixed)) is used


def test_words_of_examples_are_not_the_fixs_names() -> None:
    example = {"examples/basic/main.py": TreeEntry(b"orchestrator = 1")}
    assert added_names({}, {**example, "shop.py": TreeEntry(b"rounded = 1")}) == {"rounded"}
    assert added_names({}, example) == {"orchestrator"}


def test_a_word_without_an_end_is_read_once() -> None:
    started = time.process_time()
    assert without_bound("x" * 300_000 + " " * 300_000)
    assert time.process_time() - started < 5
