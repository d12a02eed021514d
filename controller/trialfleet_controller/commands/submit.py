"""`trialfleet submit`: the controller itself runs in the cluster."""

from __future__ import annotations

import os
from pathlib import Path

import click

STARTS_S = 60.0


@click.command("submit")
@click.argument("campaign_file", type=click.Path(path_type=Path))
@click.option(
    "--controller-image", required=True, metavar="IMAGE", help="Of `trialfleet image build`, for the controller."
)
@click.option(
    "--store-secret",
    metavar="NAME",
    help="Secret with the store's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. [default: trialfleet-store, if there]",
)
@click.option(
    "--service-account",
    default="trialfleet-controller",
    show_default=True,
    metavar="NAME",
    help="Of k8s/base; may bring the store's credentials.",
)
@click.option(
    "--ray-address", metavar="ADDRESS", help="Join this Ray cluster. [default: Ray starts inside the Job]"
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1024, 65535),
    metavar="PORT",
    help="Where the Job's own Ray exports metrics for Prometheus. [default: nowhere]",
)
@click.option("--keep-failed", type=click.IntRange(0), default=0, metavar="N", help="The newest failed pods stay.")
@click.option("--cpu", type=float, default=1, show_default=True, help="What the controller asks for.")
@click.option("--memory", default="3Gi", show_default=True, help="The most it may use.")
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="More environment for the controller; no secrets."
)
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
def submit(
    campaign_file: Path,
    controller_image: str,
    store_secret: str | None,
    service_account: str,
    ray_address: str | None,
    metrics_port: int | None,
    keep_failed: int,
    cpu: float,
    memory: str,
    env: tuple[str, ...],
    mirror: tuple[str, ...],
) -> None:
    """Freeze the campaign of CAMPAIGN_FILE and let a Job in its cluster drive it; this machine may be off.

    Submitting again finds the same Job. `status`, `logs`, `cancel`, `pull` and `report` need the store alone.
    """
    from trialfleet_controller.campaigns import from_file
    from trialfleet_controller.kube.client import Client
    from trialfleet_controller.ledger import Ledger
    from trialfleet_controller.making import freeze, make_plan
    from trialfleet_controller.operate import submit as submitting
    from trialfleet_controller.operate.job import Submission, job
    from trialfleet_runner.errors import OperatorError

    if metrics_port is not None and ray_address is not None:
        raise OperatorError(
            "the nodes of a Ray cluster say themselves where they export",
            where="--metrics-port",
            hint="leave it out",
        )
    more = submitting.environment(env)
    found = from_file(campaign_file)
    assert found.file is not None
    kube = found.file.spec.kubernetes
    if kube is None:
        raise OperatorError(
            "a campaign of this machine cannot be submitted",
            where=found.file.where("backend"),
            hint="trialfleet run, or backend: kubernetes and a section kubernetes:",
        )
    plan, new = freeze(Ledger(found.store, found.name), make_plan(found.file, found.store, mirror, submits=True))
    click.echo(f"{'frozen' if new else 'was frozen already'}: {found.store.url}/{found.name}", err=True)
    store = found.file.spec.store_spec
    manifest = job(
        Submission(
            campaign=f"{found.store.url}/{found.name}",
            uid=plan.uid,
            namespace=kube.namespaces[0],
            image=controller_image,
            service_account=service_account,
            endpoint=store.pod_endpoint or store.endpoint or _endpoint(),
            path_style=store.path_style,
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
            store_secret=store_secret,
            ray_address=ray_address,
            metrics_port=metrics_port,
            keep_failed=keep_failed,
            env=more,
            pull_secrets=kube.image_pull_secrets,
            cpu=cpu,
            memory=memory,
        )
    )
    client = Client.connect(kube.context)
    how = submitting.submit(client, manifest)
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    click.echo(f"job {name} in {namespace}: {how}")
    click.echo(submitting.until_started(client, manifest, kube, timeout_s=STARTS_S))
    click.echo(f"watch it: trialfleet status {campaign_file}; kubectl -n {namespace} logs -f job/{name}")


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
