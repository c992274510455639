#!/usr/bin/python3
"""Runs tests against a real Ceph: the contract of Bucket, and the probe, in a plain and a versioned bucket.

Usage: ceph.py PROGRAM [ARGUMENT...]     PROGRAM is run with
  TACHO_TEST_CEPH                              the gateway's URL
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY     its keys
  two buckets, `plain` and `versioned`

It starts a small Ceph on the loopback interface (a monitor, an OSD in memory, a gateway) and ends it
afterwards. The exit status is PROGRAM's; 77 if Ceph's packages are not there.
"""

import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

CEPH = pathlib.Path(__file__).resolve().parents[2] / "support/ceph_loopback.sh"
NEEDED = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "curl")
VERSIONS = ('<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            "<Status>Enabled</Status></VersioningConfiguration>")


def missing():
    lacking = [name for name in NEEDED if not shutil.which(name)]
    probe = subprocess.run(["/usr/bin/python3", "-c", "import rados"], capture_output=True, check=False)
    return lacking + (["python3-rados"] if probe.returncode else [])


def free_ports():
    """The first of 100 ports that nobody has: the script takes the monitor's, +10 … +90."""
    for base in range(16800 + os.getpid() % 50 * 100, 30000, 100):
        taken = []
        try:
            for port in (base, *range(base + 10, base + 20), base + 90):
                taken.append(socket.create_server(("127.0.0.1", port)))
            return base
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()
    raise SystemExit("no free ports between 16800 and 30000")


def put(env, path, body=""):
    """Creates a bucket, or sets something of it."""
    subprocess.run(
        ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--request", "PUT",
         "--aws-sigv4", "aws:amz:us-east-1:s3",
         "--user", f"{env['AWS_ACCESS_KEY_ID']}:{env['AWS_SECRET_ACCESS_KEY']}",
         "--header", f"x-amz-content-sha256: {hashlib.sha256(body.encode()).hexdigest()}",
         "--data-binary", body, env["TACHO_TEST_CEPH"] + path],
        check=True, timeout=60)


def tell(folder, *words):
    """A command of the script: kill, revive, pause or resume, and a daemon (osd.0, rgw.0)."""
    subprocess.run([CEPH, words[0], folder, *words[1:]], check=True, timeout=120, stdout=subprocess.DEVNULL)


def start(folder, osds=1):
    """Returns the environment that programs find it by."""
    settings = {"BASE_PORT": str(free_ports()), "STORE": "memstore", "OSD_BYTES": str(1 << 30)}
    said = subprocess.run([CEPH, "start", folder, str(osds)], env=os.environ | settings, timeout=240,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    found = dict(line.removeprefix("export ").split("=", 1) for line in said.splitlines())
    return {"TACHO_TEST_CEPH": found["S3_ENDPOINT"],
            "AWS_ACCESS_KEY_ID": found["AWS_ACCESS_KEY_ID"],
            "AWS_SECRET_ACCESS_KEY": found["AWS_SECRET_ACCESS_KEY"]}


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    lacking = missing()
    if lacking:
        print(f"skipped: {', '.join(lacking)} not found; deploy/packages.sh test installs a Ceph")
        return 77
    folder = tempfile.mkdtemp(prefix="tacho-ceph-")
    try:
        env = start(folder)
        put(env, "/plain")
        put(env, "/versioned")
        put(env, "/versioned?versioning=", VERSIONS)
        return subprocess.run(sys.argv[1:], env=os.environ | env, check=False).returncode
    finally:
        subprocess.run([CEPH, "stop", folder, "--purge"], check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
