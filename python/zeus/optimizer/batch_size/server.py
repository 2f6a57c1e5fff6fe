"""A private server for notebooks, tests and examples."""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
from typing import Sequence

from zeus.optimizer.batch_size.exceptions import ZeusBSORuntimeError

_SHUTDOWN_SECONDS = 20.0


class LocalServer:
    """Runs ``zeus serve`` on a free port of this machine, for as long as the block lasts.

        with LocalServer() as server:
            optimizer = BatchSizeOptimizer(monitor, server.url, job)

    Jobs that are to be known next time need a database that stays::

        server = LocalServer("jobs.db")
        ...
        server.stop()

    It is ready when it has been made, and ends with the program at the latest, also with one that
    is killed. For a server that others use, run ``zeus serve`` itself.

    Args:
        database: A file for the jobs, made if it does not exist; None for one that is thrown away.
        arguments: More arguments of ``zeus serve``.

    Raises:
        ZeusBSORuntimeError: If it cannot start; the message holds its output.
    """

    def __init__(
        self, database: str | os.PathLike[str] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        from zeus import _native_files

        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if database is None:
            self._folder = tempfile.TemporaryDirectory(prefix="zeus-serve-")
            database = os.path.join(self._folder.name, "zeus.db")
        #: URL or path of the database.
        self.database = os.path.abspath(os.fspath(database))
        self._errors = tempfile.TemporaryFile("w+", prefix="zeus-serve-", suffix=".log")
        command = [_native_files.command(), "serve", "--listen", "127.0.0.1:0", "--no-access-log"]
        command += ["--owner", str(os.getpid())]
        self.process = subprocess.Popen(
            [*command, "--database", f"sqlite://{self.database}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C in a terminal is meant for the training.
        )
        self._owner = os.getpid()
        atexit.register(self.stop)
        #: The URL for BatchSizeOptimizer and PipelineFrequencyOptimizer.
        self.url = self._await_url()

    def _await_url(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line.startswith("listening on "):
            return line[len("listening on ") :].strip()
        self.process.wait()
        said = self.log.strip().splitlines() or ["it said nothing"]
        self.stop()
        raise ZeusBSORuntimeError(f"zeus serve did not start: {said[-1]}")

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self.process.poll() is None

    @property
    def log(self) -> str:
        """The standard error of the server."""
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        return self._errors.read()

    def stop(self) -> None:
        """Ends the server after the requests in progress. A second call does nothing."""
        if os.getpid() != self._owner:  # A forked child has the object, but not the server.
            return
        atexit.unregister(self.stop)
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(_SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._errors.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
