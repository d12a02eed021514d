"""What of an agent's work does not travel to the scoring checkout: it could decide the tests by itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from trialfleet_repository.environments.provided import Provided
from trialfleet_repository.languages import is_harness, is_junk, is_test_path, is_vendored

_COMPILED = (".pyc", ".pyo", ".so", ".pth", ".egg-link")
_METADATA = (".egg-info", ".dist-info")
# New files that tools leave next to their work: output, reports of coverage, copies, what a patch's rejected parts
# are written to, files of editors and file systems, an agent's history.
_LEFT_BY_TOOLS = re.compile(
    r"(?i)(?:\A|/)(?:log|core(?:\.\d+)?|nohup\.out|coverage\.xml|junit\.xml|\.eslintcache|\.testmondata[^/]*|4913"
    r"|#[^/]+#|\.(?:ds_store|\#[^/]+|nfs[^/]+)|[^/]*(?:\.(?:log|out|tmp|bak|orig|rej|sw[op]|tsbuildinfo)|~)"
    r")\Z|(?:\A|/)(?:htmlcov|\.nyc_output|\.benchmarks|\.aider[^/]*)(?:/|\Z)"
)
# Found by every interpreter's start, and before a plain tests/.
_ALWAYS = ("sitecustomize", "usercustomize", "test", "tests")


def standard() -> Provided:
    """Without an environment: the standard library and pytest itself."""
    return Provided(
        dict.fromkeys((*sys.stdlib_module_names, "pytest", "_pytest", "pluggy", "iniconfig", "packaging"))
    )


@dataclass(frozen=True)
class Exclusions:
    """Decides for one task which changes are excluded from a patch. `baseline`: paths of the original workspace;
    `pythonpath`: import roots; `travelling`: paths that the fix itself changes, which are never excluded, also on
    a test path (lib/ansible/plugins/test/); `provided`: modules of the environment, computed only if a patch adds
    a module; `built`: paths of what a build makes, which nobody writes; `is_context`: whether agents read a path
    as instructions (this package knows no agent)."""

    baseline: Collection[str]
    test_files: Collection[str]
    pythonpath: Collection[str] = (".",)
    travelling: Collection[str] = ()
    provided: Callable[[], Provided] = standard
    built: Collection[str] = ()
    is_context: Callable[[str], bool] = field(kw_only=True)

    @cached_property
    def made(self) -> frozenset[str]:
        """Those of `built` that the original workspace does not have."""
        return frozenset(path for path in self.built if path not in self.baseline and path not in self._folders)

    def excludes(self, path: str) -> bool:
        """Whether a change of `path` is excluded: test files and their support (other tests, their data), modules
        that would be imported instead of them, the harness's own files, vendored packages, context files,
        packaging metadata (it names pytest plugins, in any letter case), a file in the place of an import root,
        and new modules that would be imported instead of the environment's."""
        parts = path.split("/")
        return (
            path in self.test_files
            or (path not in self.travelling and (is_test_path(path) or is_vendored(path)))
            or is_harness(path)
            or self.is_context(path)
            or is_junk(path)
            or self._is_built(path)
            or path in self._roots  # an archive can be imported from
            or any(part.lower().endswith(_METADATA) for part in parts)
            or self._shadows_a_test(path)
            or (path not in self.baseline and (path.endswith(_COMPILED) or self._hides_a_module(path)))
        )

    def counts_as_edit(self, path: str) -> bool:
        """Whether a change of `path` may be an edit of the agent: of any file, tests too, but neither of new ones
        that running programs leave nor of context files, which are the condition's."""
        if self.is_context(path):
            return False
        return path in self.baseline or not (is_junk(path) or self._is_built(path) or _LEFT_BY_TOOLS.search(path))

    def _is_built(self, path: str) -> bool:
        return any(path == made or path.startswith(f"{made}/") for made in self.made)

    def _shadows_a_test(self, path: str) -> bool:
        """`tests/test_a/__init__.py` and `tests/test_a.so` are found before `tests/test_a.py`."""
        if path in self.baseline:
            return False
        return any(
            path.startswith(stem + "/") or (path.startswith(stem + ".") and "/" not in path[len(stem) :])
            for stem in self._test_stems
        )

    def may_hide(self, path: str) -> bool:
        """Whether a new module that travels takes the place of one of the environment's if its folder becomes an
        import root while the tests run: by `pythonpath` in pytest's settings, a conftest.py, a test next to it.
        In an implicit namespace package, which looks the same, it hides nothing."""
        module = _module(path)
        return path not in self.baseline and module is not None and self._hides(module, self._plain_folders)

    def _hides_a_module(self, path: str) -> bool:
        """Whether an import by the path, or by a package that is new with it, is one that the environment could
        have answered."""
        whole = _module(path)
        if whole is None or path in self._folders:  # a file in a folder's place is no module
            return False
        packages = [whole[:n] for n in range(1, len(whole))] if path.endswith(".py") else []
        new = [module for module in packages if "/".join(module) not in self._folders]
        return self._hides(whole, self._roots) or any(self._hides(m, self._roots, shared=False) for m in new)

    def _hides(self, module: tuple[str, ...], roots: frozenset[str], *, shared: bool = True) -> bool:
        """`module`: by its path, which may begin with any of the import roots."""
        names = (module[n:] for n in range(len(module)) if "/".join(module[:n]) in roots)
        return "/".join(module) not in self._own and any(
            name[0] in _ALWAYS or self._provided.has(name, shared=shared) for name in names
        )

    @cached_property
    def _plain_folders(self) -> frozenset[str]:
        return frozenset(folder for folder in self._folders if f"{folder}/__init__.py" not in self.baseline)

    @cached_property
    def _provided(self) -> Provided:
        return self.provided()

    @cached_property
    def _test_stems(self) -> tuple[str, ...]:
        return tuple(test.removesuffix(".py") for test in self.test_files if test.endswith(".py"))

    @cached_property
    def _roots(self) -> frozenset[str]:
        """Import roots for certain: "" is the workspace itself, where `python -m` starts."""
        named = (str(PurePosixPath(entry)) for entry in self.pythonpath)
        return frozenset({"", *(name for name in named if name != ".")})

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(str(parent) for path in self.baseline for parent in PurePosixPath(path).parents) - {"."}

    @cached_property
    def _own(self) -> frozenset[str]:
        """The project's modules, each by its path without suffix: those it may change into packages, and back."""
        modules = (_module(path) for path in self.baseline if path.endswith((".py", ".so")))
        return frozenset("/".join(module) for module in modules if module)


def _module(path: str) -> tuple[str, ...] | None:
    """The module that a file is, by folders and name; a name without a suffix may be a link to a package. None for
    what nobody can import.

    >>> _module("src/google/rpc/__init__.py"), _module("README.md")
    (('src', 'google', 'rpc'), None)
    """
    *folders, name = path.split("/")
    stem, _, suffix = name.partition(".")
    if suffix not in ("", "py") and not name.endswith(".so"):
        return None
    return tuple(folders) if stem == "__init__" else (*folders, stem)
