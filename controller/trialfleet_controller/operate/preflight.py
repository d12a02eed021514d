"""Finds what could stop a campaign on a cluster before its first trial. `doctor` lists all findings; planning
refuses at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from trialfleet_agents.pinned import pinned
from trialfleet_agents.protocol import Identity
from trialfleet_controller.backends.attempt_times import grants_expire_s
from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.operate.cluster import cluster_checks
from trialfleet_controller.operate.needed_environments import Needed, baked_check, environments
from trialfleet_controller.operate.probing import Probed, forbidden_addresses, probe_cluster
from trialfleet_controller.operate.refusals import error_of_check
from trialfleet_controller.operate.target import ClusterTarget, of_file
from trialfleet_controller.operate.waiting import secret_made
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_deliveries import texts
from trialfleet_ledger.campaign_spec import Graces, KubernetesSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import KubernetesPlan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.store.protocol import Store
from trialfleet_runner.pod_report import PodProbeReport, ProbedAgent
from trialfleet_tasks.taskfile import LoadedTask, campaign_tasks

FEW_PROCESSES = 256  # below it a test suite that forks may hit the node's limit
_OF_WIDTH = ("nodes", "quota")  # checks whose warnings say that fewer attempts run at once
MANY_PODS = 110  # a kubelet's default limit


def clear(
    file: CampaignFile, store: Store | None, *, mirrors: Mapping[str, Path], say: Callable[[str], None]
) -> tuple[dict[str, Identity], KubernetesPlan]:
    """Every condition's agent in the campaign's image, and what the plan freezes of the cluster. `store` None:
    nothing is frozen yet. Raises `OperatorError` for the first missing thing."""

    def tell(namespace: str) -> None:
        say(f"checking image and network with a probe pod in {namespace}")

    target, probes = of_file(file), list[Probed]()
    needed = partial(environments, campaign_tasks(file.loaded), mirrors)
    for check in _findings(target, needed, store, probes, say=say, before=tell):
        _refuse(check)
        if check.result == "warning" and check.name.startswith(_OF_WIDTH):
            say(f"{check.name}: {check.found}\n  fix: {check.fix}")
    probed = list(zip(target.settings.agent_specs, probes[0].report.agents, strict=True))
    agents = {
        name: next(found.identity for spec, found in probed if spec == own) for name, own in file.agents.items()
    }
    identities = {name: identity for name, identity in agents.items() if identity is not None}
    assert identities.keys() == agents.keys(), "their checks have passed"
    _refuse(_same_image(probes))
    enforced = all(probed.report.network == "enforced" for probed in probes)
    by_digest = {probed.by_digest for probed in probes}
    found = {
        "image_id": probes[0].image_id,
        "by_digest": by_digest.pop() if len(by_digest) == 1 else None,
        "network": "enforced" if enforced else "unenforced",
        "forbidden_addresses": forbidden_addresses(target.client, [probed.report for probed in probes]),
    }
    return identities, target.kube.model_copy(update=found)


def findings(
    target: ClusterTarget,
    tasks: Sequence[LoadedTask],
    store: Store,
    *,
    mirrors: Mapping[str, Path],
    say: Callable[[str], None],
) -> Iterator[DoctorCheck]:
    """The checks of `doctor`: all, or up to the first failure that makes the rest meaningless."""
    return _findings(target, partial(environments, tasks, mirrors), store, [], say=say)


def _findings(
    target: ClusterTarget,
    needed: Callable[[], Needed],
    store: Store | None,
    probes: list[Probed],
    *,
    say: Callable[[str], None],
    before: Callable[[str], None] = lambda _: None,
) -> Iterator[DoctorCheck]:
    """`probes` gets what the probe pods found; `before` is called with a namespace before it is probed."""
    broken, kube = False, target.kube
    for check in cluster_checks(target.client, kube.namespaces, target.pod, width=target.width, queue=kube.queue):
        yield check
        broken = broken or check.result == "missing"
    if store is not None:
        yield credentials_check(target, store)
    if broken:
        yield DoctorCheck("probe pod", "warning", "not started: fix the above first")
        return
    wanted = needed()
    for namespace in kube.namespaces:
        before(namespace)
        try:
            probes.append(_probe(target, namespace, store, say))
        except OperatorError as error:
            yield DoctorCheck(error.where or "probe pod", "missing", error.message, error.hint)
            continue
        for check in probe_checks(probes[-1], kube, target.settings.agent_specs, wanted):
            yield replace(check, name=f"{check.name} in {namespace}") if len(kube.namespaces) > 1 else check


def _probe(target: ClusterTarget, namespace: str, store: Store | None, say: Callable[[str], None]) -> Probed:
    """Each namespace is probed: it has its own Secrets, policies and defaults."""
    kube = target.kube.model_copy(update={"namespaces": (namespace,)})
    return probe_cluster(target.client, kube, target.settings.agent_specs, store, say=say)


def _same_image(probes: Sequence[Probed]) -> DoctorCheck:
    found = sorted({probed.image_id for probed in probes})
    if len(found) == 1:
        return DoctorCheck("image", "ok", found[0])
    nodes = ", ".join(f"{probed.image_id} on {probed.node}" for probed in probes)
    return DoctorCheck(
        "image", "missing", f"nodes have different images: {nodes}", "name the image by digest: NAME@sha256:…"
    )


def credentials_check(target: ClusterTarget, store: Store) -> DoctorCheck:
    """Whether grants can be signed for as long as an attempt can be pending and run."""
    name, lives_s = "grants", grants_expire_s(target.settings)
    try:
        store.grant_get(f"{target.settings.campaign}/campaign.json", expires_s=lives_s)
    except OperatorError as error:
        return DoctorCheck(name, "missing", error.message, error.hint)
    return DoctorCheck(name, "ok", f"can be signed for {lives_s / 3600:.1f} h")


def probe_checks(
    probed: Probed, kube: KubernetesSpec, agents: Sequence[AgentSpec], needed: Needed
) -> Iterator[DoctorCheck]:
    """What the probe pod found. Pure."""
    report = probed.report
    yield _image(probed, kube)
    yield _texts(report.texts, kube)
    yield baked_check(report.baked, kube, needed)
    for agent, found in zip(agents, report.agents, strict=True):
        yield _agent(found, kube, agent)
        yield _model(found, kube)
    yield _store(probed)
    yield _network(probed, kube)
    yield _processes(report.threads)
    yield _users(report.user, kube)


def _image(probed: Probed, kube: KubernetesSpec) -> DoctorCheck:
    tag = "no registry has a digest for it: pods use the name in the file"
    how = tag if probed.by_digest is None else f"pods use {probed.by_digest}"
    return DoctorCheck("image", "ok", f"{kube.image} is {probed.image_id} on {probed.node}; {how}")


def _texts(there: str, kube: KubernetesSpec) -> DoctorCheck:
    """Prompts and hooks are written in the image; the plan is made here."""
    name = "texts"
    if there == texts.digest():
        return DoctorCheck(name, "ok", "the image has the texts for models that this installation has")
    return DoctorCheck(
        name,
        "missing",
        f"image {kube.image} has other texts for models than {texts.FOLDER}",
        "trialfleet image build, and name the new image in kubernetes.image",
    )


def _installing(agent: AgentSpec) -> str:
    """The option of `image build` that adds the agent; a program of kind command comes with the base image."""
    version = f"@{agent.version}" if agent.version else ""
    if agent.kind in pinned():
        return f"--agents {agent.kind}{version} "
    return "--base IMAGE " if agent.kind == "command" else ""


def _agent(probed: ProbedAgent, kube: KubernetesSpec, agent: AgentSpec) -> DoctorCheck:
    name, found = f"agent {agent.kind}", probed.identity
    if found is None:
        return DoctorCheck(
            name,
            "missing",
            f"in image {kube.image}: {probed.error}",
            f"trialfleet image build {_installing(agent)}…, and name the new image in kubernetes.image",
        )
    return DoctorCheck(name, "ok", f"version {found.version} in the image")


def _model(probed: ProbedAgent, kube: KubernetesSpec) -> DoctorCheck:
    error, secret = probed.model_error, kube.model_secret
    if error is None:
        return DoctorCheck("credentials", "ok", "all that the agent needs")
    make = secret_made(secret or "model-keys")
    if secret is None:
        return DoctorCheck(
            "credentials", "missing", error, f"{make}; and kubernetes: {{model_secret: model-keys}}"
        )
    return DoctorCheck("credentials", "missing", f"{error} in Secret {secret}", make)


def _store(probed: Probed) -> DoctorCheck:
    name, error = "store from pods", probed.report.store_error
    if error is not None:
        return DoctorCheck(
            name,
            "missing",
            f"pods cannot reach it, this machine can: {error}",
            "set store.pod_endpoint to the address that pods see, and allow it in the network policies",
        )
    broken = [check for check in probed.report.store if check.holds is False]
    if broken:
        what = "; ".join(f"{check.name}: {check.detail}" for check in broken)
        return DoctorCheck(
            name, "missing", what, "let pods reach the store itself, without a proxy that changes requests"
        )
    return DoctorCheck(name, "ok", "accepts grants from pods")


def _enforced(report: PodProbeReport, graces: Graces) -> DoctorCheck:
    tried = [one for one in report.canary if one.answer != "unresolved"]
    found = [f"enforced: none of {len(tried)} forbidden addresses is reachable"]
    kubelet = () if report.kubelet is None else (report.kubelet,)
    late = [one.address for one in (*report.canary, *kubelet) if one.at_first]
    if late:
        found.append(
            f"at first {', '.join(late)} was: the policy takes effect only some time after a pod starts, and each "
            f"runner waits for it before it starts anything, at most {graces.open_network_s:g} s"
        )
    if any(one.answer == "connected" for one in kubelet):
        found.append("a pod reaches the kubelet of its node, which a policy need not refuse")
    return DoctorCheck("network", "ok", "; ".join(found))


def _network(probed: Probed, kube: KubernetesSpec) -> DoctorCheck:
    report = probed.report
    if report.network == "enforced":
        return _enforced(report, kube.graces)
    reached = [one.address for one in report.canary if one.answer == "connected"]
    found = f"unenforced: a pod reaches {', '.join(reached)}" if reached else "no address could be tried"
    if kube.allow_unenforced_network:
        return DoctorCheck("network", "warning", f"{found}; allowed, and recorded in every bundle")
    return DoctorCheck(
        "network",
        "missing",
        found,
        "kubectl apply --server-side -k k8s/base, on a network plugin that enforces policies (Calico, Cilium); or "
        "accept it: kubernetes: {allow_unenforced_network: true}, which every bundle then says",
    )


def _processes(limit: int | None) -> DoctorCheck:
    """Without a limit a fork bomb takes down its node; too low a limit fails correct test suites."""
    name = "processes"
    if limit is None:
        return DoctorCheck(
            name, "warning", "a pod may start as many as its node allows", "set the kubelet's podPidsLimit"
        )
    few = limit < FEW_PROCESSES
    return DoctorCheck(name, "warning" if few else "ok", f"at most {limit} in a pod (the kubelet's podPidsLimit)")


def _users(name: str | None, kube: KubernetesSpec) -> DoctorCheck:
    """User namespaces do not help: see docs/decisions/0009-a-uid-for-each-pod.md."""
    uids = kube.uids
    found = (
        f"{len(uids)} uids ({uids.min} to {uids.max}) for pods; user namespaces (hostUsers: false) are not used"
    )
    if name is None:
        lacks = (
            f"{found}; uid {uids.min} has no name in the image: git does not commit, Node's os.userInfo() fails"
        )
        return DoctorCheck(
            "users", "warning", lacks, "remove kubernetes.uids, or add the uids to /etc/passwd of the --base image"
        )
    if len(uids) < MANY_PODS:
        shared = f"{found}: pods of one node may share a uid and its kernel limits"
        return DoctorCheck("users", "warning", shared, f"widen kubernetes.uids to {MANY_PODS} or more")
    return DoctorCheck("users", "ok", found)


def _refuse(check: DoctorCheck) -> None:
    if check.result == "missing":
        raise error_of_check(check)
