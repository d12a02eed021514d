"""Names that code takes from packages outside of its repository: what a test may use without being told."""

from __future__ import annotations

from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.languages.code_names import OwnPackages
from trialfleet_repository.trees import Tree
from trialfleet_tasks.mining.code_language import names_of_code


def own_packages(tree: Tree) -> OwnPackages:
    """By the manifests, folders and files of a repository."""
    named: set[bytes] = set()
    for path, entry in tree.items():
        name = path.rpartition("/")[2]
        for language in LANGUAGES.values():
            named.update(language.names.own_names(name, entry.data))
    stems = {part.partition(".")[0].encode(errors="surrogateescape") for path in tree for part in path.split("/")}
    return OwnPackages(frozenset(stems), frozenset(named))


def without_imported(path: str, code: bytes, own: OwnPackages) -> bytes:
    """The code without the names that it imports from elsewhere, and what it takes from them.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> own = own_packages({"shop/cart.py": TreeEntry(b"")})
    >>> code = b"from urllib import parse as p, robotparser\\nfrom shop import cart\\nx = p.quote(cart.total)"
    >>> without_imported("a.py", code, own).split(b"\\n")[1:]
    [b'from shop import cart', b'x = (cart.total)']
    """
    return names_of_code(path).without_imported(code, own)
