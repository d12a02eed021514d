"""Buckets of one's own in the S3 server of $S3_ENDPOINT."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config


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
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
            there = [{"Key": item["Key"]} for item in page.get("Contents", ())]  # a page and a request: 1,000
            if there:
                s3.delete_objects(Bucket=name, Delete={"Objects": there, "Quiet": True})
        s3.delete_bucket(Bucket=name)
