#!/usr/bin/env python3
"""Measures what zeus llm gateway costs: CPU time per event and added latency beside nginx in the same run, the memory of
thousands of open streams, and what it and zeus llm sim take when idle. Then it sends random streams of every dialect through
it, compares every byte, and watches its memory. Where nginx or a simulated GPU is missing, the line says so.

usage: llm-gateway [--streams 256] [--rate 50] [--seconds 10] [--rounds 3] [--open 5000] [--random-streams 100000] [--idle 10]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("ZEUS_BUILD", pathlib.Path(__file__).resolve().parents[1]))
ZEUS = BUILD / "bin" / "zeus"
LOAD = BUILD / "bench" / "tools" / "llm_gateway_load"
RANDOM_STREAMS = BUILD / "bench" / "tools" / "llm_gateway_streams"
CONNECTIONS = 64

NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 16384; }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{upstream}; proxy_buffering off;
    proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""


def cpu_seconds(process_ids: list[int]) -> float:
    ticks = 0
    for process_id in process_ids:
        fields = pathlib.Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(process_id: int) -> int:
    return int(pathlib.Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    import socket
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


class Direct:
    """No proxy: what the load program itself adds."""
    name = "no proxy"

    def __init__(self, upstream: int, _environment, _folder):
        self.port, self.process_ids, self.processes = upstream, [], []

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.communicate()


class Nginx(Direct):
    name = "nginx"

    def __init__(self, upstream: int, environment, folder: str):
        super().__init__(upstream, environment, folder)
        self.port = free_port()
        config = pathlib.Path(folder, "nginx.conf")
        config.write_text(NGINX.format(folder=folder, port=self.port, upstream=upstream))
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        self.processes = [subprocess.Popen([nginx, "-p", folder, "-c", str(config)], stderr=subprocess.DEVNULL)]
        wait_for_port(self.port)
        children = pathlib.Path(f"/proc/{self.processes[0].pid}/task/{self.processes[0].pid}/children").read_text()
        self.process_ids = [int(child) for child in children.split()]


class Program(Direct):
    """One of our commands that listens."""

    def start(self, environment, *arguments: str) -> None:
        process = subprocess.Popen([ZEUS, *arguments, "--listen", "127.0.0.1:0"], env=environment,
                                   stdout=subprocess.PIPE, text=True)
        self.port = int(process.stdout.readline().rsplit(":", 1)[1])
        self.processes, self.process_ids = [process], [process.pid]


class Gateway(Program):
    name = "zeus llm gateway"
    arguments: list[str] = []

    def __init__(self, upstream: int, environment, folder: str, *more: str):
        super().__init__(upstream, environment, folder)
        self.start(environment, "llm", "gateway", "--upstream", f"http://127.0.0.1:{upstream}", *self.arguments, *more)


class SimulatedServer(Program):
    name = "zeus llm sim"

    def __init__(self, environment):
        super().__init__(0, environment, "")
        self.start(environment, "llm", "sim", "--model", "llama-3.1-8b", "--gpu", "0")


def wait_for_port(port: int) -> None:
    import socket
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def measure(proxy_class, environment, streams: int, rate: float, seconds: float) -> dict:
    """One run: latencies, CPU time per event, and resident bytes before and while the streams are open."""
    with tempfile.TemporaryDirectory() as folder:
        load = subprocess.Popen([LOAD, str(streams), str(rate), str(seconds)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        upstream = int(load.stdout.readline().split()[1])
        proxy = proxy_class(upstream, environment, folder)
        try:
            memory = sum(resident_bytes(process_id) for process_id in proxy.process_ids)
            load.stdin.write(f"{proxy.port}\n")
            load.stdin.flush()
            if load.stdout.readline() != "open\n":
                raise SystemExit(f"{proxy.name}: the streams did not open")
            cpu = cpu_seconds(proxy.process_ids)
            result = json.loads(load.stdout.readline())
            result["cpu"] = (cpu_seconds(proxy.process_ids) - cpu) / max(1, result["events"])
            result["bytes"] = sum(resident_bytes(process_id) for process_id in proxy.process_ids) - memory
            return result
        finally:
            load.stdin.close()
            load.wait()
            proxy.close()


def simulated_gpu() -> tuple[dict, list[str]]:
    """The environment of a simulated node, and the arguments that use its GPU."""
    environment = dict(os.environ, ZEUS_SIM_DIR=tempfile.mkdtemp(), ZEUS_ACTIVITY_DIR=tempfile.mkdtemp())
    started = subprocess.run([ZEUS, "sim", "start", "--name", "bench", "--gpus", "H100"], env=environment,
                             capture_output=True, text=True, check=False)
    script = subprocess.run([ZEUS, "sim", "env", "--name", "bench"], env=environment, capture_output=True, text=True,
                            check=False)
    if started.returncode or script.returncode:
        print(f"no simulated GPU, so tokens are counted without joules: {(started.stderr + script.stderr).strip()}")
        return dict(os.environ), []
    shell = subprocess.run(["sh", "-c", 'eval "$1" && env -0', "sh", script.stdout], env=environment,
                           capture_output=True, check=True)
    entries = shell.stdout.decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry), ["--gpus", "0"]


def print_idle(environment, seconds: float) -> None:
    """CPU time of the gateway and of the simulated server in front of which it stands, without requests."""
    server = SimulatedServer(environment)
    gateway = Gateway(server.port, environment, "")
    try:
        time.sleep(2)
        before = [cpu_seconds(program.process_ids) for program in (gateway, server)]
        time.sleep(seconds)
        for program, cpu in zip((gateway, server), before):
            used = (cpu_seconds(program.process_ids) - cpu) / seconds
            memory = resident_bytes(program.process_ids[0]) / 2**20
            print(f"{program.name}, idle: {100 * used:.2f} % of a core, {memory:.1f} MiB")
    finally:
        gateway.close()
        server.close()


def compare_streams(environment, count: int) -> bool:
    """Sends random streams through a gateway that leaves bodies as they are. False: a byte differs."""
    load = subprocess.Popen([RANDOM_STREAMS, str(count), str(CONNECTIONS), "1"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    gateway = Gateway(int(load.stdout.readline().split()[1]), environment, "", "--annotate", "none")
    try:
        load.stdin.write(f"{gateway.port}\n")
        load.stdin.flush()
        memory, result = [], {}
        while not result.get("end"):
            result = json.loads(load.stdout.readline())
            memory.append(resident_bytes(gateway.process_ids[0]) / 2**20)
        cpu = cpu_seconds(gateway.process_ids)
    finally:
        load.stdin.close()
        load.wait()
        gateway.close()
    print(f"{count} random streams, {result['kinds']} kinds, {result['bytes'] / 1e6:.1f} MB written in {result['pieces']} pieces, "
          f"{result['seconds']:.0f} s: {result['different']} differ, {result['failed']} failed")
    print(f"memory after each tenth of them: {', '.join(f'{value:.1f}' for value in memory[:10])} MiB; "
          f"{1e6 * cpu / count:.0f} us of CPU time each")
    return result["different"] == 0 and result["failed"] == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--open", type=int, default=5000)
    parser.add_argument("--random-streams", type=int, default=100_000)
    parser.add_argument("--idle", type=float, default=10, help="seconds without requests")
    options = parser.parse_args()
    environment, Gateway.arguments = simulated_gpu()
    proxies = [Direct, Gateway]
    if shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
        proxies.insert(1, Nginx)
    else:
        print("nginx is not installed (apt-get install nginx-light), so there is no comparison with it")
    runs: dict[str, list[dict]] = {proxy.name: [] for proxy in proxies}
    for _ in range(options.rounds):  # In turns: what else the machine does hits all of them.
        for proxy in proxies:
            runs[proxy.name].append(measure(proxy, environment, options.streams, options.rate, options.seconds))
    middle = {name: {key: statistics.median(run[key] for run in results) for key in results[0]}
              for name, results in runs.items()}
    base = middle[Direct.name]
    print(f"\n{options.streams} streams of {options.rate:g} events/s, {options.seconds:g} s, "
          f"medians of {options.rounds} rounds in turns\n")
    print(f"{'':18} {'CPU/event':>10} {'p50':>9} {'p99':>9} {'added p50':>10} {'added p99':>10} {'broken':>7}")
    for name, row in middle.items():
        print(f"{name:18} {1e6 * row['cpu']:7.1f} us {1e3 * row['p50']:6.3f} ms {1e3 * row['p99']:6.3f} ms "
              f"{1e3 * (row['p50'] - base['p50']):7.3f} ms {1e3 * (row['p99'] - base['p99']):7.3f} ms "
              f"{row['broken']:7.0f}")
    if Nginx.name in middle:
        ratio = middle[Gateway.name]["cpu"] / middle[Nginx.name]["cpu"]
        print(f"\nCPU per event beside nginx: {ratio:.2f} (goal: at most 1.5)")
    held = measure(Gateway, environment, options.open, 0.5, 10)
    print(f"{options.open} open streams: {held['bytes'] / options.open / 1024:.1f} kB each (goal: at most 64), "
          f"{held['broken']} broken")
    if Gateway.arguments:
        print_idle(environment, options.idle)
    same = compare_streams(environment, options.random_streams)
    subprocess.run([ZEUS, "sim", "stop", "--name", "bench"], env=environment, capture_output=True, check=False)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
