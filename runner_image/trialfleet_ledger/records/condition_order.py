"""A condition as the plan gives it to runners, resolved for one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.records.base import BoundedCount, Count, Frozen, Name, Sha256

InlineSource = Literal[
    "text", "nearest", "targets", "preflight", "placebo_matched", "wrong_targets", "oracle_targets"
]
Channel = Literal["user", "system", "rules"]


class InlineParts(Frozen):
    """Text for the agent. `text`: the same for every task, delivered as it is. `sections`: of a node, for
    `nearest` alone. `channel`: after the task, in the system prompt, or as a rule that is pushed when a file that
    matches `globs` is read (none given: those below the folders that the text is about; of `text`, any file)."""

    source: InlineSource = "text"
    text: str | None = None
    sections: tuple[str, ...] = ("Pitfalls", "Contracts")
    channel: Channel = "user"
    globs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _words(self) -> Self:
        if self.source != "text" and self.text is not None:
            raise FieldError(
                f"inline: a text is given, and source: {self.source} makes one", hint="keep one of them"
            )
        if self.source == "text" and not (self.text or "").strip():
            raise FieldError(
                "inline: there is no text",
                hint="write the text: inline: {text: …}, or where it comes from: source",
            )
        return self

    @model_validator(mode="after")
    def _rules(self) -> Self:
        if self.globs and self.channel != "rules":
            raise FieldError(
                "inline: globs say when a rule is pushed, and this text is not a rule",
                hint="add channel: rules, or leave globs out",
            )
        return self


class InlineSpec(InlineParts):
    """With its length, above which it is cut."""

    max_tokens: BoundedCount = 1500


class PromptFrame(Frozen):
    """The prompt's own words around the task's, whose place is {task}."""

    template: str

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        if (found := self.template.count("{task}")) != 1:
            raise FieldError(
                f"prompt: the template has {found} places for the task's text, and needs one",
                hint="write {task} once, where the text belongs: prompt: {template: 'Plan first. {task}'}",
            )
        return self

    @property
    def is_command(self) -> bool:
        """Whether the agent is to expand it: it begins with the name of a slash command."""
        return self.template.startswith("/")

    def fill(self, task: str) -> str:
        """
        >>> PromptFrame(template="/fix {task} Be brief.").fill("Mend {task}.")
        '/fix Mend {task}. Be brief.'
        """
        return self.template.replace("{task}", task, 1)


class McpSpec(Frozen):
    """A server of the Model Context Protocol that speaks over standard input and output, in the agent's sandbox.

    `command`: argv; {files} is the folder of `files`, {python} the interpreter of the task's environment.
    `version`: what the server says of itself. `files`: a folder, as a path from the campaign file. `mounts`:
    absolute folders of the machine that it needs to see, read-only.
    """

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    version: Annotated[str, Field(min_length=1)]
    files: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    mounts: tuple[str, ...] = ()


class McpOrder(McpSpec):
    """A server resolved. `tree`: object, tar of its files; None: it has none."""

    tree: Sha256 | None = None


class SkillOrder(Frozen):
    """A skill resolved. `tree`: object, tar of its folder; `description`: as its SKILL.md says."""

    tree: Sha256
    description: str


# Key of a condition that a delivery of another package adds -> what checks its value, raising `ValueError`. Filled
# by `trialfleet_deliveries.registry`.
ADDED_KEYS: dict[str, Callable[[Any], Any]] = {}


class AddedParts(Frozen):
    """With keys that deliveries of other packages add, among its own. A key that none of them has is refused like
    any unknown key."""

    # No validator before the fields: strict JSON may have lists for tuples, what such a validator returns may not
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    @property
    def added(self) -> dict[str, Any]:
        """The values of these keys, checked."""
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _check_added(self) -> Self:
        values, wrong = self.model_extra or {}, list[InitErrorDetails]()
        for key, value in list(values.items()):
            try:
                if key in ADDED_KEYS:
                    values[key] = ADDED_KEYS[key](value)
                else:
                    wrong.append(InitErrorDetails(type="extra_forbidden", loc=(key,), input=value))
            except ValueError as error:
                said = PydanticCustomError("value_error", "{error}", {"error": str(error)})
                wrong.append(InitErrorDetails(type=said, loc=(key,), input=value))
        if wrong:
            raise ValidationError.from_exception_data(type(self).__name__, wrong)
        return self


class ConditionOrder(AddedParts):
    """One condition resolved for one task: deliveries with their content's digests.

    `digest` is over what is delivered. `forbidden` is not part of it: a further context of the task changes what
    is watched for and not what is measured. Nor is `tokenizer`: another version that makes the same text changes
    nothing.
    """

    name: Name
    digest: Sha256
    files: Sha256 | None = None  # object: tar of the files put into the workspace
    context: Sha256 | None = None  # object: tar of the tree that inline text and hook read from
    prompt: PromptFrame | None = None
    pull: bool = False
    hook: Literal["on_read"] | None = None
    fail_fast: bool = False
    inline: InlineSpec | None = None
    text: Sha256 | None = None  # object: the whole inline text; None: there is none, or the pre-flight makes it
    text_tokens: Count | None = None  # its length
    truncated: bool = False  # something was left out of it, or all, because of its limit
    node: str | None = None  # the covering node, of `nearest`: a path of the tree
    tokenizer: str | None = None  # what counted when the text was decided; None: it was not, and none is delivered
    targets: tuple[str, ...] = ()  # files that `text` names, or that the pre-flight looks at
    abstained: str | None = None  # why a text that names files is not there
    globs: tuple[str, ...] = ()  # resolved, of a text that is pushed as a rule
    undelivered: tuple[str, ...] = ()  # left out of a condition that says `delivery: best_effort`
    skills: dict[Name, SkillOrder] = Field(default_factory=dict)
    mcp: dict[Name, McpOrder] = Field(default_factory=dict)
    forbidden: dict[str, tuple[str, ...]] = Field(
        default_factory=dict
    )  # context of the task -> lines of it that this condition does not deliver: the runner's alone

    @property
    def objects(self) -> tuple[Sha256, ...]:
        """Digests of all that it delivers, each once."""
        skills = (skill.tree for skill in self.skills.values())
        servers = (server.tree for server in self.mcp.values())
        named = (self.files, self.context, self.text, *skills, *servers)
        return tuple(dict.fromkeys(digest for digest in named if digest is not None))
