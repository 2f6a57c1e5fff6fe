#!/usr/bin/env python3
"""Some runs of a recurring job, one after the other in each thread, until this is killed.

  soak_client.py FOLDER JOB THREADS JOURNAL

FOLDER has a file per server, with its URL. What a server has answered goes into the journal, a JSON
line each, before anything else is asked: that is what must be found in the database afterwards.
"""
import glob
import http.client
import json
import os
import random
import sys
import threading
import time
import uuid

# Epochs to the target, and seconds and joules of each, by batch size.
TRUTH = {32: (7, 90.0, 20000.0), 64: (5, 60.0, 15000.0), 128: (4, 45.0, 13000.0),
         256: (6, 40.0, 12500.0)}
TARGET = 0.9


class Api:
    """Asks any of the servers until one answers. Every call may be repeated."""

    def __init__(self, folder):
        self.folder = folder
        self.connection = None

    def _connect(self):
        with open(random.choice(glob.glob(os.path.join(self.folder, "server-*")))) as file:
            host, port = file.read().strip().split("://")[1].rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=20)

    def _ask(self, method, path, body):
        if self.connection is None:
            self._connect()
        self.connection.request(method, path, body=body and json.dumps(body))
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()

    def insist(self, method, path, body=None):
        while True:
            try:
                status, text = self._ask(method, path, body)
            except (OSError, http.client.HTTPException, IndexError, ValueError):
                status, text = 503, ""
            if status < 300:
                return json.loads(text)
            if status != 503:
                raise AssertionError(f"{method} {path} {body}: {status} {text}")
            if self.connection:
                self.connection.close()
            self.connection = None
            time.sleep(random.uniform(0.01, 0.1))


class Journal:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, **line):
        os.write(self.file, (json.dumps(line) + "\n").encode())


def report(epoch, batch_size):
    needed, seconds, joules = TRUTH[batch_size]
    return {"epoch": epoch, "time_seconds": epoch * seconds * random.uniform(1.0, 1.001),
            "energy_joules": epoch * joules * random.uniform(1.0, 1.001),
            "metric": TARGET if epoch >= needed else TARGET * epoch / (needed + 1)}


def run_trial(api, journal, job, recurrence):
    """The recurrence that should go on; None: it is done, or nobody is there any more."""
    asked = {"request_id": uuid.uuid4().hex}
    if recurrence is not None:
        asked["recurrence"] = recurrence
    trial = api.insist("POST", f"/v1/jobs/{job}/trials", asked)["trial"]
    journal.add(started=trial["number"], request=asked["request_id"],
                batch_size=trial["batch_size"])
    path = f"/v1/jobs/{job}/trials/{trial['number']}"
    for epoch in range(1, 20):
        if random.random() < 0.02:
            return None  # It dies, and nobody is told.
        body = report(epoch, trial["batch_size"])
        answer = api.insist("POST", path + "/reports", body)
        if random.random() < 0.1:
            again = api.insist("POST", path + "/reports", body)
            assert again["stop"] == answer["stop"], (answer, again)
        if answer["stop"]:
            ended = answer["trial"]
            journal.add(ended=ended["number"], status=ended["status"], epochs=ended["epochs"],
                        cost=ended["cost_joules"])
            return trial["recurrence"] if answer["retry"] else None
        if random.random() < 0.05:
            api.insist("POST", path + "/heartbeat")
    ended = api.insist("POST", path + "/end", {"status": "failed", "reason": "gave up"})
    journal.add(ended=ended["number"], status=ended["status"], epochs=ended["epochs"],
                cost=ended["cost_joules"])
    return None


def run_for_ever(folder, job, journal):
    api = Api(folder)
    recurrence = None
    try:
        while True:
            recurrence = run_trial(api, journal, job, recurrence)
    except Exception as error:  # pylint: disable=broad-except
        journal.add(error=repr(error))


def main():
    folder, job, threads, path = sys.argv[1:]
    journal = Journal(path)
    running = [threading.Thread(target=run_for_ever, args=(folder, job, journal))
               for _ in range(int(threads))]
    for thread in running:
        thread.start()


if __name__ == "__main__":
    main()
