"""Collectors with a bucket, and buckets for them."""

import os
import pathlib
import subprocess
import sys

import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/storage/bucket"))
import ceph  # noqa: E402


class CollectorWithBucket(servers.Collector):
    """With a bucket and `ack`; each one has a prefix of its own."""

    def __init__(self, directory, build, endpoint, prefix, ack, interval):
        super().__init__(directory, build)
        self.name = ack
        self.config = self.directory / "collector.yaml"
        self.config.write_text(
            f"bucket: {{url: 's3://tests/{prefix}', endpoint: '{endpoint}', path_style: true}}\n"
            f"cluster: {{ack: {ack}, ack_interval: {interval}}}\n")

    def command(self):
        return [*super().command(), "--config", self.config]

    def sent_bytes(self):
        return self.metrics().get('tacho_bucket_bytes_total{direction="sent"}', 0)


def start_bucket(build, folder, fake):
    """(its endpoint, how to end it): a real Ceph in `folder`, or the program of the tests."""
    if not fake and not ceph.missing():
        env = ceph.start(folder)
        os.environ.update(env)
        ceph.put(env, "/tests")
        return env["TACHO_TEST_CEPH"], lambda: subprocess.run([ceph.CEPH, "stop", folder, "--purge"], check=False)
    print("without Ceph", file=sys.stderr)
    os.environ.update(AWS_ACCESS_KEY_ID="GOOGTESTKEY", AWS_SECRET_ACCESS_KEY="secret/of+tests")
    store = subprocess.Popen([build / "tests/support/tacho-fake-object-store"],
                             stdout=subprocess.PIPE, text=True)
    return store.stdout.readline().strip(), store.kill
