"""The campaign file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from trialfleet_ledger.conditions import PRESETS, Condition, ConditionDoses, FileCondition
from trialfleet_ledger.designs.registry import AnyDeclaration
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.quantities import Cores, Disk, Memory, RunnerMemory
from trialfleet_ledger.records.agent import AgentSpec, AttemptTimes, Limits
from trialfleet_ledger.records.base import BoundedCount, Dollars, Frozen, Name, Reps, Seconds, Seed, Whole


class CostSpec(Frozen):
    """Money, US dollars."""

    trial: Dollars | None = None
    campaign: Dollars | None = None


class RetrySpec(Frozen):
    """How often a lost trial is tried again, by what the loss can have depended on. `disruptions`: evictions and
    lost nodes after the agent began, which spend neither `mid_run` nor `scoring`."""

    before_agent: Annotated[int, Field(ge=0, le=10)] = 10
    mid_run: Annotated[int, Field(ge=0, le=1000)] = 2
    scoring: Annotated[int, Field(ge=0, le=1000)] = 3
    disruptions: Annotated[int, Field(ge=0, le=1000)] = 20


class LimitSpec(AttemptTimes):
    """`limits:` of the campaign file."""

    parallel: BoundedCount | None = None  # None: as many as the CPUs allow
    cpu: Cores = 1
    memory: Memory = 4 * 2**30
    disk: Disk = 8 * 2**30
    cost_usd: CostSpec = CostSpec()
    retries: RetrySpec = RetrySpec()
    blocks_ahead: BoundedCount = 4  # blocks past the oldest incomplete one that may start
    wall_clock_s: Seconds | None = None  # of the whole campaign, since it was first driven

    def frozen(self) -> Limits:
        """The part that every attempt obeys."""
        own = {"memory_bytes": self.memory, "disk_bytes": self.disk, "cost_usd": self.cost_usd.trial}
        return Limits.model_validate(self.model_dump(include=set(AttemptTimes.model_fields)) | own)


class StoreSpec(Frozen):
    """`store:` with an explicit address. `pod_endpoint`: the address of the same server from pods."""

    url: str
    endpoint: str | None = None
    pod_endpoint: str | None = None
    path_style: bool | None = None


class Graces(Frozen):
    """How long a pod may stay in a state before its attempt counts as lost. Seconds."""

    config_error_s: Seconds = 120  # CreateContainerConfigError, FailedMount, sandbox
    image_pull_s: Seconds = 900
    unschedulable_s: Seconds = 1200
    pending_s: Seconds = 1800  # any other reason: signatures are made to live as long
    queued_s: Seconds = 10_800  # behind a queue's gate: then it is created again with new grants
    terminating_s: Seconds = 60  # beyond the pod's own grace: its node is lost
    unseen_s: Seconds = 60  # created, and in no listing
    open_network_s: Seconds = 30  # started, and its NetworkPolicy has not taken effect
    termination_s: Annotated[int, Field(ge=1, le=86_400)] = 60  # terminationGracePeriodSeconds
    unreachable_s: Annotated[int, Field(ge=0, le=86_400)] = 60  # toleration of an unreachable node


class Uids(Frozen):
    """User ids for pods, both ends included. By default those that the image has names for."""

    min: Annotated[int, Field(ge=1, lt=2**31)] = 70000
    max: Annotated[int, Field(ge=1, lt=2**31)] = 74095

    @model_validator(mode="after")
    def _ordered(self) -> Uids:
        if self.max < self.min:
            raise FieldError(
                f"uids: max {self.max} is below min {self.min}", hint="uids: {min: 70000, max: 74095}"
            )
        return self

    def __len__(self) -> int:
        return self.max - self.min + 1

    def at(self, place: int) -> int:
        """The uid of the pod at `place`: neighbours differ.

        >>> [Uids(min=70000, max=70002).at(place) for place in range(4)]
        [70000, 70001, 70002, 70000]
        """
        return self.min + place % len(self)


DRY_RUN_PREFIX = "_dry-run-"  # of the last part of a dry run's store; no campaign can have such a name
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class Toleration(Frozen):
    """As in a pod's spec."""

    key: str | None = None
    operator: Literal["Exists", "Equal", "Lt", "Gt"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    tolerationSeconds: Whole | None = None  # noqa: N815 - Kubernetes' own name


class RunnerLimits(Frozen):
    """Limits of a pod's container `runner`, which a ResourceQuota or a LimitRange may ask for. `cpu`: cores; None:
    no limit."""

    cpu: Annotated[Cores, Field(ge=0.01)] | None = None
    memory: RunnerMemory = 2**30  # git, archives and the gateway need far less


class KubernetesSpec(Frozen):
    """`kubernetes:` of the campaign file. One namespace is one shard, and one trust domain."""

    image: str
    context: str | None = None  # of the kubeconfig; None: its current one, or the pod's own service account
    namespaces: Annotated[tuple[Name, ...], Field(min_length=1)] = ("trialfleet",)
    model_secret: Name | None = None  # a Secret that the user made; keys are named as the variables would be
    model_base_url: str | None = None  # a gateway of the user's own, as pods see it
    runtime_class: str | None = None
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    image_pull_secrets: tuple[Name, ...] = ()
    max_pending: BoundedCount = 100
    creates_per_s: Seconds = 10
    creates_burst: BoundedCount = 20
    allow_unenforced_network: bool = False
    graces: Graces = Graces()
    runner: RunnerLimits = RunnerLimits()
    uids: Uids = Uids()

    @property
    def reference(self) -> str:
        """The image as pods name it."""
        return self.image

    @property
    def queue(self) -> str | None:
        """The Kueue queue that its pods name."""
        return self.labels.get(QUEUE_LABEL)


class ContextSource(Frozen):
    """Context files of a git repository: of a revision (`ref`, in the repository at `repo`), or of a working tree
    with all that is not committed yet (`worktree`). Paths start from the campaign file."""

    ref: Annotated[str, Field(min_length=1)] | None = None
    repo: str = "."
    worktree: str | None = None

    @model_validator(mode="after")
    def _one_of(self) -> ContextSource:
        if (self.ref is None) == (self.worktree is None):
            raise FieldError(
                "a context is of a revision or of a working tree", hint="write {ref: origin/main} or {worktree: .}"
            )
        return self


def _refuse_empty(pattern: str) -> str:
    if not pattern:
        raise FieldError("a file's name is empty", hint="name a task file, or a pattern such as tasks/*.yaml")
    return pattern


# A file or a glob, whose name need not be Unicode text: a length that pydantic checks would want that.
FilePattern = Annotated[str, AfterValidator(_refuse_empty), Field(json_schema_extra={"minLength": 1})]


class CampaignSpec(Frozen):
    """The campaign file. Conditions are preset names, or a mapping of names to compositions (null: the preset)."""

    campaign: Name
    seed: Seed
    tasks: Annotated[tuple[FilePattern, ...], Field(min_length=1)]  # relative to the campaign file
    only: tuple[Name, ...] = ()  # ids of tasks in these files; none: all of them
    conditions: Annotated[tuple[Name, ...], Field(min_length=1)] | dict[Name, FileCondition | None]
    contexts: dict[Name, ContextSource] = Field(default_factory=dict)  # beyond those of the tasks
    reps: Reps
    agent: AgentSpec
    limits: LimitSpec = LimitSpec()
    primary: AnyDeclaration | None = None
    store: str | StoreSpec
    backend: Literal["local", "kubernetes"] = "local"
    kubernetes: KubernetesSpec | None = None
    allow_no_oracle: bool = False  # run tasks without a fail-to-pass oracle, apart from primary results
    allow_empty: bool = False  # run a condition whose inline text has nothing to say for most tasks
    allow_same: bool = False  # run two conditions that differ in nothing

    @property
    def single_conditions(self) -> tuple[tuple[str, Condition | None], ...]:
        """Name and composition (None: the preset of that name), each dose on its own, in the file's order."""
        if not isinstance(self.conditions, dict):
            return tuple((name, None) for name in self.conditions)
        each = (
            own.named(name).items() if isinstance(own, ConditionDoses) else ((name, own),)
            for name, own in self.conditions.items()
        )
        return tuple(one for several in each for one in several)

    @property
    def store_spec(self) -> StoreSpec:
        return self.store if isinstance(self.store, StoreSpec) else StoreSpec(url=self.store)

    @model_validator(mode="after")
    def _place(self) -> CampaignSpec:
        if (self.backend == "kubernetes") != (self.kubernetes is not None):
            raise FieldError(
                "backend: kubernetes and the section `kubernetes:` belong together",
                hint="write both backend: kubernetes and kubernetes: {image: …}, or remove both",
            )
        return self

    @model_validator(mode="after")
    def _contrast(self) -> CampaignSpec:
        names = [name for name, _ in self.single_conditions]
        if len(set(names)) != len(names):
            raise FieldError("conditions: a name is used twice", hint="keep one of the two, or rename it")
        if self.primary is None or self._misspelt():
            return self
        for side in self.primary.sides.values():
            if side not in names:
                raise FieldError(
                    f"primary: {side!r} is not among the conditions",
                    hint=f"choose one of {', '.join(names)}, or add {side} to the conditions",
                )
        self.primary.check_campaign(self.single_conditions, self.reps)
        return self

    def _misspelt(self) -> bool:
        """Whether a condition is neither composed nor a preset. The code that resolves presets reports it with its
        line, so other checks wait."""
        given = self.conditions
        bare = [name for name, own in given.items() if own is None] if isinstance(given, dict) else given
        return any(name not in PRESETS for name in bare)
