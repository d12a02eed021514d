"""The variables that git is started with."""

from __future__ import annotations

import os
from collections.abc import Mapping

SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.quotePath=true",
    "core.pager=cat",
    "core.commitGraph=false",  # a file of the repository that says what the parents of commits are, as grafts do
    "core.untrackedCache=false",
    "diff.orderFile=/dev/null",
    "log.showSignature=false",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "init.defaultBranch=main",
    "credential.helper=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.fsckObjects=false",
)
_FIXED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_NO_LAZY_FETCH": "1",  # git 2.45; an older git has no protocol that it may use, with the same effect
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_COUNT": str(len(SETTINGS)),
    **{f"GIT_CONFIG_KEY_{at}": one.partition("=")[0] for at, one in enumerate(SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{at}": one.partition("=")[2] for at, one in enumerate(SETTINGS)},
}
_KEPT = ("PATH", "TMPDIR")
_NETWORK = ("HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def environment(extra: Mapping[str, str] | None = None, *, protocols: str = "") -> dict[str, str]:
    """Variables for git: no configuration of the machine or the user, no prompt, no lazy download, no objects that
    replace others. Only the named protocols (colon-separated; none by default) may be used, and only they get HOME
    (keys of ssh), proxies and certificates."""
    names = (*_KEPT, *_NETWORK) if protocols else _KEPT
    kept = {name: os.environ[name] for name in names if name in os.environ}
    if protocols:
        kept |= {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
    return {"HOME": "/", **kept, **_FIXED, "GIT_ALLOW_PROTOCOL": protocols or "none", **(extra or {})}
