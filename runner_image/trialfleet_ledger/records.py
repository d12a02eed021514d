"""The records of the ledger: the interface between controller, runner and analysis.

Every record is frozen, refuses unknown keys and carries its schema version. Times are seconds since the
epoch (UTC, float), durations seconds, sizes bytes, money US dollars. JSON Schemas are in `docs/reference/schema/`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trialfleet_ledger.errors import FieldError

SCHEMA: Literal[1] = 1

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Frozen(BaseModel):
    """Base of every value that crosses a border."""

    # Schemas are built on first use: a process uses few of them, and building all costs 0.2 s
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Record(Frozen):
    """Base of every stored file."""

    schema_version: Literal[1] = SCHEMA


MESSAGE_CHARS = 2000  # of a loss's message
GRANTS_URL = "TRIALFLEET_GRANTS_URL"  # variable of a pod's runner: the address of its grants, a secret


# --- outcomes ---------------------------------------------------------------------------------------


class Verdict(StrEnum):
    """How a finished attempt ended. Only PASSED counts as a pass."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"  # the agent's time budget
    EXHAUSTED = "exhausted"  # the agent's memory or disk
    TESTS_TIMED_OUT = "tests_timed_out"


class Stop(StrEnum):
    """Why the agent stopped."""

    FINISHED = "finished"
    MAX_TURNS = "max_turns"
    TIMEOUT = "timeout"
    COST = "cost"
    CRASHED = "crashed"
    MEMORY = "memory"
    DISK = "disk"


class LossClass(StrEnum):
    """Why an attempt ended without a verdict: missing data, never a zero."""

    EVICTED = "evicted"  # the cluster or its queue took the place away
    NODE_LOST = "node_lost"
    OVERUSE = "overuse"  # evicted for what its own containers used: perhaps the agent's doing
    IMAGE_PULL = "image_pull"
    UNSCHEDULABLE = "unschedulable"
    SETUP = "setup"  # workspace, environment or sandbox could not be prepared
    STORE = "store"
    UNSAVED = "unsaved"  # the agent had ended, and the store refused its patch until its time was over
    PROVIDER = "provider"  # model provider: 429/5xx exhausted, bad credentials or credit
    CONTAMINATED = "contaminated"  # something undeclared reached the model
    TERMINATED = "terminated"  # the runner was told to stop, or killed
    RUNNER = "runner"  # the runner ended without a record, or broke
    SCORING = "scoring"  # the tests could not be run as tests (harness, not agent)
    HOST_FULL = "host_full"  # the host's disk, not the agent's
    CANCELLED = "cancelled"
    QUARANTINED = "quarantined"  # the bundle is not what the end says


class HaltScope(StrEnum):
    """What a loss stops in addition to its own trial."""

    NONE = "none"
    TASK = "task"
    CAMPAIGN = "campaign"


class Coverage(StrEnum):
    """Whether an inline source added text."""

    COVERED = "covered"
    NONE = "none"  # no covering node, or no sections in it
    NOT_ASKED = "not_asked"


# --- identity ---------------------------------------------------------------------------------------


class Trial(Frozen):
    """One measurement: task × condition × rep.

    `id` is the first 26 base32 characters (lower case) of the SHA-256 over task, condition, agent, input
    digests and rep.
    `seed` is for the agent: it includes the condition and excludes the attempt. `block` is the launch block,
    `position` its place in it; neither is part of the identity.
    """

    id: Annotated[str, Field(pattern=r"^[a-z2-7]{26}$")]
    task: Name
    condition: Name
    rep: Annotated[int, Field(ge=0)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    block: Annotated[int, Field(ge=0)]
    position: Annotated[int, Field(ge=0)]


# --- inputs of an attempt ---------------------------------------------------------------------------


class AttemptTimes(Frozen):
    """Limits and graces that a campaign file and its plan spell alike."""

    cpu: Annotated[float, Field(gt=0)] = 1
    setup_timeout_s: Annotated[float, Field(gt=0)] = 600
    tests_timeout_s: Annotated[float, Field(gt=0)] = 300
    stop_grace_s: Annotated[float, Field(ge=0)] = 5
    live_interval_s: Annotated[float, Field(gt=0)] = 5


class Limits(AttemptTimes):
    """Resources and graces of one attempt, frozen in the plan and never scaled on a retry."""

    memory_bytes: Annotated[int, Field(gt=0)] = 4 * 2**30
    disk_bytes: Annotated[int, Field(gt=0)] = 8 * 2**30
    cost_usd: Annotated[float, Field(gt=0)] | None = None


class AgentSpec(Frozen):
    """Which agent, frozen. `options` are the agent kind's own (documented per kind)."""

    kind: Name
    version: str | None = None
    model: str | None = None
    max_turns: Annotated[int, Field(ge=1)] = 50
    timeout_s: Annotated[float, Field(gt=0)] = 1800
    options: dict[str, Any] = Field(default_factory=dict)


class PythonEnvironmentRef(Frozen):
    """A built virtual environment: its digest, and all that is needed to build it again."""

    kind: Literal["python"] = "python"
    digest: Sha256
    python: str  # "3.11": major.minor of the interpreter
    lock: Sha256  # object: the requirements file with hashes
    setup: tuple[tuple[str, ...], ...] = ()  # argv lists, run in the environment after the install
    metadata: dict[str, str] = Field(default_factory=dict)  # dist-info file name -> text, project's metadata
    dist_info: str | None = None  # "pdm-2.26.1.dist-info"

    @property
    def source(self) -> Sha256:
        """The object that it is built from."""
        return self.lock

    @property
    def versions(self) -> str:
        """As people read it."""
        return f"Python {self.python}"


class ToolEnvironmentRef(Frozen):
    """What the tests of another language need: fetched dependencies and caches, made by commands in a checkout.

    In variables and commands, {environment}, {home} and {workspace} stand for folders.
    """

    kind: Literal["node", "go", "rust", "java", "commands"]
    digest: Sha256
    tools: dict[str, str]  # program -> version of the machine that planned
    inputs: Sha256  # digest of the files that say what is fetched: manifests and locks
    tree: Sha256 = "0" * 64  # object: a tree with these files. Not part of `digest`: neighbouring commits share
    repository: Sha256 | None = None  # of its name; not part of `digest`. Caches of one repository are copied on
    fetch: tuple[tuple[str, ...], ...] = ()  # argv lists, run in the tree with a network
    warm: tuple[tuple[str, ...], ...] = ()  # then these, without one; they may fail
    keep: tuple[str, ...] = ()  # names of files and folders of the tree that attempts get: "node_modules"
    drop: tuple[str, ...] = ()  # globs in the environment that are removed after `warm`
    variables: dict[str, str] = Field(default_factory=dict)  # of agent and tests
    links: dict[str, str] = Field(default_factory=dict)  # cache in the environment -> writable place of an attempt

    @property
    def source(self) -> Sha256:
        """The object that it is built from."""
        return self.tree

    @property
    def versions(self) -> str:
        """As people read it."""
        return ", ".join(f"{name} {version}" for name, version in self.tools.items()) or self.kind


EnvironmentRef = Annotated[PythonEnvironmentRef | ToolEnvironmentRef, Field(discriminator="kind")]
# How the results of a test command are read.
ResultFormat = Literal["pytest", "junit", "go", "libtest", "jest", "mocha", "vitest", "node", "surefire"]


class TaskOrder(Frozen):
    """What the runner needs of one task. Objects are named by digest; `fix` only the oracle agent gets."""

    id: Name
    digest: Sha256
    environment: EnvironmentRef
    workspace: Sha256  # tree the agent gets, before the condition's files (strip and test injection done)
    pristine: Sha256  # tree that is scored: pre-fix tree with the fix's test files in place
    fix: Sha256  # unified diff pre-fix -> fixed, without the test files
    test_command: tuple[str, ...]  # argv; {junit} and {tests} are replaced
    results: ResultFormat = "pytest"
    pythonpath: tuple[str, ...] = ()  # folders of the workspace put on PYTHONPATH
    env: dict[str, str] = Field(default_factory=dict)  # variables of agent and tests
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()  # files of the workspace that the patch may not touch
    travelling_tests: tuple[str, ...] = ()  # test paths that the fix changes: those the patch may touch
    import_name: str | None = None
    prompt_source: Literal["failing_test", "issue", "commit_message"]
    prompt: Sha256  # object: the task's text, byte-equal over conditions and reps
    anchor: str | None = None  # path of the workspace that `nearest` starts from; None: no covering node
    language: str = "Python"
    test_framework: str = "pytest"
    targets: tuple[str, ...] = ()  # files the fix changes (metric: target hit); never shown to an agent


InlineSource = Literal["nearest", "targets", "preflight", "placebo_matched", "wrong_targets", "oracle_targets"]
Channel = Literal["user", "system", "rules"]


class InlineSpec(Frozen):
    """Text that is said to the agent. `sections`: of a node, for `nearest` alone. `channel`: after the task, in
    the system prompt, or as a rule that is pushed when a file that matches `globs` is read (none given: those
    below the folders that the text is about)."""

    source: InlineSource
    sections: tuple[str, ...] = ("Pitfalls", "Contracts")
    max_tokens: Annotated[int, Field(ge=1)] = 1500
    channel: Channel = "user"
    globs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _rules(self) -> InlineSpec:
        if self.globs and self.channel != "rules":
            raise FieldError(
                "inline: globs say when a rule is pushed, and this text is none",
                hint="add channel: rules, or leave globs out",
            )
        return self


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


class PredictedTarget(Frozen):
    """A file that was predicted to need the edit. `parts`: what its score came from, largest first; `symbols`: the
    definitions that the task is likely about."""

    path: str
    score: float
    parts: tuple[tuple[str, float], ...] = ()
    symbols: tuple[str, ...] = ()


class Prediction(Frozen):
    """What was predicted for one task before anything ran, from the tree and the history before the fix.

    No targets with `abstained`, which says why. `index`: SHA-256 of what it was asked of, which no attempt sees.
    `history`: False where there was the tree alone. `hit`: a file that the fix changes is among the targets; None:
    nothing was predicted.
    """

    method: str
    commit: str | None = None
    index: Sha256
    history: bool
    targets: tuple[PredictedTarget, ...] = ()
    abstained: str | None = None
    confidence: float | None = None
    why: str = ""
    hit: bool | None = None


class ConditionOrder(Frozen):
    """One condition resolved for one task: deliveries with their content's digests.

    `digest` is over what is delivered. `forbidden` is not part of it: a further context of the task changes what
    is watched for and not what is measured.
    """

    name: Name
    digest: Sha256
    files: Sha256 | None = None  # object: tar of the files put into the workspace
    context: Sha256 | None = None  # object: tar of the tree that inline text and hook read from
    pull: bool = False
    hook: Literal["on_read"] | None = None
    fail_fast: bool = False
    inline: InlineSpec | None = None
    text: Sha256 | None = None  # object: the inline text of a source that the plan freezes; None: it has none
    targets: tuple[str, ...] = ()  # files that `text` names, or that the pre-flight looks at
    abstained: str | None = None  # why there is no such text
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


class GetGrant(Frozen):
    """Where to read one input: `url` is file:// or http(s)://."""

    url: str


class PutGrant(Frozen):
    """Where to write one fixed key. `headers` must be sent as they are: they are signed."""

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    conditional: bool = True  # create-if-absent; only `live` may be overwritten
    readback: GetGrant | None = None  # of the same key: tells an unanswered try of ours from another's write


class Grants(Record):
    """All that a runner is given for one attempt: its order and where it may read and write."""

    campaign: Name
    trial: Trial
    attempt: Annotated[int, Field(ge=1)]
    intent_nonce: str
    agent: AgentSpec
    agent_digest: Sha256 | None = None  # of the plan: another program or model than planned halts the campaign
    texts: Sha256  # `context.texts.digest()` of the plan: other texts than planned halt the campaign
    task: TaskOrder
    condition: ConditionOrder
    prediction: Prediction | None = (
        None  # of the task, where the campaign has one: for the bundle, under any condition
    )
    limits: Limits
    objects: dict[Sha256, GetGrant]  # every object named above that this attempt may read
    start: PutGrant
    live: PutGrant
    patch: PutGrant
    bundle: PutGrant
    end: PutGrant
    prior_patch: GetGrant | None = None  # set: score this patch and nothing else


# --- the ledger's records ---------------------------------------------------------------------------


class AttemptRecord(Record):
    """Base of what is stored of one attempt. `nonce`: its intent's."""

    trial: str
    attempt: Annotated[int, Field(ge=1)]
    nonce: str
    at: float


class Intent(AttemptRecord):
    """1. Controller, before anything starts. `previous_end` is the SHA-256 of end n-1's bytes."""

    epoch: Annotated[int, Field(ge=0)]
    previous_end: Sha256 | None = None
    score_only: bool = False

    @model_validator(mode="after")
    def _chained(self) -> Intent:
        if (self.attempt == 1) != (self.previous_end is None):
            raise ValueError("attempt 1 has no previous end; every later attempt has one")
        return self


class Start(AttemptRecord):
    """2. Runner, before anything runs: its identity and place. A runner that finds another runner's start
    exits."""

    host: str
    boot_id: str
    pid: int
    scratch: str
    isolation: str  # "bubblewrap" | "uid" | "subreaper" | "container"
    image: str | None = None
    pod: str | None = None  # uid of the pod
    node: str | None = None
    machine: str | None = None  # `machine_id`; None: it has none


TOKEN_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Metrics(Frozen):
    """Measured on one attempt; None is "not measured" or "did not happen", never 0.

    `turns` are requests answered by the model (or the search agent's turns); `tool_calls` single tool uses.
    Turns of the three phases: exploration = before the first edit, edit = first to last, tail = after.
    What the pre-flight took is part of all of them, and also stands apart. The most important come first: a
    termination message drops the others, from the end.
    """

    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None
    agent_s: float | None = None
    throttled_s: float | None = None
    tests_s: float | None = None
    overhead_core_s: float | None = None
    agent_core_s: float | None = None
    tests_core_s: float | None = None
    first_edit_turn: int | None = None
    first_edit_s: float | None = None
    exploration_turns: int | None = None
    edit_turns: int | None = None
    tail_turns: int | None = None
    files_read_before_edit: int | None = None
    context_files_read: int | None = None
    hook_firings: int | None = None
    target_hit: bool | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    files_changed: int | None = None
    rule_firings: int | None = None
    fail_fast_denials: int | None = None
    predicted_hit: bool | None = None
    skill_opened: bool | None = None
    mcp_called: bool | None = None
    preflight_hit: bool | None = None
    preflight_turns: int | None = None
    preflight_tool_calls: int | None = None
    preflight_input_tokens: int | None = None
    preflight_output_tokens: int | None = None
    preflight_cache_read_tokens: int | None = None
    preflight_cache_write_tokens: int | None = None
    preflight_cost_usd: float | None = None
    preflight_s: float | None = None


class PreflightResult(StrEnum):
    """Result of the read-only pre-flight."""

    FOUND = "found"
    UNCERTAIN = "uncertain"
    SKIP = "skip"  # the task asks for no change of code
    NO_TARGETS = "no_targets"


class Delivery(Frozen):
    """What the condition delivered, and whether it was seen to reach the model."""

    files: tuple[str, ...] = ()
    inline_tokens: int | None = None
    inline_truncated: bool = False
    node: str | None = None  # the covering node, as a path of the tree
    coverage: Coverage = Coverage.NOT_ASKED
    tokenizer: str | None = None
    targets: tuple[str, ...] = ()  # files that the text names
    abstained: str | None = None  # why a text that names files was not there
    preflight: PreflightResult | None = None
    reached_model: dict[str, bool | None] = Field(
        default_factory=dict
    )  # files|inline|hook|rules|skills|mcp -> claim; None: no model
    read_as: dict[str, str] = Field(
        default_factory=dict
    )  # path of the context -> path of the workspace, or "prompt"
    undelivered: tuple[str, ...] = ()  # what the condition asks for and its agent cannot be given


class TestResult(Frozen):
    """One test id's outcome in the scoring run, as JUnit XML says."""

    __test__: ClassVar[bool] = False  # not a test class, whatever pytest makes of its name

    id: str
    outcome: Literal["passed", "failed", "error", "skipped", "missing"]


class Patch(AttemptRecord):
    """3. What the agent left, before scoring: from here on only scoring may be repeated."""

    diff: str  # unified diff against the workspace, excluded files left out
    excluded: tuple[str, ...] = ()  # paths whose changes did not travel
    stop: Stop
    throttled_s: float = 0.0
    metrics: Metrics
    delivery: Delivery
    trajectory: Sha256 | None = None  # of `trajectory` below
    trajectory_jsonl: str = ""
    trajectory_left_out: Annotated[int, Field(ge=0)] = 0  # bytes of further steps


class Loss(Frozen):
    """Why there is no verdict. `agent_started` and `patched` decide the retry budget; `message` names the cause.

    `patched`: a patch.json to score was there when the loss was committed, so only scoring may be repeated.
    A patch that a zombie writes after the controller's loss is ignored: the end decides.
    `by_patch`: what was scored may itself have caused it, so it says nothing of harness or task.
    """

    loss: LossClass
    message: str
    agent_started: bool
    patched: bool = False
    halt: HaltScope = HaltScope.NONE
    by_patch: bool = False


class Scored(Frozen):
    """A verdict with all that supports it."""

    verdict: Verdict
    stop: Stop
    tests_passed: bool
    metrics: Metrics
    delivery: Delivery


class End(AttemptRecord):
    """4. The only commit of an attempt: a verdict or a loss."""

    by: Literal["runner", "controller"]
    scored: Scored | None = None
    loss: Loss | None = None
    bundle: Sha256 | None = None
    bundle_bytes: int | None = None

    @model_validator(mode="after")
    def _one_of(self) -> End:
        if (self.scored is None) == (self.loss is None):
            raise ValueError("an end is a verdict or a loss, exactly one of them")
        if self.scored is not None and self.bundle is None:
            raise ValueError("a verdict names its bundle")
        return self


class LastWords(Record):
    """A runner's termination message, at most 1 KiB: diagnosis, and the end itself where the store refused it.

    `end` counts only as long as the ledger has none; its metrics are cut down until it fits. It is a verdict only
    when its bundle is in the store: without, it is a loss after the patch, and the patch is scored again.
    """

    state: Literal["committed", "refused", "another", "unanswered", "misconfigured", "stopped"]
    end_sha256: Sha256 | None = None
    end: End | None = None
    message: str = ""


class BundleFile(Frozen):
    """One member of a bundle. `size`: its bytes as it is; `left_out`: those that it lacks, as it was too long."""

    path: str
    sha256: Sha256
    size: int
    left_out: Annotated[int, Field(ge=0)] = 0


class Manifest(Record):
    """`manifest.json`, the first member of every bundle: what is in it and what made it."""

    campaign: Name
    trial: Trial
    attempt: int
    task: Sha256
    condition: Sha256
    agent: AgentSpec
    limits: Limits
    isolation: str
    warnings: tuple[str, ...] = ()
    versions: dict[str, str]
    texts: Sha256  # of the texts that this runner has for models
    files: tuple[BundleFile, ...]


class Outcome(Record):
    """5. The fold of a trial's chain, kept: its existence means that the trial is terminal."""

    trial: Trial
    attempts: int
    scored: Scored | None = None  # None: abandoned
    abandoned: LossClass | None = None
    bundle: str | None = None  # key below the campaign
    bundle_sha256: Sha256 | None = None
    losses: tuple[LossClass, ...] = ()  # of every lost attempt, in order

    @model_validator(mode="after")
    def _one_of(self) -> Outcome:
        if (self.scored is None) == (self.abandoned is None):
            raise ValueError("an outcome is measured or abandoned, exactly one of them")
        return self
