"""Which store addresses name a server, and the environment variables that say where an S3 server is."""

from __future__ import annotations

import os
from collections.abc import Mapping

SCHEME = "s3:"
PATH_STYLE = "TRIALFLEET_S3_PATH_STYLE"
SESSION_TOKEN = "AWS_SESSION_TOKEN"  # noqa: S105 - a name; long-lived keys have none
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", SESSION_TOKEN)
_ENDPOINT, _REGION = "AWS_ENDPOINT_URL_S3", "AWS_REGION"


def is_remote(url: str) -> bool:
    """Whether other machines reach the store that `url` names.

    >>> is_remote("s3://bucket/prefix"), is_remote("runs")
    (True, False)
    """
    return url.startswith(SCHEME)


def find_endpoint(environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the S3 server; None: AWS.

    >>> find_endpoint({"AWS_ENDPOINT_URL": "http://a:9000", "AWS_ENDPOINT_URL_S3": ""})
    'http://a:9000'
    """
    return environ.get(_ENDPOINT) or environ.get("AWS_ENDPOINT_URL")


def find_region(environ: Mapping[str, str] = os.environ) -> str | None:
    """None: the variables name no region."""
    return environ.get(_REGION) or environ.get("AWS_DEFAULT_REGION")


def server_variables(
    *, endpoint: str | None = None, path_style: bool | None = None, region: str | None = None
) -> dict[str, str]:
    """The environment in which another process finds the same server. What is None is left out.

    >>> server_variables(endpoint="http://a:9000", path_style=True)
    {'AWS_ENDPOINT_URL_S3': 'http://a:9000', 'TRIALFLEET_S3_PATH_STYLE': '1'}
    """
    style = None if path_style is None else str(int(path_style))
    variables = {_ENDPOINT: endpoint, PATH_STYLE: style, _REGION: region}
    return {name: value for name, value in variables.items() if value is not None}
