"""What is kept beside a context: who made it, of what, asked how, and what it took."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trialfleet_runner.contract import Frozen, Name, Sha256


class Author(Frozen):
    """`kind` "outline": counted from the code, without a model. `digest`: of program, options and model."""

    kind: str
    version: str
    digest: Sha256
    model: str | None = None


class Cost(Frozen):
    """What the author took. None: not known, or nothing of that sort was used."""

    wall_s: float = 0.0
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None


class Manifest(Frozen):
    """`request`: digest of all that was asked for and of what; the same request is answered by the same context.
    `tree`: the object that `contexts` of a task names. `workspace`: the tree before the fix, as the author saw it.
    `commit`: whose history was read, if any was. `prompt` and `stripped` (the development commands that were taken
    out, as a diff) are objects, too. `tokens` by file. `left_out`: context files of the author's that are no part
    of such a context."""

    request: Sha256
    task: Name
    kind: Literal["flat", "tree"]
    tree: Sha256
    workspace: Sha256
    commit: str | None = None
    author: Author
    prompt: Sha256 | None = None
    seed: int = 0
    cost: Cost = Cost()
    tokens: dict[str, int] = Field(default_factory=dict)
    tokenizer: str
    stripped: Sha256 | None = None
    left_out: tuple[str, ...] = ()
    made_by: str  # this program's version
