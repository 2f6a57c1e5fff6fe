"""zeus.optimizer.batch_size where something is wrong: servers, answers, arguments."""

import contextlib
import http.server
import os
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.request

from job_testing import JobTestCase, spec
from node_testing import ZEUS, wait_until

from zeus.optimizer.batch_size import BatchSizeOptimizer, LocalServer
from zeus.optimizer.batch_size.exceptions import (
    ZeusBSOConfigError,
    ZeusBSOOperationOrderError,
    ZeusBSORuntimError,
    ZeusBSORuntimeError,
)


@contextlib.contextmanager
def _answering(status: int, body: str):
    """A server that says the same to everything."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class TroubleTest(JobTestCase):
    def test_a_server_that_is_not_there_is_one_sentence(self):
        url = self.server.url
        self.server.stop()
        with self.assertRaises(ZeusBSORuntimError) as raised:
            BatchSizeOptimizer(self.monitor, url, spec(), needs_server=True)
        self.assertIs(ZeusBSORuntimError, ZeusBSORuntimeError)
        self.assertEqual(len(str(raised.exception).splitlines()), 1)
        self.assertIn(url.split("//")[1].split(":")[1], str(raised.exception))

    def test_without_a_server_the_training_begins_and_is_told_by_a_later_run(self):
        database = os.path.join(self.folder, "jobs.db")
        address = self.server.url.removeprefix("http://")
        self.server.stop()
        optimizer = self.optimizer(start_timeout=0.1, end_timeout=0.1)
        self.assertEqual(optimizer.get_batch_size(), 64)
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.3)
        self.assertFalse(optimizer.training_finished)
        optimizer.on_evaluate(0.95)
        self.assertTrue(optimizer.training_finished and optimizer.converged)
        optimizer.on_train_end()
        process = subprocess.Popen(
            [ZEUS, "serve", "--listen", address, "--database", f"sqlite://{database}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertIn("listening", process.stdout.readline())
        self.optimizer().get_batch_size()
        told = self.trial(1)
        self.assertEqual((told["status"], told["batch_size"], told["epochs"]),
                         ("converged", 64, 2))
        self.assertGreater(told["energy_joules"], 0)
        self.assertEqual(self.trial(2)["status"], "dispatched")

    def test_a_server_that_hangs_holds_up_no_epoch_and_gets_the_results_later(self):
        optimizer = self.optimizer(spec(max_epochs=100), end_timeout=0.1)
        optimizer.on_train_begin()
        # The system accepts connections of a stopped process, which are never answered.
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        for epoch in range(40):  # No epoch gets an answer.
            self.assertFalse(optimizer.training_finished)
            optimizer.on_evaluate(0.9 * (epoch + 1) / 40)
        self.assertTrue(optimizer.training_finished and optimizer.converged)
        optimizer.on_train_end()
        self.server.process.send_signal(signal.SIGCONT)
        self.optimizer(spec(max_epochs=100)).get_batch_size()
        delivered = self.trial(1)
        self.assertEqual((delivered["status"], delivered["epochs"]), ("converged", 40))

    def test_the_end_of_a_run_waits_for_the_server_without_the_interpreter(self):
        optimizer = self.optimizer(end_timeout=600)
        optimizer.on_train_begin()
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        optimizer.on_evaluate(0.5)
        ending = threading.Thread(target=optimizer.on_train_end)
        ending.start()
        # Only a thread that gets the interpreter can wake the server up.
        self.server.process.send_signal(signal.SIGCONT)
        ending.join()
        self.assertEqual(self.trial(1)["status"], "stopped")
        self.assertEqual(self.trial(1)["epochs"], 1)

    def test_a_refusal_is_reported(self):
        optimizer = self.optimizer()
        optimizer.on_train_begin()
        request = urllib.request.Request(self.server.url + "/v1/jobs/mnist-1", method="DELETE")
        urllib.request.urlopen(request, timeout=30).close()
        optimizer.on_evaluate(0.1)
        wait_until(lambda: optimizer.trouble is not None, "the refusal is not reported")
        self.assertIn("mnist-1", optimizer.trouble)
        self.assertFalse(optimizer.training_finished)

    def test_the_target_ends_a_training_whose_server_died(self):
        optimizer = self.optimizer(end_timeout=0.1)
        optimizer.on_train_begin()
        self.server.process.kill()
        self.server.process.wait()
        optimizer.on_evaluate(0.95)
        self.assertTrue(optimizer.training_finished and optimizer.converged)
        self.assertIn("reached the target", optimizer.message)
        optimizer.on_train_end()
        self.assertIsNotNone(optimizer.trouble)

    def test_a_server_that_dies_stops_nothing(self):
        optimizer = self.optimizer(end_timeout=0.1)
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.1)
        self.server.process.kill()
        self.server.process.wait()
        optimizer.on_evaluate(0.2)
        self.assertFalse(optimizer.training_finished)
        wait_until(lambda: optimizer.trouble is not None, "the trouble is not reported")
        optimizer.on_train_end()

    def test_addresses_that_are_none_are_refused(self):
        for url in ("", "zeus", "ftp://zeus", "http://"):
            with self.subTest(url=url), self.assertRaises(ValueError):
                BatchSizeOptimizer(self.monitor, url, spec())
        with self.assertRaisesRegex(TypeError, "server_url"):
            BatchSizeOptimizer(self.monitor, None, spec())

    def test_another_spec_under_the_same_id_is_refused(self):
        self.optimizer()
        with self.assertRaisesRegex(ZeusBSOConfigError, "max_epochs"):
            self.optimizer(spec(max_epochs=7))

    def test_arguments_are_checked(self):
        for arguments in ({"monitor": None}, {"job": {"job_id": "mnist-1"}}, {"rank": "0"},
                          {"token": 3}, {"recurrence": 1.5}, {"raise_on_failure": 1},
                          {"collective": 3}):
            given = {"monitor": self.monitor, "server_url": self.server.url, "job": spec()}
            with self.subTest(arguments=arguments), self.assertRaises(TypeError) as raised:
                BatchSizeOptimizer(**{**given, **arguments})
            self.assertIn(next(iter(arguments)), str(raised.exception))
        with self.assertRaisesRegex(ValueError, "torch.distributed"):
            self.optimizer(rank=1)

    def test_evaluating_before_training_is_refused(self):
        with self.assertRaises(ZeusBSOOperationOrderError):
            self.optimizer().on_evaluate(0.5)

    def test_a_metric_that_is_no_number_is_refused(self):
        optimizer = self.optimizer()
        optimizer.on_train_begin()
        for metric in ("0.5", None, True):
            with self.subTest(metric=metric), self.assertRaisesRegex(TypeError, "metric"):
                optimizer.on_evaluate(metric)

    def test_answers_that_make_no_sense_are_one_sentence(self):
        for status, body in ((500, "boom"), (404, "{}"), (422, "[]"), (200, "nonsense"),
                             (200, "{}")):
            with self.subTest(status=status, body=body), _answering(status, body) as url:
                with self.assertRaises((ZeusBSORuntimeError, ZeusBSOConfigError)) as raised:
                    BatchSizeOptimizer(self.monitor, url, spec())
                self.assertEqual(len(str(raised.exception).splitlines()), 1)

    def test_a_token_is_needed_where_the_server_wants_one(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            token = subprocess.run([ZEUS, "serve", "--tokens", tokens, "--new-token", "trainer"],
                                   capture_output=True, text=True, check=True).stdout.split()[-1]
            with LocalServer(arguments=["--tokens", tokens]) as server:
                with self.assertRaises(PermissionError):
                    BatchSizeOptimizer(self.monitor, server.url, spec())
                with BatchSizeOptimizer(self.monitor, server.url, spec(), token=token) as optimizer:
                    self.assertEqual(optimizer.get_batch_size(), 64)


if __name__ == "__main__":
    unittest.main()
