"""`trialfleet submit`: runs the controller as a Job in the cluster."""

from __future__ import annotations

from pathlib import Path

import click

from trialfleet_controller.commands.options import ResourceAmount, mirror_option
from trialfleet_ledger.quantities import ControllerMemory, Cores

STARTS_S = 180.0  # an image is pulled meanwhile, and a busy node takes its time


@click.command("submit")
@click.argument("campaign_file", type=click.Path(path_type=Path))
@click.option(
    "--controller-image",
    required=True,
    metavar="IMAGE",
    help="Image of the controller, from `trialfleet image build --target controller`.",
)
@click.option(
    "--store-secret",
    metavar="NAME",
    help="Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the store. [default: trialfleet-store, if it "
    "exists]",
)
@click.option(
    "--service-account",
    default="trialfleet-controller",
    show_default=True,
    metavar="NAME",
    help="Service account of the controller (see k8s/base); it may provide the store's credentials.",
)
@click.option(
    "--ray-address", metavar="ADDRESS", help="Use this Ray cluster. [default: the Job starts its own Ray]"
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1024, 65535),
    metavar="PORT",
    help="Port on which the Job's own Ray exports metrics for Prometheus. [default: no metrics]",
)
@click.option(
    "--keep-failed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Keep the newest N failed pods of each namespace for inspection.",
)
@click.option(
    "--cpu",
    type=ResourceAmount(Cores),
    metavar="CORES",
    default="1",
    show_default=True,
    help="CPU request of the controller, such as 2, 0.5 or 100m.",
)
@click.option(
    "--memory",
    type=ResourceAmount(ControllerMemory),
    metavar="SIZE",
    default="3Gi",
    show_default=True,
    help="Memory request and limit of the controller, such as 3Gi or 512Mi.",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment variable of the controller; never a secret. Repeatable.",
)
@mirror_option
def submit(
    campaign_file: Path,
    controller_image: str,
    store_secret: str | None,
    service_account: str,
    ray_address: str | None,
    metrics_port: int | None,
    keep_failed: int,
    cpu: float,
    memory: int,
    env: tuple[str, ...],
    mirror: tuple[str, ...],
) -> None:
    """Freeze the campaign of CAMPAIGN_FILE and start a Job in its cluster that drives it. This machine is not
    needed afterwards.

    A repeated submit finds the same Job. `status`, `logs`, `cancel`, `pull` and `report` need only the store.
    """
    from trialfleet_controller.backends.kube.client import Client
    from trialfleet_controller.campaigns import from_file
    from trialfleet_controller.local_planning import freeze, make_plan
    from trialfleet_controller.operate import submit as submitting
    from trialfleet_controller.operate.job import Submission, job
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.store.server_address import find_endpoint, find_region

    if metrics_port is not None and ray_address is not None:
        raise OperatorError(
            "each node of a Ray cluster configures its own metrics port",
            where="--metrics-port",
            hint="remove --metrics-port, or --ray-address",
        )
    more = submitting.environment(env)
    found = from_file(campaign_file)
    assert found.file is not None
    kube = found.file.spec.kubernetes
    if kube is None:
        raise OperatorError(
            "a campaign with the local backend cannot be submitted",
            where=found.file.where("backend"),
            hint="use `trialfleet run`, or set backend: kubernetes and add a section kubernetes:",
        )
    plan, new = freeze(found.ledger, make_plan(found.file, found.store, mirror))
    click.echo(f"{'frozen' if new else 'was frozen already'}: {found.store.url}/{found.name}", err=True)
    store = found.file.spec.store_spec
    manifest = job(
        Submission(
            campaign=f"{found.store.url}/{found.name}",
            uid=plan.uid,
            namespace=kube.namespaces[0],
            image=controller_image,
            service_account=service_account,
            endpoint=store.pod_endpoint or store.endpoint or find_endpoint(),
            path_style=store.path_style,
            region=find_region(),
            store_secret=store_secret,
            ray_address=ray_address,
            metrics_port=metrics_port,
            keep_failed=keep_failed,
            env=more,
            pull_secrets=kube.image_pull_secrets,
            cpu=cpu,
            memory_bytes=memory,
        )
    )
    client = Client.connect(kube.context)
    how = submitting.submit(client, manifest)
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    click.echo(f"job {name} in {namespace}: {how}")
    click.echo(submitting.until_started(client, manifest, kube, timeout_s=STARTS_S))
    click.echo(f"watch it: trialfleet status {campaign_file}; kubectl -n {namespace} logs -f job/{name}")
