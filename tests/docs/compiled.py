"""Runs blocks that no interpreter runs: C++ is compiled, YAML is checked by the program that would read it."""

import re
import shutil
import subprocess

import pages

# The keys at the top of each program's configuration.
READERS = {
    "tacho-collector": {"listen", "storage", "ingest", "query", "metrics", "log", "quotas", "limits", "admin", "auth",
                        "conditions", "ui", "interop", "bucket", "cluster", "cost", "forward"},
    "tacho-agent": {"collector", "identity", "spool", "sources", "log"},
}
COMPILE = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror"]


def run_cpp(session, block):
    """Its includes, then `first` at file scope, then the rest as main()."""
    lines = block.text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if not line.startswith("#include")]
    source = session.scratch / f"line-{block.line}.cc"
    source.write_text("\n".join(["#include <cstdint>", *includes, block.first, "int main() {", *body, "}\n"]))
    program = source.with_suffix("")
    libraries = [session.clone / "build/release" / name for name in ("client/libtacho_client.a",
                                                                      "proto/libtacho_crc32c.a")]
    build = subprocess.run(
        [*COMPILE, "-I", session.clone, source, "-o", program, *libraries], capture_output=True, text=True, check=False)
    if build.returncode != 0:
        raise pages.Mistake(f"{block.where}: it does not compile:\n{build.stderr}")
    _run(session, block, [program])


def run_yaml(session, block):
    keys = set(re.findall(r"^(\w+):", block.text, re.MULTILINE))
    file = session.scratch / f"line-{block.line}.yaml"
    file.write_text(block.text)
    if "scrape_configs" in keys:
        return _run(session, block, ["promtool", "check", "config", "--syntax-only", file])
    reader = next((name for name, known in READERS.items() if keys and keys <= known), None)
    if reader is None:
        raise pages.Mistake(f"{block.where}: no program reads the keys {sorted(keys)}; say 'not run: REASON' in a"
                            " comment before it")
    _run(session, block, [reader, "--config", file, "--check-config"])


def _run(session, block, words):
    rings = session.scratch / "rings"
    rings.mkdir(exist_ok=True)
    environment = {**session.environment, "TACHO_RING_DIR": str(rings), "PATH": session.programs_path()}
    if shutil.which(str(words[0]), path=environment["PATH"]) is None:
        raise pages.Mistake(f"{block.where}: there is no {words[0]}; deploy/packages.sh test provides it")
    done = subprocess.run(words, cwd=session.clone, env=environment, capture_output=True, text=True, check=False,
                          timeout=60)
    if done.returncode != 0:
        raise pages.Mistake(f"{block.where}: status {done.returncode}\n{done.stdout}{done.stderr}")


LANGUAGES = {"cpp": run_cpp, "yaml": run_yaml}
