"""`zeus serve` with tokens and TLS."""

import contextlib
import os
import signal
import socket
import ssl
import stat
import subprocess
import unittest

from serve_testing import JOB, ZEUS, Server, ServeTestCase
from sim_testing import wait_until


class TokensTest(ServeTestCase):
    def new_token(self, *arguments, code=0):
        done = subprocess.run([ZEUS, "serve", "--tokens", self.path("tokens"), *arguments],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.strip() or done.stderr

    def test_tokens_open_what_their_role_allows(self):
        writer = self.new_token("--new-token", "ci")
        reader = self.new_token("--new-token", "grafana", "--read-only")
        server = self.serve("--no-access-log", "--tokens", self.path("tokens"))
        for path in ("/healthz", "/readyz", "/openapi.json"):
            self.assertEqual(server.ask("GET", path).status, 200)
        for token in (None, "zeus_" + "0" * 64, writer[:-1], writer + "0", "", "ci"):
            for method, path in (("GET", "/v1/jobs"), ("GET", "/metrics"), ("POST", "/v1/jobs")):
                answer = server.ask(method, path, token=token)
                self.assertEqual(answer.status, 401, answer.text)
                self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"))
                self.assertEqual(answer.json["error"]["code"], "unauthorized")
        basic = server.ask("GET", "/v1/jobs", headers={"Authorization": "Basic " + writer})
        self.assertEqual(basic.status, 401)
        self.assertEqual(server.ask("POST", "/v1/jobs", JOB, token=reader).status, 403)
        self.assertEqual(server.ask("POST", "/v1/jobs", JOB, token=writer).status, 201)
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist", token=reader).status, 200)
        self.assertEqual(server.ask("GET", "/metrics", token=reader).status, 200)
        # A GET that begins a trial is writing.
        begin = "/jobs/batch_size?job_id=mnist"
        self.assertIn("reading only", server.ask("GET", begin, token=reader).json["detail"])

    def test_the_file_holds_no_token_and_is_its_owners_alone(self):
        token = self.new_token("--new-token", "ci")
        path = self.path("tokens")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(token.removeprefix("zeus_"), text)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertIn("ci", self.new_token("--new-token", "ci", code=9))
        self.new_token("--new-token", "two words", code=2)
        os.chmod(path, 0o644)
        code, sentence = self.refused("--tokens", path, "--listen", "127.0.0.1:0")
        self.assertEqual(code, 5)
        self.assertIn("chmod 600", sentence)

    def test_a_pipe_holds_no_tokens(self):
        os.mkfifo(self.path("tokens"), 0o600)
        code, sentence = self.refused("--tokens", self.path("tokens"), "--listen", "127.0.0.1:0")
        self.assertEqual(code, 2)
        self.assertIn("no regular file", sentence)

    def test_a_broken_line_is_named(self):
        self.new_token("--new-token", "ci")
        with open(self.path("tokens"), "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        code, sentence = self.refused("--tokens", self.path("tokens"), "--listen", "127.0.0.1:0")
        self.assertEqual(code, 2)
        self.assertIn("line 2", sentence)


    def test_tokens_do_not_travel_in_the_clear_unless_that_is_meant(self):
        self.new_token("--new-token", "ci")
        remote = ("--tokens", self.path("tokens"), "--database", "sqlite://" + self.path("zeus.db"),
                  "--no-access-log")
        code, sentence = self.refused("--listen", "0.0.0.0:0", *remote)
        self.assertEqual(code, 2)
        for word in ("--tls-cert", "--plain-http", "tokens"):
            self.assertIn(word, sentence)
        meant = Server(*remote, "--plain-http", listen="0.0.0.0:0")
        self.addCleanup(meant.kill)
        code, errors = meant.stop()
        self.assertEqual(code, 0)
        self.assertIn("in the clear", errors)


class TlsTest(ServeTestCase):
    def setUp(self):
        super().setUp()
        self.certificate, self.key = self.path("cert.pem"), self.path("key.pem")
        self.make_certificate()

    def make_certificate(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
             "-days", "2", "-keyout", self.key, "-out", self.certificate],
            check=True, capture_output=True)

    def is_trusted(self, server, authority):
        try:
            return server.ask("GET", "/healthz", authority=authority).status == 200
        except ssl.SSLCertVerificationError:
            return False

    def test_a_new_certificate_is_used_without_a_restart(self):
        server = self.start()
        with contextlib.closing(server.connect(authority=self.certificate)) as connection:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
            for number in (signal.SIGHUP, None):  # Told to, and by itself.
                self.make_certificate()
                if number:
                    server.process.send_signal(number)
                wait_until(lambda: self.is_trusted(server, self.certificate),
                           "the new certificate is not used")
            # A connection from before goes on.
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
        good = self.path("good.pem")
        os.rename(self.certificate, good)
        with open(self.certificate, "w", encoding="ascii") as file:
            file.write("nonsense")
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(self.is_trusted(server, good))
        wait_until(lambda: not self.is_pending(server, signal.SIGHUP), "SIGHUP was not taken")
        code, errors = server.stop()
        self.assertEqual(code, 0)
        self.assertIn("of before stay in use", errors)

    @staticmethod
    def is_pending(server, number):
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            pending, = [line.split()[1] for line in status if line.startswith("ShdPnd:")]
        return int(pending, 16) >> (number - 1) & 1 == 1

    def start(self):
        return self.serve("--no-access-log", "--tls-cert", self.certificate, "--tls-key", self.key)

    def test_https_with_a_certificate_that_clients_check(self):
        server = self.start()
        self.assertTrue(server.url.startswith("https://127.0.0.1:"))
        created = server.ask("POST", "/v1/jobs", JOB, authority=self.certificate)
        self.assertEqual(created.status, 201)
        large = server.ask("POST", "/v1/jobs", b"x" * 3_000_000, authority=self.certificate)
        self.assertEqual(large.status, 413)
        with self.assertRaises(ssl.SSLCertVerificationError):
            server.ask("GET", "/healthz")
        self.assertEqual(server.stop(), (0, ""))

    def test_old_versions_are_refused(self):
        server = self.start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(server.address, timeout=30) as connection:
            with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                context.wrap_socket(connection)

    def test_a_key_of_another_certificate_is_one_sentence(self):
        other = self.path("other.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out", other], check=True,
                       capture_output=True)
        code, sentence = self.refused("--listen", "127.0.0.1:0", "--tls-cert", self.certificate,
                                      "--tls-key", other, "--database",
                                      "sqlite://" + self.path("zeus.db"))
        self.assertEqual(code, 2)
        self.assertIn("do not belong together", sentence)
        self.assertIn("other.pem", sentence)

    def test_an_encrypted_key_asks_nobody(self):
        locked = self.path("locked.pem")
        subprocess.run(["openssl", "pkey", "-in", self.key, "-aes256", "-passout", "pass:secret",
                        "-out", locked], check=True, capture_output=True)
        code, sentence = self.refused("--listen", "127.0.0.1:0", "--tls-cert", self.certificate,
                                      "--tls-key", locked, "--database",
                                      "sqlite://" + self.path("zeus.db"))
        self.assertEqual(code, 2)
        self.assertIn("without a pass phrase", sentence)

    def test_an_expired_certificate_is_warned_about(self):
        request = self.path("request.pem")
        subprocess.run(["openssl", "req", "-new", "-key", self.key, "-subj", "/CN=localhost",
                        "-out", request], check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-req", "-in", request, "-signkey", self.key, "-days",
                        "-1", "-out", self.certificate], check=True, capture_output=True)
        code, errors = self.start().stop()
        self.assertEqual(code, 0)
        self.assertIn("has expired", errors)

    def test_health_is_told_when_all_connections_are_taken(self):
        server = self.serve("--no-access-log", "--tls-cert", self.certificate, "--tls-key",
                            self.key, "--max-connections", "1")
        held = [socket.create_connection(server.address, timeout=30) for _ in range(30)]
        health = server.ask("GET", "/healthz", authority=self.certificate)
        self.assertEqual(health.status, 200)
        refused = server.ask("GET", "/v1/jobs", authority=self.certificate)
        self.assertEqual(refused.status, 503)
        for connection in held:
            connection.close()


if __name__ == "__main__":
    unittest.main()
