"""Everything that could stop a campaign on a cluster, found before its first trial: what `doctor` lists, and what
planning refuses at the first finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from trialfleet_controller.checks import Check
from trialfleet_controller.operate.cluster import cluster_checks, permissions_check
from trialfleet_controller.operate.permissions import SUBMITTING
from trialfleet_controller.operate.probing import Probed, probe_cluster
from trialfleet_controller.operate.target import Target, of_file
from trialfleet_controller.operate.waiting import secret_made
from trialfleet_controller.orders import grants_expire_s
from trialfleet_controller.spec import CampaignFile
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.campaign import KubernetesPlan, KubernetesSpec
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.environment import RECIPE_CHARS, environment_ref, recipe
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.interpreters import find_interpreter
from trialfleet_runner.store.protocol import Store
from trialfleet_runner.taskfile import LoadedTask, campaign_tasks

FEW_PROCESSES = 256  # below it a test suite that forks may hit the node's limit


def clear(
    file: CampaignFile, store: Store | None, *, say: Callable[[str], None], submits: bool = False
) -> tuple[Identity, KubernetesPlan]:
    """The agent in the campaign's image, and what the plan freezes of the cluster; `store` None: nothing is frozen
    yet. Raises `OperatorError` for the first thing that is missing."""
    target, needed = of_file(file), environments(campaign_tasks(file.loaded))
    kube = target.kube
    for check in cluster_checks(target.client, kube.namespaces, target.pod, width=target.width):
        _refuse(check)
    if submits:
        _refuse(permissions_check(target.client, kube.namespaces[0], SUBMITTING))
    if store is not None:
        _refuse(credentials_check(target, store))
    probes: list[Probed] = []
    for namespace in kube.namespaces:
        say(f"looking at image and network with a probe pod in {namespace}")
        probes.append(_probe(target, namespace, store, say))
        for check in probe_checks(probes[-1], kube, target.plan.agent, needed):
            _refuse(check)
    identity = probes[0].report.agent
    assert identity is not None, "its check says so"
    _refuse(_same_image(probes))
    enforced = all(probed.report.network == "enforced" for probed in probes)
    found = {"image_id": probes[0].image_id, "network": "enforced" if enforced else "unenforced"}
    return identity, kube.model_copy(update=found)


def findings(target: Target, tasks: Sequence[LoadedTask], store: Store) -> Iterator[Check]:
    """The same for `doctor`: all of it, up to the first thing without which the rest means nothing."""
    broken = False
    for check in cluster_checks(target.client, target.kube.namespaces, target.pod, width=target.width):
        yield check
        broken = broken or check.result == "missing"
    yield credentials_check(target, store)
    if broken:
        yield Check("probe pod", "warning", "not started: mend the above first")
        return
    several = len(target.kube.namespaces) > 1
    needed = environments(tasks)
    for namespace in target.kube.namespaces:
        try:
            probed = _probe(target, namespace, store, lambda _: None)
        except OperatorError as error:
            yield Check(error.where or "probe pod", "missing", error.message, error.hint)
            continue
        for check in probe_checks(probed, target.kube, target.plan.agent, needed):
            yield replace(check, name=f"{check.name} in {namespace}") if several else check


def _probe(target: Target, namespace: str, store: Store | None, say: Callable[[str], None]) -> Probed:
    """Secrets, policies and defaults are a namespace's own: each is looked at."""
    kube = target.kube.model_copy(update={"namespaces": (namespace,)})
    return probe_cluster(target.client, kube, target.plan.agent, store, say=say)


def _same_image(probes: Sequence[Probed]) -> Check:
    found = sorted({probed.image_id for probed in probes})
    if len(found) == 1:
        return Check("image", "ok", found[0])
    nodes = ", ".join(f"{probed.image_id} on {probed.node}" for probed in probes)
    return Check("image", "missing", f"it is not the same everywhere: {nodes}", "name it by digest: NAME@sha256:…")


def credentials_check(target: Target, store: Store) -> Check:
    """Grants are signed at the launch, for as long as an attempt can be pending and run."""
    name, lives_s = "grants", grants_expire_s(target.plan)
    try:
        store.grant_get(f"{target.plan.campaign}/campaign.json", expires_s=lives_s)
    except OperatorError as error:
        return Check(name, "missing", error.message, error.hint)
    return Check(name, "ok", f"can be signed for {lives_s / 3600:.1f} h")


def environments(tasks: Iterable[LoadedTask]) -> dict[str, list[LoadedTask]]:
    """The environments that the image must hold: recipe -> the tasks that run in it."""
    needed: dict[str, list[LoadedTask]] = {}
    for task in tasks:
        python = find_interpreter(task.environment.python)
        ref = environment_ref(task.environment, task.lock_path.read_bytes(), python)
        needed.setdefault(recipe(ref)[:RECIPE_CHARS], []).append(task)
    return needed


def probe_checks(
    probed: Probed, kube: KubernetesSpec, agent: AgentSpec, needed: Mapping[str, Sequence[LoadedTask]]
) -> Iterator[Check]:
    """What the probe pod saw. Pure."""
    report = probed.report
    yield Check("image", "ok", f"{kube.image} is {probed.image_id} on {probed.node}")
    yield _baked(report.baked, kube, needed)
    yield _agent(probed, kube, agent)
    yield _model(probed, kube)
    yield _store(probed)
    yield _network(probed, kube)
    yield _processes(report.threads)


def _baked(there: Mapping[str, str], kube: KubernetesSpec, needed: Mapping[str, Sequence[LoadedTask]]) -> Check:
    lacking = [task for name, tasks in needed.items() if name not in there for task in tasks]
    if not lacking:
        return Check("environments", "ok", f"{len(needed)} of {len(there)} in the image are these tasks'")
    files = " ".join(dict.fromkeys(os.path.relpath(task.file) for task in lacking))
    return Check(
        "environments",
        "missing",
        f"image {kube.image} lacks the environments of {', '.join(task.id for task in lacking)}",
        f"trialfleet image build --for {files}, and name the new image in kubernetes.image",
    )


def _installing(agent: AgentSpec) -> str:
    """The option that brings it; a program of kind command comes with the base."""
    version = f"@{agent.version}" if agent.version else ""
    return {"command": "--base IMAGE ", "claude-code": f"--agents claude-code{version} "}.get(agent.kind, "")


def _agent(probed: Probed, kube: KubernetesSpec, agent: AgentSpec) -> Check:
    name, found = f"agent {agent.kind}", probed.report.agent
    if found is None:
        return Check(
            name,
            "missing",
            f"in image {kube.image}: {probed.report.agent_error}",
            f"trialfleet image build {_installing(agent)}…, and name the new image in kubernetes.image",
        )
    return Check(name, "ok", f"version {found.version} in the image")


def _model(probed: Probed, kube: KubernetesSpec) -> Check:
    error, secret = probed.report.model_error, kube.model_secret
    if error is None:
        return Check("credentials", "ok", "all that the agent needs")
    make = secret_made(secret or "model-keys")
    if secret is None:
        return Check("credentials", "missing", error, f"{make}; and kubernetes: {{model_secret: model-keys}}")
    return Check("credentials", "missing", f"{error} in Secret {secret}", make)


def _store(probed: Probed) -> Check:
    name, error = "store from pods", probed.report.store_error
    if error is not None:
        return Check(
            name,
            "missing",
            f"reached from here and not from pods: {error}",
            "name the address that pods see in store.pod_endpoint, and let network policies pass it",
        )
    broken = [check for check in probed.report.store if check.holds is False]
    if broken:
        what = "; ".join(f"{check.name}: {check.detail}" for check in broken)
        return Check(
            name, "missing", what, "let pods reach the store itself, without a proxy that changes requests"
        )
    return Check(name, "ok", "grants are honoured")


def _network(probed: Probed, kube: KubernetesSpec) -> Check:
    report = probed.report
    if report.network == "enforced":
        tried = len([one for one in report.canary if one.answer != "unresolved"])
        found = f"enforced: none of {tried} forbidden addresses answers"
        late = [one.address for one in report.canary if one.at_first]
        if not late:
            return Check("network", "ok", found)
        found = f"{found}; at first {', '.join(late)} did: pods are cut off only some time after their start"
        return Check("network", "warning", found, "a network plugin that cuts pods off before they start")
    reached = [one.address for one in report.canary if one.answer == "connected"]
    found = (
        f"unenforced: a pod reaches {', '.join(reached)}, so agents would" if reached else "nothing could be tried"
    )
    if kube.allow_unenforced_network:
        return Check("network", "warning", f"{found}; allowed, and recorded in every bundle")
    return Check(
        "network",
        "missing",
        found,
        "kubectl apply --server-side -k k8s/base, on a network plugin that enforces policies (Calico, Cilium); or "
        "accept it: kubernetes: {allow_unenforced_network: true}, which every bundle then says",
    )


def _processes(limit: int | None) -> Check:
    """Too many are a fork bomb that takes its node along, too few fail test suites that have nothing wrong."""
    name = "processes"
    if limit is None:
        return Check(
            name, "warning", "a pod may start as many as the node has room for", "set the kubelet's podPidsLimit"
        )
    few = limit < FEW_PROCESSES
    return Check(name, "warning" if few else "ok", f"at most {limit} in a pod (the kubelet's podPidsLimit)")


def _refuse(check: Check) -> None:
    if check.result == "missing":
        raise OperatorError(check.found, where=check.name, hint=check.mend)
