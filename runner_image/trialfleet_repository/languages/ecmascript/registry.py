"""The registry that the user has configured for npm, which counts for the other package managers too."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_repository.languages.registry import without_login

# Each before the repository's own file: npm and pnpm, Yarn 1, later Yarns, Bun.
_VARIABLES = ("npm_config_registry", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER", "BUN_CONFIG_REGISTRY")


def find_npm_registry() -> Mapping[str, str]:
    """As the user's variables and npm's files of the user and the system say; empty where there is no npm."""
    answer = run_program(("npm", "config", "get", "registry"))
    url = "" if isinstance(answer, ChildFailure) else answer.stdout.decode(errors="replace").strip()
    return dict.fromkeys(_VARIABLES, without_login(url)) if url.startswith(("https://", "http://")) else {}
