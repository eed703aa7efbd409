"""An S3-compatible server for tests, on 127.0.0.1.

It is moto's server. It is accessed over HTTP through s3fs, as on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def object_store(bucket: str) -> Iterator[str]:
    """Yield the URL of an empty bucket.

    Credentials and endpoint are set in the environment, as on a cluster.
    """
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
    """Yield the URL of a bucket at an address where no server listens."""
    with _endpoint("http://127.0.0.1:9"):
        yield "s3://gone"


@contextmanager
def _endpoint(url: str) -> Iterator[None]:
    """Point fsspec at this endpoint for the duration of the context.

    fsspec caches one client with the endpoint that it was created with, so the cache is cleared
    before and after.
    """
    import fsspec

    variables = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        try:
            yield
        finally:
            fsspec.get_filesystem_class("s3").clear_instance_cache()
