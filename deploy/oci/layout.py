"""Writes an image as an OCI layout (a directory) and as an archive of it."""
import gzip
import hashlib
import json
import shutil
import time

import debian_parts
from tree import Tree

TYPE = "application/vnd.oci.image."


def utc(epoch):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class _Blobs:
    def __init__(self, folder):
        self._folder = folder / "blobs/sha256"
        self._folder.mkdir(parents=True)
        self.sizes = {}

    def add(self, media_type, data):
        """The descriptor that other parts refer to it by."""
        digest = hashlib.sha256(data).hexdigest()
        (self._folder / digest).write_bytes(data)
        self.sizes[digest] = len(data)
        return {"mediaType": TYPE + media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _archive(folder, epoch):
    tree = Tree()
    for path in folder.rglob("*"):
        if path.is_file():
            tree.file(str(path.relative_to(folder)), path.read_bytes())
    return tree.archive(epoch)


def write(out, name, version, config, trees, epoch):
    """Returns the digest of the image's manifest, and the bytes of all its parts.

    `trees` are (what it is, Tree), the lowest layer first. Replaces what is in `out` under these names.
    """
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    blobs = _Blobs(folder)
    layers, diffs, history = [], [], []
    for comment, tree in trees:
        archive = tree.archive(epoch)
        layers.append(blobs.add("layer.v1.tar+gzip", gzip.compress(archive, 6, mtime=0)))
        diffs.append("sha256:" + hashlib.sha256(archive).hexdigest())
        history.append({"created": utc(epoch), "created_by": "deploy/oci/build", "comment": comment})
    platform = {"architecture": debian_parts.architecture(), "os": "linux"}
    described = {**platform, "created": utc(epoch), "config": config, "history": history,
                 "rootfs": {"type": "layers", "diff_ids": diffs}}  # fmt: skip
    manifest = {
        "schemaVersion": 2,
        "mediaType": TYPE + "manifest.v1+json",
        "config": blobs.add("config.v1+json", _json(described)),
        "layers": layers,
        "annotations": config["Labels"],
    }
    entry = blobs.add("manifest.v1+json", _json(manifest))
    # Podman and skopeo read the first name, containerd and Docker the second.
    names = {"org.opencontainers.image.ref.name": f"{name}:{version}",
             "io.containerd.image.name": f"docker.io/library/{name}:{version}"}  # fmt: skip
    index = {"schemaVersion": 2, "mediaType": TYPE + "index.v1+json",
             "manifests": [{**entry, "platform": platform, "annotations": names}]}  # fmt: skip
    (folder / "index.json").write_bytes(_json(index))
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    (out / f"{name}-{version}.tar").write_bytes(_archive(folder, epoch))
    return entry["digest"], sum(blobs.sizes.values())
