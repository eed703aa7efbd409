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
    with pytest.MonkeyPatch.context() as patch:
        told = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in (told | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
            patch.setenv(name, value)
        try:
            fsspec.filesystem("s3", skip_instance_cache=True).mkdir(bucket)
            yield f"s3://{bucket}"
        finally:
            fsspec.filesystem("s3").clear_instance_cache()
            server.stop()
