"""A client of `zeus serve` says why when it does not trust the server, or the server does not trust it."""

import os
import subprocess
import unittest

from serve_testing import JOB, ZEUS, ServeTestCase


class ClientTest(ServeTestCase):
    def make_certificate(self, name, *arguments, names="IP:127.0.0.1"):
        """A certificate that vouches for itself."""
        certificate, key = self.path(name + ".pem"), self.path(name + "-key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
             "-keyout", key, "-out", certificate, *arguments], check=True, capture_output=True)
        return certificate, key

    def serve_tls(self, certificate, key):
        return self.serve("--no-access-log", "--tls-cert", certificate, "--tls-key", key)

    def client(self, url, *arguments, code, **environment):
        done = subprocess.run([ZEUS, "job", "list", "--server", url, *arguments],
                              capture_output=True, text=True, timeout=60,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stdout + done.stderr

    def test_a_server_is_trusted_by_the_certificate_that_is_given(self):
        certificate, key = self.make_certificate("ours")
        server = self.serve_tls(certificate, key)
        server.ask("POST", "/v1/jobs", JOB, authority=certificate)
        self.assertIn("mnist", self.client(server.url, "--ca-file", certificate, code=0))
        self.assertIn("mnist", self.client(server.url, code=0, ZEUS_CA_FILE=certificate))

    def test_a_stranger_is_named_with_the_fix(self):
        certificate, key = self.make_certificate("ours")
        other, _ = self.make_certificate("theirs")
        server = self.serve_tls(certificate, key)
        for arguments in ((), ("--ca-file", other)):
            sentence = self.client(server.url, *arguments, code=6)
            for word in ("CN = ours", "--ca-file", "vouches"):
                self.assertIn(word, sentence)

    def test_a_certificate_for_another_name(self):
        certificate, key = self.make_certificate("ours", names="DNS:zeus.example,IP:127.0.0.9")
        server = self.serve_tls(certificate, key)
        sentence = self.client(server.url, "--ca-file", certificate, code=6)
        for word in ("zeus.example, 127.0.0.9", "not for 127.0.0.1"):
            self.assertIn(word, sentence)

    def test_an_expired_certificate(self):
        certificate, key = self.make_certificate("ours")
        request = self.path("request.pem")
        subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=old", "-out", request],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-req", "-in", request, "-signkey", key, "-days", "-1",
                        "-out", certificate], check=True, capture_output=True)
        server = self.serve_tls(certificate, key)
        sentence = self.client(server.url, "--ca-file", certificate, code=6)
        self.assertIn("CN = old expired on ", sentence)

    def test_the_wrong_scheme(self):
        plain = self.serve("--no-access-log")
        self.assertIn("begins with http://",
                      self.client(plain.url.replace("http:", "https:"), code=6))
        server = self.serve_tls(*self.make_certificate("ours"))
        self.assertIn("begins with https://",
                      self.client(server.url.replace("https:", "http:"), code=6))

    def test_a_file_that_holds_no_certificate(self):
        with open(self.path("empty.pem"), "w", encoding="ascii") as file:
            file.write("nothing\n")
        url = "https://127.0.0.1:1"
        self.assertIn("no certificate",
                      self.client(url, "--ca-file", self.path("empty.pem"), code=2))
        self.assertIn("missing.pem",
                      self.client(url, "--ca-file", self.path("missing.pem"), code=3))

    def test_a_missing_and_a_wrong_token(self):
        subprocess.run([ZEUS, "serve", "--tokens", self.path("tokens"), "--new-token", "ci"],
                       check=True, capture_output=True, timeout=60)
        server = self.serve("--no-access-log", "--tokens", self.path("tokens"))
        missing = self.client(server.url, code=5)
        wrong = self.client(server.url, code=5, ZEUS_TOKEN="zeus_wrong")
        self.assertIn("wants a token", missing)
        self.assertIn("not known here", wrong)
        for sentence in (missing, wrong):
            self.assertIn("--token-file", sentence)


if __name__ == "__main__":
    unittest.main()
