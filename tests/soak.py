#!/usr/bin/env python3
"""64 clients at once on one job, while clients and servers are killed at random moments.

Afterwards nothing may be lost or counted twice, nothing may be stuck, and what the job believes must
be what its events make. See --help.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import postgres_testing
from serve_testing import Server, ZEUS

PROCESSES = 16
THREADS = 4
JOB = {"id": "soak", "batch_sizes": [32, 64, 128, 256], "default_batch_size": 256,
       "max_power_watts": 300, "gpu_model": "V100", "target_metric": 0.9, "lease_seconds": 4}
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak_client.py")


class Crowd:
    """The servers and the clients, each of which may be killed and comes back."""

    def __init__(self, folder, database, servers, policy):
        self.folder = folder
        self.database = database
        self.servers = [None] * servers
        self.clients = [None] * PROCESSES
        self.journals = 0
        self.kills = {"servers": 0, "clients": 0}
        self.policy = policy

    def start(self):
        for index in range(len(self.servers)):
            self.start_server(index)
        made = self.servers[0].ask("POST", "/v1/jobs", JOB | {"policy": self.policy})
        if made.status != 201:
            raise AssertionError(made.text)
        for index in range(PROCESSES):
            self.start_client(index)

    def start_server(self, index):
        self.servers[index] = Server("--database", self.database, "--no-access-log")
        path = os.path.join(self.folder, f"server-{index}")
        with open(path + ".new", "w") as file:
            file.write(self.servers[index].url)
        os.rename(path + ".new", path)

    def start_client(self, index):
        self.journals += 1
        journal = os.path.join(self.folder, f"journal-{self.journals}")
        self.clients[index] = subprocess.Popen(
            [sys.executable, "-B", CLIENT, self.folder, JOB["id"], str(THREADS), journal])

    def kill_one(self):
        if random.random() < 0.25:
            index = random.randrange(len(self.servers))
            self.servers[index].kill()
            self.start_server(index)
            self.kills["servers"] += 1
        else:
            index = random.randrange(PROCESSES)
            self.end_client(index)
            self.start_client(index)
            self.kills["clients"] += 1

    def end_client(self, index):
        self.clients[index].send_signal(signal.SIGKILL)
        self.clients[index].wait()

    def end_clients(self):
        for index, client in enumerate(self.clients):
            if client is not None:
                self.end_client(index)
        self.clients = []

    def end(self):
        self.end_clients()
        for server in self.servers:
            if server is not None:
                server.kill()

    def journal_of(self, path):
        if not os.path.exists(path):
            return
        with open(path) as file:
            for line in file:
                if line.endswith("\n"):  # Else it was killed while writing.
                    yield json.loads(line)

    def journal(self):
        for number in range(1, self.journals + 1):
            yield from self.journal_of(os.path.join(self.folder, f"journal-{number}"))

    def get(self, path):
        answer = self.servers[0].ask("GET", f"/v1/jobs/{JOB['id']}{path}")
        if answer.status != 200:
            raise AssertionError(f"{path}: {answer.status} {answer.text}")
        return answer.json

    def pages(self, what):
        after = 0
        while after is not None:
            page = self.get(f"/{what}?after={after}&limit=1000")
            yield from page[what]
            after = page["next"]


class Check:
    """Collects what is wrong."""

    def __init__(self):
        self.wrong = []

    def that(self, right, what):
        if not right:
            self.wrong.append(what)


def check_trials(check, crowd, job, trials):
    check.that([trial["number"] for trial in trials] == list(range(1, job["trials"] + 1)),
               "the numbers of the trials have gaps")
    by_number = {trial["number"]: trial for trial in trials}
    trial_of_request = {}
    for line in crowd.journal():
        check.that("error" not in line, f"a client failed: {line}")
        if "started" in line:
            trial = by_number.get(line["started"], {})
            check.that(trial.get("batch_size") == line["batch_size"], f"lost: {line}")
            first = trial_of_request.setdefault(line["request"], line["started"])
            check.that(first == line["started"], f"one request, two trials: {line}")
        elif "ended" in line:
            trial = by_number.get(line["ended"], {})
            found = (trial.get("status"), trial.get("epochs"), trial.get("cost_joules"))
            check.that(found == (line["status"], line["epochs"], line["cost"]),
                       f"lost: {line}, but {trial}")
    numbers = list(trial_of_request.values())
    check.that(len(numbers) == len(set(numbers)), "two requests, one trial")
    return len(numbers)


def check_events(check, job, trials, events):
    check.that([event["sequence"] for event in events] == list(range(1, len(events) + 1)),
               "the numbers of the events have gaps")
    # More may have come since the events were asked for: the last runs expire.
    check.that(len(events) <= job["events"], "there are more events than the job knows of")
    started = [event["trial"] for event in events if event["kind"] == "trial_started"]
    check.that(started == [trial["number"] for trial in trials],
               "a trial was started never or twice")
    ended = [event["trial"] for event in events if event["kind"] == "trial_ended"]
    check.that(len(ended) == len(set(ended)), "a trial was counted twice")
    final = {trial["number"] for trial in trials
             if trial["status"] in ("converged", "stopped", "failed")}
    check.that(set(ended) == final, "a trial has ended without having been counted")


def check_not_stuck(check, crowd):
    """All clients are dead: their places become free, and a new run gets one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        busy = [trial for status in ("dispatched", "reporting")
                for trial in crowd.get(f"/trials?status={status}")["trials"]]
        if not busy:
            break
        time.sleep(0.2)
    check.that(not busy, f"trials hold their places for ever: {busy[:3]}")
    crowd.journals += 1
    journal = os.path.join(crowd.folder, f"journal-{crowd.journals}")
    client = subprocess.Popen([sys.executable, "-B", CLIENT, crowd.folder, JOB["id"], "1", journal])
    crowd.clients = [client]
    while time.monotonic() < deadline and not any(
            "ended" in line for line in crowd.journal_of(journal)):
        time.sleep(0.05)
    check.that(any("ended" in line for line in crowd.journal_of(journal)),
               "no run gets through any more")
    crowd.end_clients()


def snapshot(crowd):
    """The job, its trials and its events of one moment. Requests of clients that were killed may still
    wait in a busy server and begin trials between two answers: then everything is asked for again."""
    deadline = time.monotonic() + 60
    while True:
        before = crowd.get("")["trials"]
        trials = list(crowd.pages("trials"))
        events = list(crowd.pages("events"))
        job = crowd.get("")
        if job["trials"] == before or time.monotonic() > deadline:
            return job, trials, events


def verify(crowd):
    check = Check()
    crowd.end_clients()
    check_not_stuck(check, crowd)
    job, trials, events = snapshot(crowd)
    answered = check_trials(check, crowd, job, trials)
    check_events(check, job, trials, events)
    replay = subprocess.run([ZEUS, "job", "check", JOB["id"], "--database", crowd.database],
                            capture_output=True, text=True)
    check.that(replay.returncode == 0, replay.stdout + replay.stderr)
    print(f"{crowd.kills['clients']} clients and {crowd.kills['servers']} servers killed; "
          f"{answered} trials answered, {len(trials)} stored, {len(events)} events")
    print(replay.stdout.strip())
    return check.wrong


def soak(database, servers, seconds, policy):
    with tempfile.TemporaryDirectory(prefix="zeus-soak-") as folder:
        crowd = Crowd(folder, database or "sqlite://" + os.path.join(folder, "zeus.db"), servers,
                      policy)
        try:
            crowd.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(random.uniform(0.1, 0.7))
                crowd.kill_one()
            return verify(crowd)
        finally:
            crowd.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="for each database (%(default)s)")
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    parser.add_argument("--policy", default="knowledge_gradient")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32),
                        help="of who is killed when; clients draw their own numbers")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    random.seed(options.seed)
    wrong = []
    if options.only != "sqlite":
        if postgres_testing.programs() is None:
            print("SKIPPED: PostgreSQL is not here: apt-get install postgresql-15")
        else:
            print("two servers on one PostgreSQL:")
            database = postgres_testing.PostgresServer()
            try:
                wrong += soak(database.url, 2, 60 * options.minutes, options.policy)
            finally:
                database.stop()
    if options.only != "postgresql":
        print("one server on SQLite:")
        wrong += soak(None, 1, 60 * options.minutes, options.policy)
    for what in wrong[:20]:
        print("WRONG:", what)
    print("failed" if wrong else "all is well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
