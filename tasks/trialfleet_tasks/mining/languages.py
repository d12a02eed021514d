"""What mining knows about the files of a language: which are source, which are tests, which nobody wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_runner.context.anchor import is_test_path
from trialfleet_tasks.variants import is_test_module

_NOT_WRITTEN_HERE = {"vendor", "third_party", "_vendor", "node_modules", "site-packages", ".venv", "dist"}
_GENERATED = re.compile(r"(?:_pb2(?:_grpc)?|\.generated|_generated)\.\w+$")


@dataclass(frozen=True)
class MinedLanguage:
    """`is_test`: whether the path is a module of tests, which a test runner can be given. `belongs_to_tests`:
    that, or a file that only tests use."""

    name: str
    suffixes: tuple[str, ...]
    is_test: Callable[[str], bool]
    belongs_to_tests: Callable[[str], bool]

    def is_source(self, path: str) -> bool:
        """Whether the path is code of the project that people wrote and that is not for tests.

        >>> PYTHON.is_source("src/shop/cart.py"), PYTHON.is_source("shop/_vendor/six.py")
        (True, False)
        """
        return path.endswith(self.suffixes) and not self.belongs_to_tests(path) and not is_foreign(path)


def is_foreign(path: str) -> bool:
    """Whether the file is vendored or generated, by its path.

    >>> is_foreign("third_party/a.py"), is_foreign("api/shop_pb2.py"), is_foreign("shop/cart.py")
    (True, True, False)
    """
    return bool(_GENERATED.search(path)) or not _NOT_WRITTEN_HERE.isdisjoint(PurePosixPath(path).parts[:-1])


PYTHON = MinedLanguage("Python", (".py",), is_test_module, is_test_path)
