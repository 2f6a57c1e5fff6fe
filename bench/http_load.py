#!/usr/bin/env python3
"""Measures what `zeus serve` does per second: predictions, reports and reads, by 1 and by 64 clients.

Starts its own servers, on SQLite and on a PostgreSQL of its own, in a temporary directory whose
disk is measured in the same run. Load comes from wrk. Run it as ./dev bench http [--seconds N].
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ZEUS = os.environ.get("ZEUS_BINARY",
                      str(pathlib.Path(__file__).resolve().parent.parent / "bin" / "zeus"))
POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")
JOBS = 64
TRIALS_PER_JOB = 16

# wrk asks request() for every request; done() sums up. Each connection takes the next job, so that
# clients work on jobs of their own, and reports go round the trials that were begun before.
SCRIPT = """
local count = 0
local epochs = {}
local headers = {["Content-Type"] = "application/json"}
function request()
  count = count + 1
  local job = count %% %(jobs)d
  local kind = "%(kind)s"
  if kind == "predict" then
    return wrk.format("POST", "/v1/jobs/job-" .. job .. "/trials", headers, "{}")
  elseif kind == "report" then
    local turn = count %% (%(jobs)d * %(trials)d)
    local trial = math.floor(turn / %(jobs)d) + 1
    local epoch = (epochs[turn] or %(epoch)d) + 1
    epochs[turn] = epoch
    return wrk.format("POST", "/v1/jobs/job-" .. job .. "/trials/" .. trial .. "/reports", headers,
      string.format('{"epoch":%%d,"time_seconds":%%d,"energy_joules":%%d,"metric":0.1}',
                    epoch, epoch * 10, epoch * 1000))
  elseif kind == "job" then
    return wrk.format("GET", "/v1/jobs/job-" .. job)
  elseif kind == "arms" then
    return wrk.format("GET", "/v1/jobs/job-" .. job .. "/arms")
  else
    return wrk.format("GET", "/healthz")
  end
end
function done(summary, latency)
  io.write(string.format('\\nRESULT {"requests":%%d,"microseconds":%%d,"bad":%%d,"p50":%%d,"p99":%%d}\\n',
    summary.requests, summary.duration,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


def syncs_per_second(folder, seconds=2):
    """How often the disk takes four kilobytes for good, one after the other.

    Into a file that has its size already, as the databases write their logs: growing a file costs
    the disk more, and a ratio to that would flatter us.
    """
    blocks, block = 2048, b"x" * 4096
    with open(folder / "sync", "wb", buffering=0) as file:
        file.write(block * blocks)
        os.fsync(file.fileno())
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            os.pwrite(file.fileno(), block, count % blocks * len(block))
            os.fdatasync(file.fileno())
            count += 1
    os.unlink(folder / "sync")
    return count / seconds


@contextlib.contextmanager
def postgres(folder):
    """A server of our own; it refuses to be root."""
    folder.mkdir()
    user = []
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = ["runuser", "-u", "postgres", "--"]

    def control(*arguments):
        subprocess.run([*user, *map(str, arguments)], check=True, cwd="/", capture_output=True)

    control(POSTGRES / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "-E",
            "UTF8", "--locale=C")
    control(POSTGRES / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o",
            f"-c listen_addresses='' -c max_connections=200 -k {folder}", "start")
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        control(POSTGRES / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")


@contextlib.contextmanager
def server(database, log):
    process = subprocess.Popen([ZEUS, "serve", "--listen", "127.0.0.1:0", "--database", database,
                                "--access-log", log], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit(1)  # It has said why.
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def prepare(url):
    """Jobs whose trials go on for ever, and trials to report for."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def post(path, body):
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        if response.status != 201:
            sys.exit(f"{path}: {response.status} {text.decode()}")

    for job in range(JOBS):
        post("/v1/jobs", {"id": f"job-{job}", "batch_sizes": [32, 64, 128, 256],
                          "default_batch_size": 64, "policy": "zeus", "max_power_watts": 250,
                          "gpu_model": "V100", "beta": None, "max_epochs": 1_000_000_000,
                          "target_metric": 0.9})
        for _ in range(TRIALS_PER_JOB):
            post(f"/v1/jobs/job-{job}/trials", {})
    connection.close()


def load(url, kind, clients, seconds, folder, epoch=0):
    script = folder / "wrk.lua"
    script.write_text(SCRIPT % {"kind": kind, "jobs": JOBS, "trials": TRIALS_PER_JOB,
                                "epoch": epoch})
    done = subprocess.run(
        ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s", "-s", str(script), url],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout.split("RESULT ")[1])


def measure(name, url, seconds, folder):
    for clients in (1, 64):
        for kind in ("predict", "report", "job", "arms", "healthz"):
            # A busy disk changes from second to second: it is measured next to what it is for.
            writes = kind in ("predict", "report")
            syncs = syncs_per_second(folder) if writes else None
            # Reports of the second round go on where those of the first cannot have been.
            result = load(url, kind, clients, seconds, folder, epoch=clients * 1_000_000)
            rate = result["requests"] / result["microseconds"] * 1e6
            ratio = f"{syncs:>6.0f}/s{rate / syncs:>6.1f}x" if writes else " " * 15
            bad = f"  {result['bad']} BAD" if result["bad"] else ""
            print(f"{name:<11}{clients:>3} {kind:<8}{rate:>8.0f}/s{ratio}"
                  f"{result['p50'] / 1000:>9.2f} ms{result['p99'] / 1000:>9.2f} ms{bad}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory(prefix="zeus-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print("database  clients request     rate    syncs  ratio      p50         p99")
        if options.only != "postgresql":
            with server(f"sqlite://{folder}/zeus.db", f"{folder}/log") as url:
                prepare(url)
                measure("sqlite", url, options.seconds, folder)
        if options.only != "sqlite":
            with postgres(folder / "postgres") as database:
                with server(database, f"{folder}/log") as url:
                    prepare(url)
                    measure("postgresql", url, options.seconds, folder)
        print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
