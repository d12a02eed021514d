"""Counting tokens without a network: the vocabulary is inside a wheel, its version in every bundle."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, cast

_PACKAGE = "bpe_openai"
ENCODING = "o200k_base"


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...
    def pretokenize(self, text: str) -> list[str]: ...


@cache
def _tokenizer() -> _Tokenizer:
    """The compiled module alone: the package around it builds tables for 0.7 s that nothing here needs."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{_PACKAGE} is not installed")
    file = next(Path(spec.submodule_search_locations[0]).glob("_bindings*.so"))
    inner = importlib.util.spec_from_file_location(f"{_PACKAGE}._bindings", file)
    if inner is None or inner.loader is None:
        raise ImportError(f"{file} is not a module")
    module = importlib.util.module_from_spec(inner)
    inner.loader.exec_module(module)
    make = cast("Callable[[str], _Tokenizer]", module.tokenizer_for_encoding)
    return make(ENCODING)


@cache
def name() -> str:
    """What bundles record, for example `bpe-openai 0.1.4 o200k_base`."""
    return f"bpe-openai {version('bpe-openai')} {ENCODING}"


def count(text: str) -> int:
    """Tokens of `text`; special tokens are counted as ordinary text."""
    return _tokenizer().count(text)


def truncate(text: str, limit: int) -> str:
    """The longest beginning of `text`, cut between words where that is possible, of at most `limit` tokens.

    >>> truncate("one two three", 2)
    'one two'
    """
    if limit <= 0:
        return ""
    if count(text) <= limit:
        return text
    pieces = _tokenizer().pretokenize(text)
    kept = _most(len(pieces), lambda n: count("".join(pieces[:n])) <= limit)
    if kept:
        return "".join(pieces[:kept])
    return text[: _most(len(pieces[0]), lambda n: count(text[:n]) <= limit)]


def _most(upto: int, fits: Callable[[int], bool]) -> int:
    """The largest n <= upto that fits, where fitting is all but monotone (0 fits)."""
    low, high = 0, upto
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    while low and not fits(low):
        low -= 1
    return low
