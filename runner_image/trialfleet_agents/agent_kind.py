"""One kind of agent as a value: what is known of it without importing its adapter.

The tables are named tuples, since every attempt imports them: making a dataclass takes five times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename
from types import MappingProxyType
from typing import NamedTuple

from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import ToolCalls


class AgentFiles(NamedTuple):
    """The files that one agent reads. They are taken out of every workspace and belong to contexts.

    `roots`: files that it loads from the workspace's root; the first is the name that a context's root gets.
    `skills`: the folder from which it loads skills. `names`: patterns of the names of further files and folders
    that it reads, anywhere in the workspace; one without capitals matches in any case, as on some file systems.
    `folders`: paths of folders and files that it reads, below any folder, in small letters. `home`: files of the
    user's HOME that it reads, which no trial may see. `settings`: patterns of a context's files in JSON of which
    only the settings `SettingsRules.in_files` arrive. `left_out`: of files that are left out whole: variables,
    programs of the agent itself, rules of permission, other formats. `refused_skills`: what makes it pass over a
    skill, or list it without its description. `subagents`: the folder from which it loads sub-agents, as trials
    run it; `refused_subagents`: what makes it pass over one. `root_bytes`: of the root's file, more of which it
    does not send, and the setting that says so; `nested_characters`: of a file that follows a read in its
    folder.
    """

    roots: tuple[str, ...] = ()
    skills: str | None = None
    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    home: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refused_skills: tuple[SkillFault, ...] = ()
    subagents: str | None = None
    refused_subagents: tuple[SkillFault, ...] = ()
    root_bytes: int | None = None
    root_bytes_setting: str = ""
    nested_characters: int | None = None

    @property
    def root(self) -> str | None:
        """The name that the root of a context gets; None: as it is."""
        return self.roots[0] if self.roots else None

    @property
    def nested(self) -> tuple[str, ...]:
        """The names of files that it loads from the root and, if it does so, from other folders."""
        return tuple(path for path in self.roots if "/" not in path)

    @property
    def patterns(self) -> tuple[str, ...]:
        """`names`, and those of the files that it loads by itself."""
        return (*(basename(path).lower() for path in self.roots), *self.names)


class SettingsRules(NamedTuple):
    """Which keys of the agent's own configuration file no campaign may choose: all that its adapter writes.

    `reserved`: what to use in their place -> keys as patterns of fnmatch: dots between the levels, an item of a
    list by its number. `allowed`: of names that a program has by the hundred, below a reserved key, those that a
    campaign may choose all the same. `in_files`: the only keys that a context's settings files may have, as such
    patterns: they say what the model reads. No other key arrives, whatever a later version makes of it.
    """

    reserved: Mapping[str, str] = MappingProxyType({})
    allowed: str = ""
    in_files: str = ""


@dataclass(frozen=True)
class AgentKind:
    """`adapter`: module and class of an `Agent`, imported when a campaign asks for it. `tool_calls`: what
    `trialfleet agents check` needs to measure it; None: it cannot be measured. `side_models`: patterns of models
    that its program asks for small work (titles, summaries, search) in the pinned version. `provider`: of its
    models, where the campaign names none. `writes_prose`: it can write context files.
    """

    kind: str
    adapter: str
    files: AgentFiles = field(default_factory=AgentFiles)
    rules: SettingsRules = field(default_factory=SettingsRules)
    tool_calls: ToolCalls | None = None
    side_models: tuple[str, ...] = ()
    provider: str = "anthropic"
    writes_prose: bool = False
