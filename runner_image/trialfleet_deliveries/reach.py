"""What an agent can be given."""

from __future__ import annotations

from trialfleet_deliveries.placement import FileReading
from trialfleet_deliveries.skills import FOLDER
from trialfleet_ledger.records.base import Frozen


class Reach(Frozen):
    """What an agent can be given, as data: adapters state it, `trialfleet agents check` measures it.

    A condition that asks for something else is refused when a campaign is planned. The defaults are of a program
    that trialfleet knows nothing about: context files keep their names, and whether it reads them is its affair.
    """

    root_file: str | None = None  # file of the workspace's root that it puts before the model by itself
    root_in_prompt: bool = False  # it loads none: the root's text goes into its prompt
    nested: bool = False  # such a file of a folder below follows the result of a tool that read there
    nested_files: tuple[str, ...] = ()  # and so do files of these names
    hook_after: bool = False  # a hook of ours can add text to a tool's result: `hook: on_read` and rules
    hook_before: bool = False  # and can add text before a tool runs
    fail_fast: bool = False  # a hook of ours can deny a tool's call
    preflight: bool = False  # it can be confined to reading tools, a fixed number of times
    system: bool = False  # text can be added to its system prompt
    skills: str | None = None  # folder of the workspace from which it loads skills
    mcp: bool = False
    slash_commands: bool = False  # a prompt that begins with the name of one is expanded by it

    @property
    def known(self) -> bool:
        """Whether it is known how the agent comes by context files."""
        return self.root_in_prompt or self.root_file is not None

    @property
    def reading(self) -> FileReading:
        return FileReading(
            self.root_file, self.nested, self.root_in_prompt, self.skills or FOLDER, self.nested_files
        )
