"""Certificates made with the openssl program, as an operator makes them."""
import os
import subprocess


def _openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"openssl {' '.join(arguments)}:\n{done.stderr}")


class Authority:
    """An authority and what it has signed, as files in a directory."""

    def __init__(self, directory, name="ca"):
        self.directory = directory
        self.name = name
        self.certificate = self._path(name + ".crt")
        self._key = self._path(name + ".key")
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate,
        )  # fmt: skip

    def _path(self, name):
        return os.path.join(self.directory, name)

    def sign(self, common_name, names="DNS:localhost,IP:127.0.0.1", days=1, file=None):
        """(certificate, key) paths. A certificate of -1 days has expired."""
        base = self._path(file or f"{self.name}-{common_name}")
        request, extensions = base + ".csr", base + ".ext"
        _openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={common_name}", "-keyout", base + ".key.new", "-out", request,
        )  # fmt: skip
        with open(extensions, "w") as out:
            out.write(f"subjectAltName={names}\n")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
            "-CAcreateserial", "-days", str(days), "-extfile", extensions,
            "-out", base + ".crt.new",
        )  # fmt: skip
        # One after the other, as most tools that renew certificates do it.
        os.replace(base + ".crt.new", base + ".crt")
        os.replace(base + ".key.new", base + ".key")
        return base + ".crt", base + ".key"


def read(path):
    with open(path, "rb") as file:
        return file.read()
