"""A PostgreSQL server of a test's own, in a temporary directory, reached through a Unix socket."""

import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1


def programs():
    """Where Debian keeps the server's programs; None where it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(found[-1]) if found else None


def _as_servers_user():
    """In the child: it refuses to be root, and must not survive us."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class PostgresServer:
    """Starts when constructed. Durable, as a server in earnest."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="zeus-postgres-", dir="/tmp")
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.data = os.path.join(self.folder, "data")
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
                  "--no-sync", "--locale=C").wait()
        self.server = self._run("postgres", "-D", self.data, "-k", self.folder,
                                "-c", "listen_addresses=")
        for _ in range(600):
            if os.path.exists(os.path.join(self.folder, ".s.PGSQL.5432")) and self._ready():
                return
            time.sleep(0.05)
        raise RuntimeError("the database does not start: see " + self.folder)

    def _run(self, program, *arguments):
        return subprocess.Popen([os.path.join(programs(), program), *arguments], cwd="/",
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                preexec_fn=_as_servers_user)

    def _ready(self):
        return self._run("pg_isready", "-q", "-h", self.folder).wait() == 0

    @property
    def url(self):
        return f"postgresql:///postgres?user=postgres&host={self.folder}"

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
