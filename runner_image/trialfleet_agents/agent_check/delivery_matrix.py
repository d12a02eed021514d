"""Which deliveries reach the model of an agent: the canaries of a check, and what its requests hold of them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import Field

from trialfleet_agents.context_files import list_root_files, list_skill_folders
from trialfleet_agents.protocol import Identity
from trialfleet_deliveries.nodes import NODE_NAMES
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.skills import FILE
from trialfleet_deliveries.texts import render
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.records.base import Frozen, Sha256

BELOW, MODULE = "billing", "billing/rates.py"  # the folder below the root, and what is read there
MODULE_TEXT = "RATE = 3"
PRINTS, PRINTED = "printf %s%s needle- ran", "needle-ran"  # a command that a pre-flight must not run
SKILL, TOOL = "currency-rates", "look_up_rates"  # of a folder with a skill, and of the tool of an MCP server
OWN_WORDS = re.compile(rf"The code word of [^\n]+? is needle-[0-9a-f]{{12}}\.|{SKILL}")  # of what a check delivers


class CheckedDelivery(StrEnum):
    """A way by which a text may reach the model; of `PREFLIGHT`, that of a denied call. The last two are bait:
    nothing delivers them."""

    ROOT_FILE = "root file"
    NESTED = "nested file, after a read there"
    HOOK_AFTER = "hook after a tool"
    RULES = "rules"
    HOOK_BEFORE = "hook before a tool"
    FAIL_FAST = "fail_fast"
    SYSTEM = "system channel"
    INLINE = "inline, in the prompt"
    SKILLS = "skill, in the list of skills"
    MCP = "tool of an MCP server"
    PREFLIGHT = "preflight, confined to reading"
    PARENT = "file in a parent folder"
    HOME = "file in the user's HOME"


def declared(reach: Reach) -> dict[CheckedDelivery, bool]:
    """What the adapter says.

    >>> [str(name) for name, reaches in declared(Reach(root_in_prompt=True)).items() if reaches]
    ['inline, in the prompt']
    """
    return {
        CheckedDelivery.ROOT_FILE: reach.root_file is not None,
        CheckedDelivery.NESTED: reach.nested,
        CheckedDelivery.HOOK_AFTER: reach.hook_after,
        CheckedDelivery.RULES: reach.hook_after,
        CheckedDelivery.HOOK_BEFORE: reach.hook_before,
        CheckedDelivery.FAIL_FAST: reach.fail_fast,
        CheckedDelivery.SYSTEM: reach.system,
        CheckedDelivery.INLINE: True,
        CheckedDelivery.SKILLS: reach.skills is not None,
        CheckedDelivery.MCP: reach.mcp,
        CheckedDelivery.PREFLIGHT: reach.preflight,
        CheckedDelivery.PARENT: False,
        CheckedDelivery.HOME: False,
    }


class DeliveryMatrix(Frozen):
    """What a check of one version has measured. `model`, `digest`: of the agent that ran. `root_files`: every name
    of a root file that reached the model. `also_differ`: of each delivery, what the first request of a run that
    has it alone differs in from that of a run without any, apart from the delivered text. `control`: what those of
    two runs without any differ in, and so do all others. `cut`: of which files of 100,000 characters only so many
    are sent."""

    kind: str
    version: str
    model: str | None
    digest: Sha256
    root_files: tuple[str, ...]
    reached: dict[CheckedDelivery, bool] = Field(min_length=len(CheckedDelivery), max_length=len(CheckedDelivery))
    also_differ: dict[CheckedDelivery, tuple[str, ...]]
    control: tuple[str, ...]
    cut: dict[CheckedDelivery, int] = Field(default_factory=dict[CheckedDelivery, int])

    def differing(self, reach: Reach) -> tuple[CheckedDelivery, ...]:
        """Deliveries that do not behave as declared."""
        return tuple(name for name, reaches in declared(reach).items() if self.reached[name] is not reaches)


def canary(what: str) -> str:
    """A sentence that no program says by itself.

    >>> canary("system")
    'The code word of system is needle-bbc5e661e106.'
    """
    return f"The code word of {what} is needle-{sha256(what.encode())[:12]}."


def context_nodes() -> dict[str, str]:
    """path -> text of the folder that the on-read hook reads: a node, and a rule for the same file."""
    rule = {"globs": [f"{BELOW}/**"], "text": canary("rules")}
    return {f"{BELOW}/AGENTS.md": canary("hook after"), "rules.json": json.dumps([rule])}


def workspace_files() -> dict[str, str]:
    """path -> text: a file to read, and context files and skills under every name, each with another canary."""
    nested = {f"{BELOW}/{name}": canary(f"nested {name}") for name in NODE_NAMES}
    skills = {f"{folder}/{SKILL}/{FILE}": _skill(canary(f"skill {folder}")) for folder in list_skill_folders()}
    roots = {name: canary(f"root {name}") for name in list_root_files()}
    return {MODULE: f"{MODULE_TEXT}\n", **roots, **nested, **skills}


def foreign_settings() -> dict[str, str]:
    """path -> text of files that a repository may have: each would lead the agent's requests elsewhere, or end it,
    if the agent followed it. A check that plays to its end has measured that it does not."""
    nowhere = "http://127.0.0.1:9"
    variables = {
        **dict.fromkeys(("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "HTTP_PROXY"), nowhere),
        **dict.fromkeys(("HTTPS_PROXY", "ALL_PROXY", "COPILOT_PROVIDER_BASE_URL"), nowhere),
        **dict.fromkeys(("GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL", "COPILOT_MODEL"), nowhere),
        "GEMINI_SANDBOX": "docker",
    }
    provider = {name: {"options": {"baseURL": nowhere}} for name in ("anthropic", "openai", "google")}
    codex = f'model_provider = "other"\n[model_providers.other]\nname = "other"\nbase_url = "{nowhere}"\n'
    return {
        ".env": "".join(f"{name}={value}\n" for name, value in variables.items()),
        "mini.yaml": "agent: {step_limit: 1}\n",
        "opencode.json": json.dumps({"provider": provider}),
        "bunfig.toml": 'preload = ["./not-there.js"]\n',
        ".claude/settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": nowhere}}),
        ".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "vertex-ai"}}}),
        ".codex/config.toml": codex,
        ".copilot/settings.json": json.dumps({"model": "other"}),
        ".github/copilot/settings.json": json.dumps({"model": "other"}),
    }


def list_arm_files(given: Collection[CheckedDelivery], reach: Reach) -> dict[str, str]:
    """Those files of the workspace that a run with these deliveries alone has, for an agent of this reach."""
    root = reach.root_file or NODE_NAMES[0]
    paths = {
        CheckedDelivery.ROOT_FILE: root,
        CheckedDelivery.NESTED: f"{BELOW}/{posixpath.basename(root)}",
        CheckedDelivery.SKILLS: f"{reach.skills}/{SKILL}/{FILE}",
    }
    every = workspace_files()
    return {path: every[path] for path in (MODULE, *(paths[one] for one in paths if one in given))}


def _skill(description: str) -> str:
    return f"---\nname: {SKILL}\ndescription: {description}\n---\nRates are per year.\n"


@dataclass(frozen=True)
class SeenTexts:
    """Strings of the model's requests: the first, and all after the file below was read."""

    first: str
    later: str

    @classmethod
    def of(cls, requests: Sequence[str]) -> SeenTexts:
        return cls(requests[0] if requests else "", "\n".join(requests[1:]))

    def root_files(self) -> tuple[str, ...]:
        return tuple(name for name in list_root_files() if canary(f"root {name}") in self.first)

    def reached(self, reach: Reach) -> dict[CheckedDelivery, bool]:
        """A delivery after the start counts only if its text is not there from the start."""
        roots = self.root_files()
        nested = (posixpath.basename(reach.root_file),) if reach.root_file else NODE_NAMES
        skills = (reach.skills,) if reach.skills else list_skill_folders()
        return {
            CheckedDelivery.ROOT_FILE: reach.root_file in roots if reach.root_file else bool(roots),
            CheckedDelivery.NESTED: any(self._follows(canary(f"nested {name}")) for name in nested),
            CheckedDelivery.HOOK_AFTER: self._follows(canary("hook after")),
            CheckedDelivery.RULES: self._follows(canary("rules")),
            CheckedDelivery.HOOK_BEFORE: self._follows(canary("hook before")),
            CheckedDelivery.FAIL_FAST: self._follows(render("fail_fast")),
            CheckedDelivery.SYSTEM: canary("system") in self.first,
            CheckedDelivery.INLINE: canary("inline") in self.first,
            CheckedDelivery.SKILLS: any(canary(f"skill {folder}") in self.first for folder in skills),
            CheckedDelivery.MCP: TOOL in self.first and canary("mcp") in self.first,
            CheckedDelivery.PARENT: self._anywhere(canary("parent")),
            CheckedDelivery.HOME: self._anywhere(canary("home")),
        }

    def confined(self) -> bool:
        """Whether a pre-flight read a file, was denied to read it again, and ran no command."""
        read, denied = self._follows(MODULE_TEXT), self._follows(render("preflight_read_before"))
        return read and denied and not self._anywhere(PRINTED)

    def _follows(self, text: str) -> bool:
        return text in self.later and text not in self.first

    def _anywhere(self, text: str) -> bool:
        return text in self.first or text in self.later


@dataclass(frozen=True)
class ComparedArms:
    """What first requests differ in, as `DeliveryMatrix` has it."""

    also_differ: Mapping[CheckedDelivery, tuple[str, ...]] = field(
        default_factory=dict[CheckedDelivery, tuple[str, ...]]
    )
    control: tuple[str, ...] = ()


def measured(
    identity: Identity,
    requests: Sequence[str],
    preflight: Sequence[str] = (),
    arms: ComparedArms | None = None,
    cut: Mapping[CheckedDelivery, int] | None = None,
) -> DeliveryMatrix:
    """The matrix of an agent whose model got these requests, each as its strings. `preflight`: those of a run that
    is confined to reading; none of an agent that cannot be. `arms`: of runs that have one delivery each. `cut`: as
    `DeliveryMatrix` has it."""
    compared = arms or ComparedArms()
    seen = SeenTexts.of(requests)
    return DeliveryMatrix(
        kind=identity.kind,
        version=identity.version,
        model=identity.model,
        digest=identity.digest,
        root_files=seen.root_files(),
        reached={
            **seen.reached(identity.reach),
            CheckedDelivery.PREFLIGHT: SeenTexts.of(preflight).confined(),
        },
        also_differ=dict(compared.also_differ),
        control=compared.control,
        cut=dict(cut or {}),
    )


def key(identity: Identity) -> str:
    """Under which a measurement is kept: model and options change nothing of what reaches the model; another
    version, or an adapter that changed or declares something else, makes it void."""
    reach = identity.reach.model_dump(mode="json")
    made_of = {"kind": identity.kind, "version": identity.version, "revision": identity.revision, "reach": reach}
    return digest(made_of)
