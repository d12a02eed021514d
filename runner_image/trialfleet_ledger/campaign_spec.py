"""The campaign file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from trialfleet_ledger.conditions import PRESETS, Condition, ConditionDoses, FileCondition
from trialfleet_ledger.designs.halving import TREATMENTS, halving_block
from trialfleet_ledger.designs.looks import AnytimeRule, Reestimation, StopDeclaration, StopRule
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural
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


class Primary(Frozen):
    """The one declared contrast. `margin`: a difference of pass rates too small to matter, either way; declared,
    it is tested for. `effect`: the difference that the campaign was planned to see; its power is reported.
    `stop`: when it is looked at, and may end early; None: it runs to its end. `halve`: of four treatments, two go
    on after 40% of the blocks, `treatment` one of them, and each is tested at alpha / 4."""

    treatment: Name
    control: Name
    estimand: Literal["these_tasks", "tasks_like_these"] = "these_tasks"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    margin: Annotated[float, Field(gt=0, lt=1)] | None = None
    effect: Annotated[float, Field(gt=0, lt=1)] | None = None
    stop: StopDeclaration | None = None
    halve: bool = False

    @property
    def tested(self) -> Primary:
        """With the alpha of a single test."""
        return self.model_copy(update={"alpha": self.alpha / TREATMENTS}) if self.halve else self

    @property
    def decides(self) -> bool:
        """Whether something is decided, and recorded, while the campaign runs."""
        return self.halve or self.stop is not None

    @property
    def anytime(self) -> AnytimeRule | None:
        """The rule of a campaign without a fixed end; None: it has one."""
        return self.stop if isinstance(self.stop, AnytimeRule) else None

    @model_validator(mode="after")
    def _halving(self) -> Primary:
        if self.halve and self.stop is not None:
            raise FieldError(
                "primary: halve and stop: what the two do together has not been simulated",
                hint="remove stop, with its looks, drop_saturated and reestimate, or remove halve",
            )
        if self.halve and self.estimand != "these_tasks":
            raise FieldError(
                "primary: halve needs estimand: these_tasks: halving has been simulated for its test alone",
                hint="write estimand: these_tasks, or remove halve",
            )
        return self

    @model_validator(mode="after")
    def _looks(self) -> Primary:
        if self.stop is None:
            return self
        if self.estimand != "these_tasks":
            raise FieldError(
                "primary: stop needs estimand: these_tasks, whose test at looks is exact; early stopping for "
                "tasks_like_these is not offered yet, and below seven tasks it would reject too often",
                hint="write estimand: these_tasks, or remove stop",
            )
        if isinstance(self.stop, AnytimeRule):
            return self._bets(self.stop)
        return self._at_looks(self.stop)

    def _at_looks(self, stop: StopRule) -> Primary:
        rule = stop.futility
        if rule != "none" and rule.conditional is not None and self.effect is None:
            raise FieldError(
                "primary: futility: conditional is the power at the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or futility: {predictive: 0.05}",
            )
        if stop.reestimate is not None and self.effect is None:
            raise FieldError(
                "primary: stop: reestimate computes the reps for the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or remove reestimate",
            )
        return self

    def _bets(self, rule: AnytimeRule) -> Primary:
        if rule.anytime == "half" and self.effect is None:
            raise FieldError(
                "primary: stop: anytime: half bets for the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or stop: {anytime: mixture}",
            )
        return self


def _declared(value: Any) -> str:
    """Which kind of primary is meant, so that errors are about that one alone."""
    of_trend = "trend" in value if isinstance(value, Mapping) else isinstance(value, TrendPrimary)
    return "a trend" if of_trend else "a contrast"


PrimaryDeclaration = Annotated[
    Annotated[Primary, Tag("a contrast")] | Annotated[TrendPrimary, Tag("a trend")], Discriminator(_declared)
]


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
    primary: PrimaryDeclaration | None = None
    store: str | StoreSpec
    backend: Literal["local", "kubernetes"] = "local"
    kubernetes: KubernetesSpec | None = None
    allow_no_oracle: bool = False  # run tasks without a fail-to-pass oracle, apart from primary results
    allow_empty: bool = False  # run a condition whose inline text has nothing to say for most tasks
    allow_same: bool = False  # run two conditions that differ in nothing

    @property
    def contrast(self) -> Primary | None:
        """The declared contrast; None where none, or a trend, is declared."""
        return self.primary if isinstance(self.primary, Primary) else None

    @property
    def trend(self) -> TrendPrimary | None:
        """The declared trend; None where none, or a contrast, is declared."""
        return self.primary if isinstance(self.primary, TrendPrimary) else None

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
        contrast, trend = self.contrast, self.trend
        for side in trend.trend if trend else (contrast.treatment, contrast.control) if contrast else ():
            if side not in names:
                raise FieldError(
                    f"primary: {side!r} is not among the conditions",
                    hint=f"choose one of {', '.join(names)}, or add {side} to the conditions",
                )
        if contrast is not None:
            self._last_look(contrast)
            self._halving(contrast)
            if contrast.treatment == contrast.control:
                raise FieldError(
                    "primary: treatment and control are the same condition",
                    hint="name two conditions, or remove `primary`",
                )
        return self

    def _halving(self, primary: Primary) -> None:
        """Simulated for four treatments and their control, after 40% of the blocks, and for nothing else."""
        if not primary.halve:
            return
        others = [(name, own) for name, own in self.single_conditions if name != primary.control]
        ceilings = [name for name, own in others if (own or PRESETS[name]).ceiling]
        if len(others) != TREATMENTS or ceilings:
            found = f"{ceilings[0]} knows the fix" if ceilings else f"there are {len(others)}"
            raise FieldError(
                f"primary: halve needs exactly {TREATMENTS} treatments beside the control {primary.control}, none "
                f"of which knows the fix: {found}",
                hint="change the conditions, or remove halve: other numbers have not been simulated",
            )
        if not halving_block(self.reps):
            raise FieldError("primary: halve needs 2 reps or more", hint="raise reps, or remove halve")

    def _last_look(self, primary: Primary) -> None:
        last = primary.stop and primary.stop.blocks(self.reps)[-1]
        if last is not None and last != self.reps:
            raise FieldError(
                f"primary: stop: the last look is after block {last}, and the campaign "
                f"has {plural(self.reps, 'rep')}",
                hint=f"end looks with {self.reps}: the last look is the campaign's end",
            )
        if isinstance(primary.stop, StopRule):
            self._at_a_look("drop_saturated", primary.stop.drop_saturated, primary.stop)
        if isinstance(primary.stop, StopRule) and primary.stop.reestimate is not None:
            self._reestimating(primary.stop, primary.stop.reestimate)

    def _at_a_look(self, name: str, block: int, rule: StopRule) -> None:
        """Later blocks are held back at a look alone, so the plan changes there."""
        before_the_end = rule.blocks(self.reps)[:-1]
        if block and block not in before_the_end:
            raise FieldError(
                f"primary: stop: {name}: {block} is not the block of a look before the last",
                hint=f"write one of {', '.join(map(str, before_the_end))}, or remove {name.partition(':')[0]}"
                if before_the_end
                else f"remove {name.partition(':')[0]}: the only look is the campaign's end",
            )

    def _reestimating(self, rule: StopRule, asked: Reestimation) -> None:
        self._at_a_look("reestimate: after", asked.after, rule)
        if asked.cap < self.reps:
            raise FieldError(
                f"primary: stop: reestimate: cap: {asked.cap} is below the campaign's {plural(self.reps, 'rep')}",
                hint=f"write {self.reps} or more: the most reps that the campaign may get",
            )

    def _misspelt(self) -> bool:
        """Whether a condition is neither composed nor a preset. The code that resolves presets reports it with its
        line, so other checks wait."""
        given = self.conditions
        bare = [name for name, own in given.items() if own is None] if isinstance(given, dict) else given
        return any(name not in PRESETS for name in bare)
