"""What a collector has stored of some of the agents of tests/bench/fleet, asked with tachoctl."""

import json
import subprocess

HOSTS_PER_JOB = 50  # As tests/bench/agents/row_source.h has it.
METRIC = "chip_duty_cycle"  # In every layout, however narrow.


def look_up(sent, address, options):
    """`sent` is (agent, messages) pairs. Compares the rows of each agent's first layout with what
    is stored. Steps rather than times are counted: no two rows of a layout share one."""
    program = options.build / "client/ctl/tachoctl"
    result = {"right": 0, "wrong": [], "not_checked": ""}
    if options.token_file or not program.exists():
        result["not_checked"] = "tachoctl cannot ask this collector, or is not built"
        return result
    for agent, messages in sent:
        rows = -(-messages // options.layouts) * options.rows
        stored = stored_rows(program, address, agent, options.layouts)
        if stored == rows:
            result["right"] += 1
        else:
            result["wrong"].append({"agent": agent, "sent": rows, "stored": stored})
    return result


def stored_rows(program, address, agent, layouts):
    job = f"fleet-{agent // HOSTS_PER_JOB:03d}"
    task = agent % HOSTS_PER_JOB * layouts
    done = subprocess.run(
        [program, "query", job, METRIC, "-a", address, "-m", f"task={task}", "-m", "chip=0",
         "-m", f"host=host-{agent:06d}", "--by", "step", "-o", "json", "--points", "1"],
        capture_output=True, text=True, check=False)
    if done.returncode == 1 and "no " in done.stderr.lower():
        return 0
    if done.returncode != 0:
        raise RuntimeError(f"tachoctl query {job}: {done.stderr.strip()}")
    series = json.loads(done.stdout)["series"]
    return sum(sample["count"] for one in series for sample in one["samples"])
