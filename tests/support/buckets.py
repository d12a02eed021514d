"""Buckets of one's own in the S3 server of $S3_ENDPOINT."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config

from tests.support.waiting import wait_until


def client(endpoint: str | None = None) -> Any:
    """Of the test's store, as this machine reaches it, unless told otherwise."""
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    return boto3.client(
        "s3", endpoint_url=endpoint or os.environ["S3_ENDPOINT"], region_name="us-east-1", config=config
    )


@contextmanager
def bucket(name: str) -> Generator[None]:
    s3 = client()
    s3.create_bucket(Bucket=name)
    try:
        yield
    finally:
        wait_until(lambda: _removed(s3, name), f"bucket {name} is removed", every_s=0.5)


def _removed(s3: Any, name: str) -> bool:
    """False while somebody still writes: pods of a namespace that is going away do so to their end."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
        there = [{"Key": item["Key"]} for item in page.get("Contents", ())]  # a page and a request: 1,000
        if there:
            s3.delete_objects(Bucket=name, Delete={"Objects": there, "Quiet": True})
    try:
        s3.delete_bucket(Bucket=name)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "BucketNotEmpty":
            raise
        return False
    return True
