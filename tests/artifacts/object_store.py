"""An S3-compatible server of this test's own, on 127.0.0.1: moto's, spoken to over HTTP by the same s3fs that a cluster uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def object_store(bucket: str) -> Iterator[str]:
    """URL of an empty bucket; credentials and endpoint stand in the environment, as they would on a cluster."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with _endpoint(f"http://{host}:{port}"):
            fsspec.filesystem("s3").mkdir(bucket)
            yield f"s3://{bucket}"
    finally:
        server.stop()


@contextmanager
def no_object_store() -> Iterator[str]:
    """URL of a bucket at an address where nobody answers."""
    with _endpoint("http://127.0.0.1:9"):
        yield "s3://gone"


@contextmanager
def _endpoint(url: str) -> Iterator[None]:
    """fsspec keeps one client, with the endpoint that it began with: here one begins anew, and is forgotten afterwards."""
    import fsspec

    told = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        try:
            yield
        finally:
            fsspec.get_filesystem_class("s3").clear_instance_cache()
