"""Issues of a repository, and which of them a commit's message closes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trialfleet_git.view import GitRepository
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.git import GitError, git

_NUMBER = r"([1-9][0-9]{0,8})(?![\w-]|\.\d)"
# One group for the repository where it is named, one for the number.
_ADDRESS = rf"<?https?://[^\s/]+/([\w.-]+(?:/[\w.-]+)+?)/(?:-/)?issues/{_NUMBER}(?:#[\w-]*)?[>)]?"
_NAMED = rf"(?:([\w.-]+(?:/[\w.-]+)+)#|(?:#|\bGH-)){_NUMBER}"
_REFERENCE = re.compile(rf"(?:{_ADDRESS}|\[?{_NAMED}(?:\]\(\S*?\))?)", re.IGNORECASE | re.ASCII)
# The words of GitHub; some projects say which kind of thing they close.
_CLOSING = re.compile(
    r"(?<![\w])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?:-bug)?(?::\s*|\s+)(?:(?:issues?|bugs?|tickets?)\s+)?(?=[#\[<\w])",
    re.IGNORECASE | re.ASCII,
)
_NEXT = re.compile(r"[ \t]*(?:(?:,\s*and|,|&|\+|and)\s*)?", re.IGNORECASE)
_NOT_WHOLLY = re.compile(r"(?:\bnot|n't|\bnever|\bpart(?:ial)?ly|\bin part|\bcannot|\bwithout)\W+$", re.IGNORECASE)
_UNSAID = re.compile(r"<!--.*?(?:-->|\Z)|```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>.*?$", re.DOTALL | re.MULTILINE)
_SUBJECT_PREFIX = re.compile(rf"gh-{_NUMBER}:", re.IGNORECASE | re.ASCII)  # CPython's, whose pull request follows
_PULL_REQUESTS = re.compile(r"((?:\s*\((?:#|GH-|gh-)[0-9]+\))+)\s*$")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>|<video\b.*?(?:</video>|$)", re.IGNORECASE | re.DOTALL)
_FEW_WORDS = 5  # beside a picture, which an agent does not see


@dataclass(frozen=True)
class Issue:
    """One issue: its title, an empty line, its text."""

    number: int
    text: str


@dataclass(frozen=True)
class Issues:
    """`by_number`: of one repository. `names`: `owner/name` of that repository, in lower case, as addresses of it
    have it. `projects`: where none is known, an address ends with one of these."""

    by_number: Mapping[int, Issue] = field(default_factory=dict[int, Issue])
    names: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()

    def find_closed(self, message: str) -> Issue | None:
        """The first issue that the message of a commit closes."""
        numbers = find_closed_issues(message, self._is_ours)
        return next((self.by_number[number] for number in numbers if number in self.by_number), None)

    def _is_ours(self, name: str) -> bool:
        name = name.lower().removesuffix(".git")
        return name in self.names if self.names else name.rpartition("/")[2] in self.projects


def find_closed_issues(message: str, is_ours: Callable[[str], bool]) -> tuple[int, ...]:
    """Numbers that closing words of the message stand before, in its order, without the commit's own pull request.
    A repository that is named must be ours.

    >>> find_closed_issues("Fix the total (#12)\\n\\nRefs #9. Closes #10", lambda name: False)
    (10,)
    """
    subject, _, body = message.partition("\n")
    if subject.startswith('Revert "'):
        return ()
    pull_requests = _PULL_REQUESTS.search(subject)
    own = {int(number) for number in re.findall(r"[0-9]+", pull_requests[0])} if pull_requests else set[int]()
    prefix = _SUBJECT_PREFIX.match(subject)
    first = [int(prefix[1])] if prefix else []
    text = _UNSAID.sub(" ", f"{subject[: pull_requests.start()] if pull_requests else subject}\n{body}")
    numbers = (*first, *_numbers(text, is_ours))
    return tuple(dict.fromkeys(number for number in numbers if number not in own))


def _numbers(text: str, is_ours: Callable[[str], bool]) -> Iterator[int]:
    for word in _CLOSING.finditer(text):
        if _NOT_WHOLLY.search(text, 0, word.start()):
            continue
        place = word.end()
        while (reference := _REFERENCE.match(text, place)) is not None:
            by_address, number, by_name, short = reference.groups()
            name = by_address or by_name
            if name is None or is_ours(name):
                yield int(number or short)
            step = _NEXT.match(text, reference.end())
            place = step.end() if step else reference.end()


def read_issues(file: Path, repository: GitRepository) -> Issues:
    """The issues that a file of `gh issue list --json number,title,body` has, as a list or one a line; pull
    requests are left out. Raises `OperatorError`."""
    try:
        rows = _rows(file.read_text(encoding="utf-8-sig"))
        issues = {int(row["number"]): _issue(row) for row in rows if not row.get("pull_request")}
        urls = [str(row[key]) for row in rows for key in ("url", "html_url") if isinstance(row.get(key), str)]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise OperatorError(
            f"this is not a list of issues: {error}",
            where=str(file),
            hint="gh issue list --state all --limit 5000 --json number,title,body",
        ) from None
    names = {match[1] for url in urls if (match := re.match(_ADDRESS, url))}
    names |= {name for url in repository.remote_urls if (name := repository_name(url))}
    return Issues(issues, frozenset(name.lower() for name in names), _projects(repository))


def repository_name(url: str) -> str | None:
    """`owner/name` of a remote's address; None of a folder.

    >>> repository_name("git@github.com:psf/requests.git"), repository_name("https://u@example.org/a/b/c/")
    ('psf/requests', 'a/b/c')
    >>> repository_name("/srv/clones/requests") is repository_name("file:///srv/requests") is None
    True
    """
    address = re.match(r"(?:(?!file:)[a-z+]+://[^/]+/|[^/:]+:(?!//))/*(.+?)/*$", url.strip(), re.IGNORECASE)
    return address[1].removesuffix(".git") if address else None


def _rows(text: str) -> list[dict[str, Any]]:
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        parsed: object = json.loads(text)
    except json.JSONDecodeError:
        parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
    return cast("list[dict[str, Any]]", [parsed] if isinstance(parsed, dict) else parsed)


def _issue(row: Mapping[str, Any]) -> Issue:
    body = str(row.get("body") or "")
    return Issue(int(row["number"]), f"{row['title']}\n\n{body}".replace("\r\n", "\n").strip())


def unsuitable_text(issue: Issue) -> str | None:
    """Why its text is no prompt; None: it may be one.

    >>> unsuitable_text(Issue(4, "Total\\n\\nSee: ![image](https://example.org/1.png)"))
    'what issue 4 reports is in a picture, which an agent does not see'
    >>> unsuitable_text(Issue(4, "Total is 0"))
    """
    body = issue.text.partition("\n")[2]
    words = re.findall(r"\w+", _UNSAID.sub("", _PICTURE.sub("", body)))
    if _PICTURE.search(body) is None or len(words) >= _FEW_WORDS:
        return None
    return f"what issue {issue.number} reports is in a picture, which an agent does not see"


_MANIFESTS = ("pyproject.toml", "setup.cfg", "Cargo.toml", "package.json")
_PROJECT = re.compile(r'^\s*"?name"?\s*[=:]\s*"?(?:@[\w.-]+/)?([\w.-]+)', re.MULTILINE)


def _projects(repository: GitRepository) -> frozenset[str]:
    """Names of the project: of its folder, and those that its manifests have."""
    names = {repository.root.name}
    for manifest in _MANIFESTS:
        try:
            text = git(("cat-file", "blob", f"HEAD:{manifest}"), git_dir=repository.git_dir)
        except GitError:
            continue
        names.update(_PROJECT.findall(text.decode(errors="replace"))[:1])
    return frozenset(name.lower().removesuffix(".git") for name in names)
