"""What programs need of the Debian that they were built on: libraries, certificates, names of packages."""
import glob
import os
import re
import subprocess
import tempfile


def _run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        raise SystemExit(f"oci: no {command[0]}. Build images on Debian 12, with deploy/packages.sh build")


def _with_links(path):
    """The path below real directories (/lib is a link to /usr/lib), and what its links lead to."""
    while True:
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        yield path
        if not os.path.islink(path):
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))


def closure(programs):
    """Paths of the dynamic loader and all libraries that the programs load at their start."""
    found = set()
    for program in programs:
        listed = _run("ldd", str(program))
        if listed.returncode != 0:
            raise SystemExit(f"oci: ldd {program}: {(listed.stderr or listed.stdout).strip()}")
        for missing in re.findall(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE):
            raise SystemExit(f"oci: {program} needs {missing}, which is not installed: deploy/packages.sh build")
        for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed.stdout, re.MULTILINE):
            found.update(_with_links(path))
    return found


def of_libc(names, paths):
    """Paths of libraries that are beside libc, which is among the paths."""
    (libc,) = [path for path in paths if os.path.basename(path) == "libc.so.6"]
    beside = [os.path.join(os.path.dirname(libc), name) for name in names]
    return {path for library in beside for path in _with_links(library)}


def owners(paths):
    """Names of the packages that the files belong to."""
    # Packages list a path as it was before /lib became a link.
    names = {path: {path, re.sub(r"^/usr(/s?bin|/lib)", r"\1", path)} for path in paths}
    listed = _run("dpkg-query", "--search", *sorted(set().union(*names.values()))).stdout
    of_path = {}
    for line in listed.splitlines():
        package, _, path = line.rpartition(": ")
        if not package.startswith("diversion "):
            of_path[path] = package.split(",")[0].split(":")[0]
    # A library's links are sometimes made by ldconfig and belong to nobody.
    lost = [path for path in paths if not names[path] & set(of_path) and not os.path.islink(path)]
    if lost:
        raise SystemExit(f"oci: {' '.join(sorted(lost))}: of no Debian package, so the list of contents would"
                         " lack it. Link with Debian's libraries")  # fmt: skip
    return set(of_path.values())


def add_base(tree):
    """Adds certificates of authorities and the name of the system. Returns their packages."""
    # The bundle in /etc may have this machine's own authorities.
    certificates = sorted(glob.glob("/usr/share/ca-certificates/mozilla/*.crt"))
    if not certificates:
        raise SystemExit("oci: no /usr/share/ca-certificates/mozilla: install the package ca-certificates")
    bundle = b""
    for path in certificates:
        with open(path, "rb") as file:
            bundle += file.read().rstrip(b"\n") + b"\n"
    tree.file("etc/ssl/certs/ca-certificates.crt", bundle)
    tree.copy("/usr/lib/os-release")
    tree.link("etc/os-release", "../usr/lib/os-release")
    # NVIDIA's container runtime looks for it to learn where libraries are.
    tree.copy("/etc/debian_version")
    return {"ca-certificates", "base-files"}


def add_notices(tree, packages):
    """Licences, and what scanners for vulnerabilities read, in the place of images without dpkg."""
    for package in packages:
        notice = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(notice):
            with open(notice, "rb") as file:
                tree.file(notice, file.read())
        tree.file(f"var/lib/dpkg/status.d/{package}", _run("dpkg-query", "--status", package).stdout)


def versions(packages):
    """[(name, version, architecture, source package)], in order."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\n"
    listed = _run("dpkg-query", "--show", "--showformat", form, *sorted(packages)).stdout
    # A package may be installed for several architectures.
    return sorted({tuple(line.split("\t")) for line in listed.splitlines()})


def architecture():
    return _run("dpkg", "--print-architecture").stdout.strip()


def stripped(program):
    """The program's bytes without symbols for debuggers."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "program")
        told = _run("strip", "--strip-unneeded", "-o", target, str(program))
        if told.returncode != 0:
            raise SystemExit(f"oci: strip {program}: {told.stderr.strip()}")
        with open(target, "rb") as file:
            return file.read()
