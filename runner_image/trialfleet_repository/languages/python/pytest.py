"""How pytest is given its tests, and how its report is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trialfleet_repository.languages.python.must_fail import make_python_file
from trialfleet_repository.languages.report_format import ReadFile, ReportFormat
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import SettingsPlugin, put_folder_first
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults

_MANY = 1500  # more ids than this are run by file: an argument list has an end


def select_functions(ids: Sequence[str]) -> tuple[str, ...]:
    """For pytest: the functions of the ids, each once. Parameters are left out, for
    pytest runs nothing at all when one id is gone, and parameters may come from the code that changes.

    >>> select_functions(["t/test_a.py::test_b[1]", "t/test_a.py::test_b[2]", "t/test_a.py::C::test_d"])
    ('t/test_a.py::test_b', 't/test_a.py::C::test_d')
    """
    functions = tuple(dict.fromkeys(map(junit.function_id, ids)))
    if len(functions) <= _MANY and sum(map(len, functions)) < 100_000:
        return functions
    return tuple(dict.fromkeys(test.partition("::")[0] for test in functions))


def _give_functions(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    return select_functions(tests)


def _read(files: RunFiles) -> ReadResults:
    return ReadResults(junit.parse(files.read_report()))


def _load_plugin(variables: Mapping[str, str], folder: str) -> Mapping[str, str]:
    return {
        **put_folder_first(variables, folder),
        "PYTEST_ADDOPTS": f"{variables.get('PYTEST_ADDOPTS', '')} -p trialfleet_pytest -o log_cli=false".strip(),
    }


PLUGIN = Path(__file__).with_name("pytest_settings.py")
PYTEST = ReportFormat(
    "pytest",
    _read,
    (".py",),
    "pytest",
    _give_functions,
    from_directory=False,
    must_fail=make_python_file,
    plugin=SettingsPlugin({"trialfleet_pytest.py": PLUGIN}, _load_plugin),
)
