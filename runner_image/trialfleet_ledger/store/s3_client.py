"""Creates the boto3 client with settings that every server accepts: addressing, checksums, time-outs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, cast

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.server_address import PATH_STYLE

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

CONNECTIONS = 32  # 16 for the I/O threads of a dispatcher, 16 for those of `get_many`
_CONNECT_S, _READ_S = 5, 30
LONGEST_TRY_S = _CONNECT_S + _READ_S  # without an answer
_Style = Literal["auto", "virtual", "path"]


def addressing(asked: bool | None, endpoint: str | None) -> _Style:
    """Where the bucket goes: few servers outside AWS answer to `bucket.their.name`."""
    if asked is None:
        asked = _asked_by_environment()
    if asked is None:
        return "auto" if endpoint is None else "path"
    return "path" if asked else "virtual"


def _asked_by_environment() -> bool | None:
    said = os.environ.get(PATH_STYLE, "").lower()
    if said not in ("", "0", "1", "false", "true"):
        raise OperatorError(f"{said!r} is not 0 or 1", where=PATH_STYLE, hint="set 1 or 0")
    return said in ("1", "true") if said else None


def s3_client(session: Session, endpoint: str | None, style: _Style) -> S3Client:
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": style},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": 1},  # `Patience` decides, not botocore
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        max_pool_connections=CONNECTIONS,
    )
    region = session.region_name or "us-east-1"
    untyped = cast("Any", session)  # its stubs have an overload per AWS service
    try:
        return cast("S3Client", untyped.client("s3", endpoint_url=endpoint, region_name=region, config=config))
    except (BotoCoreError, ValueError) as error:
        raise OperatorError(
            f"the S3 client cannot be created: {error}", hint="correct the AWS settings that the message names"
        ) from error
