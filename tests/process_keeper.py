#!/usr/bin/env python3
"""Processes that end with whoever asked for them, whatever becomes of them in between.

A Keeper is a process of its own that starts programs on request. Daemons that lose their parents become its children (it is their
"subreaper"), so nothing that it started escapes. When its standard input ends, because the test asked for it or died, it kills all of
them, removes the files that it was told to remove, and ends.
"""

import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36
# A Ctrl-C is for the test, which then ends the keeper. Programs that it starts do not ignore these.
IGNORED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE]


class Keeper:
    """The test's end: starts the process that keeps the others."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def _ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def start(self, command, environment, log):
        """Starts a program whose output is appended to `log`: its process id."""
        return self._ask(start=list(command), environment=environment, log=log)["pid"]

    def ended(self, pid):
        """Whether a process that it started has ended."""
        return self._ask(ended=pid)["ended"]

    def remove(self, *patterns):
        """Folders, perhaps with wildcards, that are removed when all processes have ended."""
        self._ask(remove=list(patterns))

    def stop(self):
        """Returns when all processes are gone."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class _Kept:
    """The other end."""

    def __init__(self):
        self.gone = set()
        self.patterns = []

    def reap(self, *_):
        try:
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.gone.add(pid)
        except ChildProcessError:
            pass

    def start(self, request):
        command = request["start"]
        program = shutil.which(command[0], path=request["environment"].get("PATH", os.defpath))
        if program is None:
            return {"error": f"there is no program {command[0]}"}
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                   (os.POSIX_SPAWN_DUP2, 1, 2)]
        return {"pid": os.posix_spawn(program, command, request["environment"], file_actions=actions, setsid=True,
                                      setsigmask=[], setsigdef=IGNORED)}

    def answer(self, request):
        if "start" in request:
            return self.start(request)
        if "ended" in request:
            return {"ended": request["ended"] in self.gone}
        self.patterns += request["remove"]
        return {}

    def serve(self):
        for line in sys.stdin:
            print(json.dumps(self.answer(json.loads(line))), flush=True)

    @staticmethod
    def children():
        found = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:
                continue
            if int(text.rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(path.split("/")[2]))
        return found

    def finish(self):
        # Children of those that are killed become ours, until there are none.
        try:
            while True:
                for pid in self.children():
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass
        for path in [path for pattern in self.patterns for path in glob.glob(pattern)]:
            if path.startswith("/sys/fs/cgroup/"):
                for folder, _, _ in os.walk(path, topdown=False):
                    os.rmdir(folder)
            else:
                shutil.rmtree(path, ignore_errors=True)


def main():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    kept = _Kept()
    signal.signal(signal.SIGCHLD, kept.reap)
    try:
        kept.serve()
    except BrokenPipeError:
        pass
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kept.finish()


if __name__ == "__main__":
    main()
