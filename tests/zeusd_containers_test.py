"""The daemon knows who is at its socket: users, user namespaces, containers of runc with and without one, pid namespaces,
descriptors that are passed on. Nobody gets what the configuration does not grant him. Needs root."""

import array
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from sim_testing import copy_zeus, wait_until
from zeusd_testing import CONFIGURATION, LIMIT, RESEARCHER, STRANGER, ZeusdTestCase

CLIENT = pathlib.Path(__file__).resolve().parent / "zeusd_client.py"


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdContainersTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon(CONFIGURATION)
        # Where everybody may read: the test's own folder may be below one of root.
        self.public = tempfile.mkdtemp(prefix="zeusd-public-")
        self.addCleanup(shutil.rmtree, self.public)
        os.chmod(self.public, 0o755)
        self.client = shutil.copy(CLIENT, self.public)
        os.chmod(self.client, 0o755)

    def lease(self, watts=200):
        return json.dumps({"name": "test", "requests": [
            {"device": self.uuids()[0], "knob": "gpu_power_limit", "exactly": {"watts": watts}}]})

    def command(self, what, method, target, body=None, path=None):
        words = ["/usr/bin/python3", path or self.client, self.socket_path, what, method, target]
        return words + ([body] if body else [])

    @staticmethod
    def as_user(uid, command):
        return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *command]

    def answer(self, command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        status, text = done.stdout.split(" ", 1)
        return int(status), json.loads(text) if text.strip() else None

    def hold(self, command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        status, text = process.stdout.readline().split(" ", 1)
        return process, int(status), json.loads(text)

    def whoami(self, command_prefix):
        return self.answer([*command_prefix, *self.command("ask", "GET", "/v1/whoami")])

    # --- users ---

    def test_a_user_gets_what_the_rule_of_his_uid_grants_and_another_one_nothing(self):
        status, body = self.answer(self.as_user(STRANGER, self.command("ask", "POST", "/v1/leases", self.lease())))
        self.assertEqual((status, body["error"]["code"]), (403, "permission_denied"), body)
        status, body = self.answer(self.as_user(RESEARCHER, self.command("ask", "POST", "/v1/leases", self.lease(120))))
        self.assertEqual(status, 422, body)
        holder, status, body = self.hold(self.as_user(RESEARCHER, self.command("hold", "POST", "/v1/leases", self.lease())))
        self.assertEqual(status, 201, body)
        self.assertEqual(self.limits()[0], 200)
        holder.kill()
        holder.wait()
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit of a killed holder is put back")

    def test_the_lease_of_another_user_cannot_be_seen_changed_or_ended(self):
        _, status, lease = self.hold(self.as_user(RESEARCHER, self.command("hold", "POST", "/v1/leases", self.lease())))
        self.assertEqual(status, 201, lease)
        path = f"/v1/leases/{lease['id']}"
        requests = json.dumps({"requests": json.loads(self.lease(250))["requests"]})
        for method, target, body in (("GET", path, None), ("DELETE", path, None), ("PUT", path + "/requests", requests),
                                     ("POST", path + "/heartbeat", None), ("PUT", path + "/holder", '{"pid": 1}')):
            status, answer = self.answer(self.as_user(STRANGER, self.command("ask", method, target, body)))
            self.assertIn(status, (403, 404), (method, target, answer))
        status, answer = self.answer(self.as_user(STRANGER, self.command("ask", "GET", "/v1/leases")))
        self.assertEqual((status, answer["leases"]), (200, []))
        self.assertEqual(self.limits()[0], 200)

    def test_the_requests_of_the_reference_obey_the_same_rules(self):
        target = "/gpu/set_power_limit?gpu_ids=0&power_limit_mw={}&block=true"
        for uid, milliwatts in ((STRANGER, 200_000), (RESEARCHER, 120_000)):
            done = subprocess.run(self.as_user(uid, self.command("ask", "POST", target.format(milliwatts))),
                                  capture_output=True, text=True, timeout=120, check=True)
            self.assertIn(done.stdout.split(" ")[0], ("400", "403"), done.stdout)
            self.assertEqual(self.limits()[0], LIMIT)

    # --- user namespaces and containers ---

    def test_root_of_a_user_namespace_is_the_user_outside(self):
        if subprocess.run(self.as_user(STRANGER, ["unshare", "-r", "true"]), capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("users may not make user namespaces here")
        prefix = self.as_user(STRANGER, ["unshare", "-r"])
        status, body = self.whoami(prefix)
        self.assertEqual((status, body["subject"], body["contained"]), (200, f"uid:{STRANGER}", True), body)
        status, body = self.answer([*prefix, *self.command("ask", "POST", "/v1/leases", self.lease())])
        self.assertEqual(status, 403, body)

    def container(self, uid_mappings=None, user=None):
        """The command prefix of a program in a container that has this machine's programs and the socket's folder."""
        if shutil.which("runc") is None:
            self.skipTest("runc is not installed")
        bundle = pathlib.Path(tempfile.mkdtemp(prefix="zeusd-container-"))
        self.addCleanup(shutil.rmtree, bundle, True)
        os.chmod(bundle, 0o755)
        (bundle / "rootfs").mkdir()
        if uid_mappings:  # Its root makes the folders to mount on.
            os.chown(bundle / "rootfs", uid_mappings, uid_mappings)
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        config = json.loads((bundle / "config.json").read_text())
        config["root"] = {"path": "rootfs", "readonly": False}
        config["process"]["terminal"] = False
        if user:
            config["process"]["user"] = {"uid": user, "gid": user}
            config["process"]["env"] += ["HOME=/tmp", "LC_ALL=C.UTF-8"]
            config["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                                     "options": ["mode=1777"]})
        for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc"):
            config["mounts"].append({"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "ro"]})
        for source, destination in ((os.path.dirname(self.socket_path), "/run/zeusd"), (self.public, "/public")):
            config["mounts"].append({"destination": destination, "type": "bind", "source": source, "options": ["rbind", "rw"]})
        if uid_mappings:
            config["linux"]["namespaces"].append({"type": "user"})
            for kind in ("uidMappings", "gidMappings"):
                config["linux"][kind] = [{"containerID": 0, "hostID": uid_mappings, "size": 65536}]
            # Its root makes the folders of its mounts.
            os.chown(bundle / "rootfs", uid_mappings, uid_mappings)

        def run(words):
            inside = ["/public/zeusd_client.py" if word == self.client else word for word in words]
            inside = ["/run/zeusd/" + os.path.basename(self.socket_path) if word == self.socket_path else word
                      for word in inside]
            config["process"]["args"] = inside
            (bundle / "config.json").write_text(json.dumps(config))
            return ["runc", "--root", str(bundle / "state"), "run", "--bundle", str(bundle), f"zeusd-{os.getpid()}"]

        done = subprocess.run(run(["/bin/true"]), capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            self.skipTest(f"runc cannot run a container here: {done.stderr.strip()[-200:]}")
        return run

    def test_root_of_a_container_is_no_administrator(self):
        run = self.container()
        status, body = self.answer(run(self.command("ask", "GET", "/v1/whoami")))
        self.assertEqual((status, body["contained"]), (200, True), body)
        self.assertNotIn("admin", body["scopes"])
        status, body = self.answer(run(self.command("ask", "POST", "/v1/leases", self.lease())))
        self.assertEqual(status, 403, body)

    def test_root_of_a_container_with_a_user_namespace_is_its_user_outside(self):
        run = self.container(uid_mappings=RESEARCHER)
        process, status, body = self.hold(run(self.command("hold", "POST", "/v1/leases", self.lease())))
        self.assertEqual(status, 201, body)
        self.assertEqual(self.limits()[0], 200)
        process.communicate(timeout=60)  # Its standard input ends, and so does it.
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit comes back when the container ends")

    def test_a_killed_container_leaves_no_limit(self):
        run = self.container(uid_mappings=RESEARCHER)
        command = run(self.command("hold", "POST", "/v1/leases", self.lease()))
        process, status, body = self.hold(command)
        self.assertEqual(status, 201, body)
        subprocess.run([*command[:3], "kill", command[-1], "KILL"], check=True)
        process.wait(60)
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit comes back when the container was killed")

    def test_a_user_in_a_container_optimises_its_gpu_and_it_comes_back_after_kill(self):
        run = self.container(user=RESEARCHER)
        zeus = copy_zeus(self.public)
        self.start_load("--gpu", "0", "--watts", "240")
        # No variable and no right: the socket is where every client looks for it.
        doctor = subprocess.run(run(["/public/zeus", "doctor", "--seconds", "0"]), capture_output=True, text=True,
                                timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.assertIn("/run/zeusd/zeusd.sock", doctor.stdout, doctor.stderr)
        profile = ["/public/zeus", "profile", "--gpus", "0", "--limits", "250,200,150", "--slice", "1s", "--warmup",
                   "200ms", "--progress", r"step ([\d.]+)"]
        work = ["--", "sh", "-c", "step=0; while :; do step=$((step + 1)); echo step $step; sleep 0.05; done"]
        done = subprocess.run(run([*profile, "--stop", *work]), capture_output=True,
                              text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("150", done.stdout + done.stderr)
        self.assertEqual(self.limits()[0], LIMIT)
        self.assertTrue(os.path.exists(zeus))
        command = run([*profile, *work])
        optimiser = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (optimiser.kill(), optimiser.communicate()))
        wait_until(lambda: self.limits()[0] != LIMIT, "it turns the limit")
        subprocess.run([*command[:3], "kill", command[-1], "KILL"], check=True)
        optimiser.wait(60)
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit comes back")

    # --- passed descriptors and reused pids ---

    def test_a_descriptor_that_is_passed_on_keeps_the_identity_of_who_connected(self):
        ours, theirs = socket.socketpair()
        # A stranger connects, and passes the connection to this process, which is root.
        script = ("import array, socket, sys\n"
                  "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
                  "out = socket.socket(fileno=int(sys.argv[2]))\n"
                  "out.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [s.fileno()]))])\n"
                  "sys.stdin.read()\n")
        process = subprocess.Popen(self.as_user(STRANGER, [sys.executable if sys.executable.startswith("/usr/bin")
                                                           else "/usr/bin/python3", "-c", script, self.socket_path,
                                                           str(theirs.fileno())]),
                                   pass_fds=[theirs.fileno()], stdin=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close()))
        descriptors = array.array("i")
        _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_LEN(descriptors.itemsize))
        descriptors.frombytes(ancillary[0][2])
        ours.close()
        theirs.close()
        with socket.socket(fileno=descriptors[0]) as connection:
            connection.settimeout(60)
            body = self.lease()
            connection.sendall(f"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            self.assertIn(b" 403 ", connection.recv(65536))
        self.assertEqual(self.limits()[0], LIMIT)

    def test_a_reused_pid_inherits_no_lease(self):
        # In a small pid namespace of its own a number comes again soon; the daemon holds a pidfd of the first process.
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("pid namespaces cannot be made here")
        script = ("import os, subprocess, sys\n"
                  "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
                  "print(child.stdout.readline(), end='', flush=True)\n"
                  "sys.stdin.readline()\n"
                  "number = child.pid\n"
                  "child.kill(); child.wait()\n"
                  "for _ in range(200000):\n"
                  "    with open('/proc/sys/kernel/ns_last_pid', 'w') as file: file.write(str(number - 1))\n"
                  "    other = subprocess.Popen(['sleep', '600'])\n"
                  "    if other.pid == number: break\n"
                  "    other.kill(); other.wait()\n"
                  "print('reused' if other.pid == number else 'not', flush=True)\n"
                  "sys.stdin.readline()\n")
        process = subprocess.Popen([*unshare, "/usr/bin/python3", "-c", script,
                                    *self.as_user(RESEARCHER, self.command("hold", "POST", "/v1/leases", self.lease()))],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        status, text = process.stdout.readline().split(" ", 1)
        self.assertEqual(int(status), 201, text)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline().strip(), "reused")
        wait_until(lambda: self.limits()[0] == LIMIT, "the number lives on, and the lease does not")


if __name__ == "__main__":
    unittest.main()
