"""zeusd over TCP: forged, stale and damaged tokens get nothing, and TLS is what it says."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import ssl
import subprocess
import time
import unittest

from zeusd_testing import LIMIT, ZEUSD, Answer, ZeusdTestCase

SET = "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=true"
HEADER = {"alg": "HS256", "typ": "JWT"}
LEEWAY = 30


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(key, claims, header=None, digest=hashlib.sha256):
    """A JSON web token, made without the daemon's code. `claims` may be bytes."""
    text = ".".join(encoded(part if isinstance(part, bytes) else json.dumps(part).encode())
                    for part in (header or HEADER, claims))
    return text + "." + encoded(hmac.new(key, text.encode(), digest).digest())


class TcpTestCase(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.secret = os.urandom(48)
        self.key = os.path.join(self.folder, "key")
        with open(self.key, "wb") as file:
            file.write(self.secret)
        os.chmod(self.key, 0o600)

    def claims(self, **changes):
        claims = {"sub": "eve", "scopes": ["gpu-read", "gpu-control"], "exp": int(time.time()) + 3600, **changes}
        return {name: value for name, value in claims.items() if value is not ...}

    def address(self):
        return self.daemon.ready.strip().rsplit("//", 1)[1]

    def call(self, token, method="POST", target=SET, connection=None):
        connection = connection or http.client.HTTPConnection(self.address(), timeout=60)
        headers = {} if token is None else {"Authorization": b"Bearer " + token if isinstance(token, bytes)
                                            else f"Bearer {token}"}
        try:
            connection.request(method, target, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()


class ZeusdTokensTest(TcpTestCase):
    def setUp(self):
        super().setUp()
        self.revoked = os.path.join(self.folder, "revoked")
        self.start_daemon('[defaults]\nscopes = ["gpu-read", "gpu-control"]\n', "--tcp-bind-address", "127.0.0.1:0",
                          "--signing-key-path", self.key, "--revoked-tokens", self.revoked)

    def assert_refused(self, tokens):
        for name, token in tokens.items():
            with self.subTest(name):
                answer = self.call(token)
                self.assertEqual(answer.status, 401, answer.text)
                self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
                # Nothing of the token comes back, nor does the key.
                self.assertNotIn("eyJ", answer.text)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_a_genuine_token_is_accepted(self):
        answer = self.call(signed(self.secret, self.claims()))
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(self.limits(), [200, LIMIT])

    def test_no_other_algorithm_is_accepted(self):
        claims, genuine = self.claims(), signed(self.secret, self.claims())
        head, body, signature = genuine.split(".")
        none = encoded(b'{"alg":"none"}')
        self.assert_refused({
            "none, unsigned": f"{none}.{body}.",
            "none, signed": signed(self.secret, claims, {"alg": "none"}),
            "None": signed(self.secret, claims, {"alg": "None"}),
            "HS512 in the header": signed(self.secret, claims, {"alg": "HS512"}),
            "HS512": signed(self.secret, claims, {"alg": "HS512"}, hashlib.sha512),
            "HS512 that calls itself HS256": signed(self.secret, claims, HEADER, hashlib.sha512),
            "RS256, signed as HMAC": signed(self.secret, claims, {"alg": "RS256"}),
            "hs256": signed(self.secret, claims, {"alg": "hs256"}),
            "a list": signed(self.secret, claims, {"alg": ["HS256"]}),
            "no algorithm": signed(self.secret, claims, {"typ": "JWT"}),
            "crit": signed(self.secret, claims, {"alg": "HS256", "crit": ["exp"]}),
            "a key in the header": signed(b"mine" * 8, claims, {"alg": "HS256", "jwk": {"k": encoded(b"mine" * 8)}}),
            "no signature": f"{head}.{body}.",
            "two parts": f"{head}.{body}",
            "four parts": f"{genuine}.{signature}",
            "the signature of another": f"{head}.{body}." + signed(self.secret, self.claims(sub="a")).split(".")[2],
            "another body": f"{head}." + encoded(json.dumps(self.claims(scopes=["admin"])).encode()) + f".{signature}"})

    def test_other_keys_sign_nothing(self):
        claims = self.claims()
        self.assert_refused({"an empty key": signed(b"", claims), "another key": signed(os.urandom(48), claims),
                             "a part of the key": signed(self.secret[:32], claims),
                             "the key and more": signed(self.secret + b"\n", claims)})

    def test_every_truncation_is_refused(self):
        genuine = signed(self.secret, self.claims())
        self.assert_refused({f"{size} characters": genuine[:size] for size in range(1, len(genuine), 7)})
        self.assert_refused({"padded": genuine + "=", "with a blank": genuine[:10] + " " + genuine[10:],
                             "the last bit": genuine[:-1] + chr(ord(genuine[-1]) + 1)})

    def test_times_hold_with_half_a_minute_of_leeway(self):
        now = int(time.time())
        self.assert_refused({
            "expired": signed(self.secret, self.claims(exp=now - LEEWAY - 5)),
            "expired long ago": signed(self.secret, self.claims(exp=0)),
            "not yet valid": signed(self.secret, self.claims(nbf=now + LEEWAY + 60)),
            "a negative moment": signed(self.secret, self.claims(exp=-1)),
            "a moment that is none": signed(self.secret, self.claims(exp=1e300)),
            "text": signed(self.secret, self.claims(exp=str(now + 100))),
            "a list": signed(self.secret, self.claims(exp=[now + 100])),
            "infinity": signed(self.secret, b'{"sub":"eve","scopes":["gpu-control"],"exp":Infinity}'),
            "true": signed(self.secret, self.claims(nbf=True))})
        for claims in (self.claims(exp=now - 5), self.claims(nbf=now + 5), self.claims(exp=...)):
            self.assertEqual(self.call(signed(self.secret, claims), "GET", "/gpu/get_power").status, 200, claims)

    def test_claims_of_a_wrong_kind_are_refused(self):
        self.assert_refused({
            "no subject": signed(self.secret, self.claims(sub=...)),
            "an empty subject": signed(self.secret, self.claims(sub="")),
            "a user of this machine": signed(self.secret, self.claims(sub="uid:0")),
            "the daemon's own name": signed(self.secret, self.claims(sub="anonymous")),
            "control characters": signed(self.secret, self.claims(sub="a\nb")),
            "a number for a subject": signed(self.secret, self.claims(sub=7)),
            "no scopes": signed(self.secret, self.claims(scopes=...)),
            "scopes as text": signed(self.secret, self.claims(scopes="gpu-control admin")),
            "scopes as an object": signed(self.secret, self.claims(scopes={"admin": True})),
            "numbers for scopes": signed(self.secret, self.claims(scopes=[1])),
            "unknown scopes": signed(self.secret, self.claims(scopes=["gpu-control", "root"])),
            "null": signed(self.secret, self.claims(scopes=None)),
            "another audience": signed(self.secret, self.claims(aud="somebody else")),
            "a list for claims": signed(self.secret, b'["sub"]'),
            "no JSON": signed(self.secret, b"sub=eve"),
            "no UTF-8": signed(self.secret, b'{"sub":"\xff\xfe","scopes":["gpu-control"]}'),
            "deep": signed(self.secret, b"[" * 3000)})

    def test_bytes_that_are_no_token_are_refused(self):
        self.assert_refused({"no UTF-8": b"\xff\xfe.\xc3\x28.\xa0", "latin": b"caf\xe9.caf\xe9.caf\xe9", "dots": "..",
                             "nothing": "", "many dots": "." * 5000,
                             "huge": signed(self.secret, self.claims(padding="x" * 9000))})
        # A header beyond all bounds is not even read.
        self.assertIn(self.call("x" * 100_000).status, (400, 431))

    def test_no_scope_permits_more_than_it_says(self):
        reader = signed(self.secret, self.claims(scopes=["gpu-read"]))
        for method, target in (("POST", SET), ("POST", "/v1/restore"), ("PUT", "/v1/budget"), ("POST", "/v1/jobs")):
            self.assertEqual(self.call(reader, method, target).status, 403, target)
        # A bearer does not have the rights of everybody at the Unix socket.
        nothing = signed(self.secret, self.claims(scopes=[]))
        self.assertEqual(self.call(nothing, "GET", "/gpu/get_power").status, 403)
        self.assertEqual(self.call(nothing).status, 403)

    def test_a_revoked_token_holds_no_longer(self):
        token = signed(self.secret, self.claims(jti="one"))
        other = signed(self.secret, self.claims(jti="two"))
        power = ("GET", "/gpu/get_power")
        self.assertEqual(self.call(token, *power).status, 200)
        subprocess.run([ZEUSD, "token", "revoke", "--revoked-tokens", self.revoked, "--id", "one"], check=True)
        self.assertEqual(self.call(token, *power).status, 401)
        self.assertEqual(self.call(other, *power).status, 200)
        subprocess.run([ZEUSD, "token", "revoke", "--revoked-tokens", self.revoked, "--user", "eve"], check=True)
        self.assertEqual(self.call(other, *power).status, 401)

    def test_several_authorizations_are_not_chosen_from(self):
        genuine = signed(self.secret, self.claims())
        host, port = self.address().split(":")
        for lines in (f"Authorization: Bearer x\r\nAuthorization: Bearer {genuine}\r\n",
                      f"Authorization: Bearer {genuine}, Bearer x\r\n", f"Authorization: Basic {genuine}\r\n",
                      f"Authorization: {genuine}\r\n", f"X-Authorization: Bearer {genuine}\r\n",
                      f"Cookie: Authorization=Bearer {genuine}\r\n"):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(f"POST {SET} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
                status = int(connection.recv(65536).split(b" ", 2)[1])
            self.assertIn(status, (400, 401), lines)
        # A token in the address would end up in logs.
        self.assertEqual(self.call(None, "GET", f"/gpu/get_power?token={genuine}").status, 401)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_leases_of_tokens_are_those_of_their_subject(self):
        body = json.dumps(self.lease(200))
        headers = {"Authorization": "Bearer " + signed(self.secret, self.claims())}
        connection = http.client.HTTPConnection(self.address(), timeout=60)
        connection.request("POST", "/v1/leases", body, headers)
        created = Answer(connection.getresponse())
        connection.close()
        self.assertEqual(created.status, 201, created.text)
        path = "/v1/leases/" + created.json["id"]
        other = signed(self.secret, self.claims(sub="mallory"))
        for method, target in (("GET", path), ("DELETE", path), ("POST", path + "/heartbeat")):
            self.assertEqual(self.call(other, method, target).status, 404, target)
        self.assertEqual(self.call(signed(self.secret, self.claims()), "GET", path).status, 200)
        self.assertEqual(self.call(None, "GET", path).status, 401)


class ZeusdTlsTest(TcpTestCase):
    def certificate(self, name, *more):
        """A certificate for localhost that signs itself, and its key."""
        paths = [os.path.join(self.folder, f"{name}.{kind}") for kind in ("pem", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-out", paths[0], "-keyout", paths[1], *more], check=True, capture_output=True)
        os.chmod(paths[1], 0o600)
        return paths

    def serve(self, certificate, key, *more):
        self.start_daemon('[defaults]\nscopes = ["gpu-read"]\n', "--tcp-bind-address", "127.0.0.1:0", "--tls-cert",
                          certificate, "--tls-key", key, "--signing-key-path", self.key, *more)

    def over_tls(self, context):
        host, port = self.address().split(":")
        return http.client.HTTPSConnection(host, int(port), timeout=60, context=context)

    def test_a_token_over_tls_sets_a_limit(self):
        certificate, key = self.certificate("good")
        self.serve(certificate, key)
        self.assertIn("https://127.0.0.1:", self.daemon.ready)
        trusting = ssl.create_default_context(cafile=certificate)
        answer = self.call(signed(self.secret, self.claims()), connection=self.over_tls(trusting))
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(self.limits(), [200, LIMIT])
        self.assertEqual(self.call(None, connection=self.over_tls(trusting)).status, 401)

    def test_without_tls_the_tls_port_tells_nothing(self):
        certificate, key = self.certificate("good")
        self.serve(certificate, key)
        host, port = self.address().split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            try:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertNotIn(b"200 OK", connection.recv(65536))
            except ConnectionError:
                pass
        self.assertEqual(self.ask("GET", "/healthz").status, 200)

    def test_a_client_sees_a_certificate_that_nobody_vouches_for_or_that_is_out_of_date(self):
        certificate, key = self.certificate("unknown")
        self.serve(certificate, key)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.call(None, "GET", "/healthz", self.over_tls(ssl.create_default_context()))
        self.daemon.stop()
        stale = os.path.join(self.folder, "stale.pem")
        subprocess.run(["openssl", "x509", "-in", certificate, "-signkey", key, "-days", "-1", "-out", stale], check=True,
                       capture_output=True)
        self.serve(stale, key)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.call(None, "GET", "/healthz", self.over_tls(ssl.create_default_context(cafile=stale)))

    def test_old_versions_of_tls_are_refused(self):
        certificate, key = self.certificate("good")
        self.serve(certificate, key)
        for version in ("-tls1", "-tls1_1"):
            done = subprocess.run(["openssl", "s_client", version, "-cipher", "ALL:@SECLEVEL=0", "-connect", self.address()],
                                  input="", capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
        done = subprocess.run(["openssl", "s_client", "-tls1_2", "-connect", self.address()], input="",
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def refused_start(self, *arguments):
        done = subprocess.run([ZEUSD, "serve", "--socket-path", self.socket_path, *arguments], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_other_machines_need_tls_and_tokens(self):
        certificate, key = self.certificate("good")
        everywhere = ("--tcp-bind-address", "0.0.0.0:0")
        self.assertIn("--tls-cert", self.refused_start(*everywhere))
        self.assertIn("--tls-cert", self.refused_start(*everywhere, "--signing-key-path", self.key))
        self.assertIn("--signing-key-path", self.refused_start(*everywhere, "--tls-cert", certificate, "--tls-key", key))

    def test_a_key_that_can_be_guessed_or_read_by_others_is_refused(self):
        local = ("--tcp-bind-address", "127.0.0.1:0", "--signing-key-path", self.key)
        os.chmod(self.key, 0o644)
        self.assertIn("chmod 600", self.start_failure(*local))
        with open(self.key, "wb") as file:
            file.write(b"short")
        os.chmod(self.key, 0o600)
        self.assertIn("can be guessed", self.start_failure(*local))

    def start_failure(self, *arguments):
        done = subprocess.run([ZEUSD, "serve", "--socket-path", self.socket_path, *arguments], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.socket_path))
        return done.stderr

    def signed_by(self, authority, subject, *more):
        """A certificate of a client, and its key."""
        paths = [os.path.join(self.folder, f"client.{kind}") for kind in ("pem", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", subject, "-CA", authority[0], "-CAkey", authority[1], "-addext",
                        "basicConstraints=critical,CA:FALSE", "-out", paths[0], "-keyout", paths[1], *more], check=True,
                       capture_output=True)
        return paths

    def showing(self, server, client):
        context = ssl.create_default_context(cafile=server)
        if client:
            context.load_cert_chain(*client)
        return self.over_tls(context)

    def serve_with_authority(self, *more):
        server = self.certificate("server")
        authority = self.certificate("authority")
        rules = ('[defaults]\nscopes = ["gpu-read"]\n[[rule]]\nname = "controller"\n'
                 'match = { subjects = ["cert:controller"] }\nscopes = ["gpu-control", "gpu-read"]\n')
        self.start_daemon(rules, "--tcp-bind-address", "127.0.0.1:0", "--tls-cert", server[0], "--tls-key", server[1],
                          "--client-ca", authority[0], *more)
        return server[0], authority

    def test_a_certificate_says_who_calls(self):
        server, authority = self.serve_with_authority()
        controller = self.signed_by(authority, "/CN=controller")
        answer = self.call(None, connection=self.showing(server, controller))
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(self.limits(), [200, LIMIT])
        answer = self.call(None, "GET", "/v1/whoami", self.showing(server, controller))
        self.assertEqual(answer.json["subject"], "cert:controller", answer.text)
        nobody = self.signed_by(authority, "/CN=nobody")
        self.assertEqual(self.call(None, connection=self.showing(server, nobody)).status, 403)
        self.assertEqual(self.call(None, connection=self.showing(server, None)).status, 401)
        for subject in ("/O=no name", "/CN=controller/CN=admin", "/CN=uid 0", "/CN=contr\u00f6ller"):
            client = self.signed_by(authority, subject, "-utf8")
            self.assertEqual(self.call(None, connection=self.showing(server, client)).status, 401, subject)

    def test_a_certificate_of_somebody_else_or_of_another_time_is_refused(self):
        server, authority = self.serve_with_authority()
        stranger = self.certificate("stranger")
        key, asked, stale = (os.path.join(self.folder, "stale." + kind) for kind in ("key", "csr", "pem"))
        subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=controller", "-keyout", key, "-out", asked], check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-req", "-in", asked, "-CA", authority[0], "-CAkey", authority[1], "-set_serial",
                        "7", "-days", "-1", "-out", stale], check=True, capture_output=True)
        for client in (self.signed_by(stranger, "/CN=controller"), stranger, [stale, key]):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                self.call(None, connection=self.showing(server, client))
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual(self.ask("GET", "/healthz").status, 200)

    def test_tokens_and_certificates_are_not_taken_for_each_other(self):
        server, authority = self.serve_with_authority("--signing-key-path", self.key)
        controller = self.signed_by(authority, "/CN=controller")
        posing = signed(self.secret, self.claims(sub="cert:controller"))
        self.assertEqual(self.call(posing, connection=self.showing(server, None)).status, 401)
        # A broken token is not made good by a certificate.
        self.assertEqual(self.call("x.y.z", connection=self.showing(server, controller)).status, 401)
        # A token says who calls, where both do.
        reader = signed(self.secret, self.claims(sub="eve", scopes=["gpu-read"]))
        self.assertEqual(self.call(reader, connection=self.showing(server, controller)).status, 403)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_authorities_need_tls_and_a_file(self):
        certificate, key = self.certificate("good")
        local = ("--tcp-bind-address", "127.0.0.1:0", "--client-ca")
        self.assertIn("--tls-cert", self.start_failure(*local, certificate))
        self.assertIn(key, self.start_failure(*local, key, "--tls-cert", certificate, "--tls-key", key))

    def test_a_certificate_that_cannot_be_used_is_named(self):
        certificate, _ = self.certificate("one")
        _, key = self.certificate("two")
        failure = self.start_failure("--tcp-bind-address", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
        self.assertIn(".key", failure)


if __name__ == "__main__":
    unittest.main()
