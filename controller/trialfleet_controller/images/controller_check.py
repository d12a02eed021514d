"""`python -m trialfleet_controller.images.controller_check`: whether the controller's image has all that it runs.

requirements/controller.omitted.tsv leaves out much of its packages. The Dockerfile runs this as the image's user,
where nothing but the image is there: a missing file fails the build instead of a Job. Needs loopback alone.
"""

from __future__ import annotations

import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import import_module
from pathlib import Path
from typing import Any

from trialfleet_controller.backends.kube.client import connect
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_ledger.quantities import parse_quantity

# What `resume` imports in a Job, and what its actors import.
PACKAGES = (
    "trialfleet_controller.backends.kube",
    "trialfleet_controller.dispatch",
    "trialfleet_controller.hosting",
    "trialfleet_controller.status",
    "trialfleet_ledger",
    "trialfleet_statistics",
    "trialfleet_designs",
)
MODULES = (
    "trialfleet_controller.commands.resume",
    "trialfleet_controller.campaigns",
    "trialfleet_controller.operate.leftovers",
    "trialfleet_controller.planning.amending",
    "scipy.stats",
)
WITHOUT_ITS_LIBRARY = {"trialfleet_ledger.store.bulk"}  # obstore is for pulls and reports
COMMANDS = (("trialfleet", "resume", "--help"), ("ray", "start", "--help"), ("ray", "health-check", "--help"))

# Kinds of credentials that boto3 looks for, and the services that some of them ask.
PROVIDERS = {
    *("env", "shared-credentials-file", "config-file", "custom-process", "container-role", "iam-role"),
    *("assume-role", "assume-role-with-web-identity", "sso", "login"),
}
SERVICES = ("s3", "sts", "sso", "sso-oidc", "signin")

METRIC = "trialfleet_image_check"
EXPORTED_S = 60.0


def import_job_modules() -> None:
    for name in (*MODULES, *(name for package in PACKAGES for name in module_names(package))):
        import_module(name)


def module_names(package: str) -> list[str]:
    """Every module of a package."""
    root = import_module(package)
    listed = pkgutil.walk_packages(root.__path__, f"{package}.")
    return [module.name for module in listed if module.name not in WITHOUT_ITS_LIBRARY]


def run_commands() -> None:
    programs = Path(sys.executable).parent
    for program, *arguments in COMMANDS:
        subprocess.run((programs / program, *arguments), stdout=subprocess.DEVNULL, check=True)


def make_store_clients() -> None:
    """Raises `LookupError` if boto3 lacks a kind of credentials."""
    from boto3.session import Session

    session = Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106
    untyped: Any = session
    for service in SERVICES:
        untyped.client(service)
    resolver = untyped._session.get_component("credential_provider")
    lacking = PROVIDERS - {provider.METHOD for provider in resolver.providers}
    if lacking:
        raise LookupError(f"boto3 lacks these kinds of credentials: {', '.join(sorted(lacking))}")


def configure_clusters() -> None:
    """Connections by a kubeconfig with a token and one with a program, and by a pod's service account. Nothing is
    sent."""
    with tempfile.TemporaryDirectory() as folder:
        answer = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": "t"},
        }
        program = {
            "apiVersion": answer["apiVersion"],
            "command": sys.executable,
            "args": ["-c", f"print({json.dumps(answer)!r})"],
            "interactiveMode": "Never",
        }
        for user in ({"token": "t"}, {"exec": program}):
            os.environ["KUBECONFIG"] = str(write_kubeconfig(Path(folder), user))
            assert connect("here").authorise() == {"authorization": "Bearer t"}, user
        configure_in_cluster(Path(folder))
    parse_quantity("100m")


def write_kubeconfig(folder: Path, user: dict[str, Any]) -> Path:
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "here", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    }
    file = folder / "config"
    file.write_text(json.dumps(whole))
    return file


def configure_in_cluster(folder: Path) -> None:
    """As `load_incluster_config` does, but for the folder of the service account, which only root could write."""
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import incluster_config

    (folder / "token").write_text("t")
    untyped: Any = incluster_config
    loader = untyped.InClusterConfigLoader(
        token_filename=str(folder / "token"),
        cert_filename="/etc/ssl/certs/ca-certificates.crt",
        environ={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"},
    )
    configuration: Any = Configuration()
    loader.load_and_set(configuration)
    assert ApiClient(configuration).rest_client.pool_manager is not None


def run_ray() -> None:
    """A private Ray with a task, an actor and the exporter. Raises `TimeoutError` if no metric is exported."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    private = PrivateRay(cpus=2, metrics_port=port)
    try:
        ray = private.ray
        assert ray.get(ray.remote(process_id).remote()) != os.getpid()
        actor = ray.remote(ImageActor).remote()
        ray.get(actor.count.remote())
        await_metric(f"http://127.0.0.1:{port}/metrics")
    finally:
        private.close()


def process_id() -> int:
    return os.getpid()


class ImageActor:
    """Counts what `await_metric` waits for."""

    def __init__(self) -> None:
        from ray.util.metrics import Counter

        self._counter = Counter(METRIC)

    def count(self) -> None:
        self._counter.inc(1)


def await_metric(url: str) -> None:
    end = time.monotonic() + EXPORTED_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of this machine
                if METRIC.encode() in answer.read():
                    return
        except OSError:
            pass  # the exporter has not started
        time.sleep(0.5)
    raise TimeoutError(f"Ray's exporter shows no metric {METRIC} within {EXPORTED_S:g} s")


def main() -> None:
    import_job_modules()
    run_commands()
    make_store_clients()
    configure_clusters()
    run_ray()


if __name__ == "__main__":
    main()
