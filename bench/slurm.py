#!/usr/bin/env python3
"""Measures what Zeus costs a Slurm cluster, on virtual nodes with simulated GPUs: the hooks of a job, jobs per minute with the
plugins and without, and how soon a limit is gone after its job has ended in different ways.

usage: slurm [--jobs 200] [--queue 100]
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path("@PROJECT_SOURCE_DIR@")
BUILD = pathlib.Path(os.environ.get("ZEUS_BUILD", pathlib.Path(__file__).resolve().parents[1]))
os.environ.setdefault("ZEUS_BINARY", str(BUILD / "bin" / "zeus"))
sys.path.insert(0, str(SOURCE / "tests"))

import slurm_testing  # noqa: E402  The tests' cluster is this benchmark's, too.

HOOKS = BUILD / "bench" / "tools" / "slurm_hooks"
HIGHEST, LIMIT = 250, 150  # Watts of a V100, and of the jobs here.


def until(condition, what):
    """Seconds until the condition holds."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + 120:
            sys.exit(f"slurm: {what}")
        time.sleep(0.005)
    return time.monotonic() - begin


def run_hooks(cluster, jobs):
    done = subprocess.run([HOOKS, cluster.socket_path("n1"), str(jobs), "0,1"], text=True, capture_output=True, check=True)
    return json.loads(done.stdout)


def run_queue(count, plugins):
    """Jobs per minute of a queue of short jobs on two nodes."""
    cluster = slurm_testing.Cluster(nodes=2, gpus="4xV100", plugins=plugins)
    try:
        begin = time.monotonic()
        cluster.run("sbatch", f"--array=1-{count}", "--gres=gpu:1", "--output=/dev/null", "--wrap=true", timeout=120)
        until(lambda: not cluster.run("squeue", "-h").stdout.strip(), "the queue does not end")
        seconds = time.monotonic() - begin
        states = set(cluster.node_states().values())
        if states != {"idle"}:
            sys.exit(f"slurm: nodes are {states}")
        return count / seconds * 60
    finally:
        cluster.stop()


def time_to_baseline(cluster, kill):
    """Seconds from the end of a job, however it comes, until its limit is gone."""
    begun = pathlib.Path(cluster.path("tmp-n1", "begun"))
    begun.unlink(missing_ok=True)
    job = cluster.submit(f"touch {begun}; exec sleep 1000", "-w", "n1", "--gres=gpu:1", f"--zeus-power-limit={LIMIT}")
    cluster.await_state(job, "RUNNING")
    until(lambda: LIMIT in cluster.limits("n1"), "the limit is not set")
    until(lambda: "batch" in cluster.job_record("n1", job)["steps"], "the step is not known")
    until(begun.exists, "the script does not begin")  # A signal that comes before it is lost.
    kill(job)
    seconds = until(lambda: set(cluster.limits("n1")) == {HIGHEST}, "the limit stays")
    if cluster.keeper.ended(cluster.pids["slurmd-n1"]):
        cluster.start_slurmd("n1")
    cluster.run("scancel", str(job), check=False)
    cluster.await_end(job)
    return seconds


def ends(cluster):
    def kill_stepd(job):
        for pid in cluster.stepds(job):
            os.kill(pid, signal.SIGKILL)

    def kill_zeusd(job):
        cluster.kill("zeusd-n1")
        cluster.run("scancel", str(job))
        cluster.await_end(job)
        cluster.start_zeusd("n1")

    def kill_slurmd(job):
        cluster.kill("slurmd-n1")
        for pid in cluster.stepds(job):  # So nothing is left that could run the epilog.
            os.kill(pid, signal.SIGKILL)

    def kill_slurmctld(job):
        # It would forget a job that it has not written yet.
        running = time.time()
        cluster.run("scontrol", "update", f"jobid={job}", "comment=saved")
        until(lambda: os.path.getmtime(cluster.path("state", "job_state")) > running, "slurmctld does not save its state")
        cluster.kill("slurmctld")
        cluster.start_slurmctld()
        until(lambda: cluster.run("scancel", str(job), check=False).returncode == 0, "slurmctld does not come back")

    return {"the job is cancelled": lambda job: cluster.run("scancel", str(job)),
            "slurmstepd is killed": kill_stepd,
            "zeusd is killed, the job cancelled, zeusd started": kill_zeusd,
            "slurmd and slurmstepd are killed": kill_slurmd,
            # The last, as a slurmctld that was started again gives out no GPUs for a while.
            "slurmctld is killed and started, the job cancelled": kill_slurmctld}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--queue", type=int, default=100)
    options = parser.parse_args()
    reason = slurm_testing.missing(plugins=True)
    if reason:
        sys.exit(f"slurm: skipped: {reason}")
    # One GPU gets the limits of all jobs here, faster than a user may set them.
    rates = "[defaults]\nsets_per_second = { gpu_power_limit = 1000 }\n"
    cluster = slurm_testing.Cluster(nodes=1, gpus="4xV100", plugins=True, configuration=rates)
    try:
        figures = run_hooks(cluster, options.jobs)
        print(f"{'hook, ms':44} {'p50':>8} {'p99':>8}   (goal: 20 for each job and node)")
        names = {"nothing": "a child process that does nothing", "prolog": "prolog with a power limit",
                 "step": "a step begins and ends", "epilog": "epilog"}
        for name, words in names.items():
            print(f"{words:44} {figures[name]['p50']:8.2f} {figures[name]['p99']:8.2f}")
        both = sum(figures[name]["p50"] for name in ("prolog", "step", "epilog"))
        print(f"{'all of a job':44} {both:8.2f}")
        print(f"\n{'the limit is gone after, s':60}   (goal: 15, normally 1)")
        for words, kill in ends(cluster).items():
            print(f"{words:60} {time_to_baseline(cluster, kill):8.2f}")
    finally:
        cluster.stop()
    with_plugins, without = run_queue(options.queue, True), run_queue(options.queue, False)
    print(f"\n{'jobs per minute on two nodes':44} {with_plugins:8.0f}   (goal: 100)\n{'without the plugins':44} {without:8.0f}"
          f"\n{'ratio':44} {with_plugins / without:8.2f}")


if __name__ == "__main__":
    main()
