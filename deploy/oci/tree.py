"""Files of an image's layer, and the tar archive of them, whose bytes depend on nothing else."""
import io
import os
import posixpath
import tarfile


class Tree:
    """Paths are relative to the root of the image. Everything is root's unless an owner is given."""

    def __init__(self):
        self._entries = {}

    def _add(self, path, kind, mode, owner=0, data=b"", target=""):
        path = path.strip("/")
        if path:
            self._parents(path)
            self._entries[path] = (kind, mode, owner, data, target)

    def _parents(self, path):
        parent = posixpath.dirname(path)
        if parent and parent not in self._entries:
            self.folder(parent)

    def folder(self, path, mode=0o755, owner=0):
        self._add(path, tarfile.DIRTYPE, mode, owner)

    def file(self, path, data, mode=0o644):
        self._add(path, tarfile.REGTYPE, mode, data=data.encode() if isinstance(data, str) else data)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def copy(self, path):
        """A file or link of this machine, under its own name."""
        if os.path.islink(path):
            self.link(path, os.readlink(path))
            return
        with open(path, "rb") as file:
            self.file(path, file.read(), os.stat(path).st_mode & 0o755)

    def size(self):
        return sum(len(entry[3]) for entry in self._entries.values())

    def archive(self, epoch):
        """Sorted by name, so that a folder comes before what is in it."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, (kind, mode, owner, data, target) in sorted(self._entries.items()):
                entry = tarfile.TarInfo(path)
                entry.type, entry.mode, entry.mtime, entry.linkname = kind, mode, epoch, target
                entry.uid = entry.gid = owner
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()
