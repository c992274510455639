#!/usr/bin/python3
"""Becomes a process in a container, as a container runtime does it. The argument is JSON such as

  {"root": folder, "mounts": [[source, target, read-only]], "uid": 1, "gid": 1, "groups": [],
   "capabilities": ["CHOWN"], "writable": false, "env": {}, "command": ["/bin/program"]}

Needs root, and a mount namespace of its own (unshare --mount).
"""
import ctypes
import json
import os
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "SYS_PTRACE": 19}


def prctl(option, value):
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} {value}")


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def main():
    spec = json.loads(sys.argv[1])
    root = spec["root"]
    mount("--bind", root, root)
    for folder in ("proc", "sys", "dev"):
        mount("--rbind", "/" + folder, f"{root}/{folder}")
    for source, target, read_only in spec["mounts"]:
        mount("--bind", source, root + target)
        if read_only:
            mount("-o", "remount,bind,ro", root + target)
    if not spec["writable"]:
        mount("-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir("/")
    os.setgroups(spec["groups"])
    os.setgid(spec["gid"])
    kept = {CAPABILITIES[name] for name in spec["capabilities"]}
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for capability in range(last + 1):
        if capability not in kept:
            prctl(PR_CAPBSET_DROP, capability)
    os.setuid(spec["uid"])
    os.umask(0o022)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, 9)
    command = spec["command"]
    program = command[0] if "/" in command[0] else "/usr/bin/" + command[0]
    os.execve(program, command, {"PATH": "/usr/bin", **spec["env"]})


if __name__ == "__main__":
    main()
