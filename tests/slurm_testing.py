#!/usr/bin/env python3
"""A Slurm cluster of a test's own: munge, slurmctld and a slurmd for each virtual node, all on this machine.

Each node has simulated GPUs and a zeusd. With accounting=True there are a MariaDB and a slurmdbd, too. All processes end with the test,
also when it is killed. It needs root, and the packages that missing() names.

    slurm_testing.py [--nodes 4] [--gpus 1xV100] [--accounting] [--plugins] -- COMMAND…     runs a command on such a cluster
"""

import argparse
import glob
import json
import os
import pwd
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from process_keeper import Keeper
import sim_testing
from sim_testing import wait_until
from zeusd_client import UnixConnection

PROGRAMS = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-client"}
ACCOUNTING_PROGRAMS = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
TOOLS = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
ZEUS = os.path.abspath(sim_testing.ZEUS)  # Slurm's programs do not run where the test does.
ZEUSD = os.environ.get("ZEUSD_BINARY", os.path.join(os.path.dirname(ZEUS), "zeusd"))
CGROUPS = "/sys/fs/cgroup"
PLUGINS = os.environ.get("ZEUS_SLURM_PLUGINS", os.path.abspath(os.path.join(os.path.dirname(ZEUS), "../lib/slurm")))
SLURM_PLUGINS = ["/usr/lib/*/slurm-wlm", "/usr/lib/*/slurm", "/usr/lib64/slurm", "/usr/lib/slurm"]

# Prints the power limits of a node's GPUs as the driver has them.
READ_LIMITS = """
import ctypes, os, json
nvml = ctypes.CDLL(os.environ["ZEUS_NVML_LIBRARY"])
assert nvml.nvmlInit_v2() == 0
count, limits = ctypes.c_uint(), []
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
for index in range(count.value):
    device, milliwatts = ctypes.c_void_p(), ctypes.c_uint()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetPowerManagementLimit(device, ctypes.byref(milliwatts)) == 0
    limits.append(milliwatts.value / 1000)
print(json.dumps(limits))
"""


def missing(accounting=False, constrain=False, plugins=False):
    """Why there can be no cluster here; None where there can be one."""
    if os.geteuid() != 0:
        return "a Slurm cluster of a test needs root"
    wanted = dict(PROGRAMS, **(ACCOUNTING_PROGRAMS if accounting else {}))
    for program, package in wanted.items():
        if shutil.which(program, path=TOOLS) is None:
            return f"there is no {program}: install the package {package}"
    if plugins and not os.path.exists(f"{PLUGINS}/spank_zeus.so"):
        return "the plugins for Slurm were not built: install libslurm-dev"
    if plugins and "ZEUS_SANITIZED" in os.environ:
        return "Slurm's programs lack the sanitizer's library, which the plugins need"
    if constrain and not os.access(f"{CGROUPS}/devices/cgroup.procs", os.W_OK):
        return "constrained devices need a writable hierarchy of cgroups v1 (devices)"
    return None


class _Ports:
    """Free ports beneath those that the system gives to clients; no other test takes them meanwhile."""

    def __init__(self, count):
        while True:
            self.first = random.randrange(16000, 30000, 64)
            self.claim = socket.socket(socket.AF_UNIX)
            try:
                self.claim.bind(f"\0zeus-slurm-{self.first}")
                for port in range(self.first, self.first + count):
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port))
                return
            except OSError:
                self.claim.close()


class Cluster:
    """Up when constructed; stop() takes it down. Nodes are called n1, n2, …, see `names`.

    gpus: as `zeus sim start --gpus` has them, the same for all nodes.
    zeusd: without, nodes have no daemon.
    settings: lines that are added to slurm.conf, and win.
    plugstack: the lines of plugstack.conf.
    plugins: with spank_zeus.so and acct_gather_energy_zeus.so; spank: further arguments of the former.
    shards: into so many parts each GPU can be divided among jobs (gres/shard).
    constrain: jobs are kept in cgroups and see their own device files only.
    configuration: that of zeusd.
    """

    def __init__(self, nodes=2, gpus="4xV100", *, zeusd=True, accounting=False, constrain=False, plugins=False, spank="",
                 settings="", plugstack="", configuration="", time_scale=1, shards=0):
        self.folder = tempfile.mkdtemp(prefix="zeus-slurm-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.shards = shards
        self.gpus_per_node = sum(int(part.split("x")[0]) for part in gpus.split(","))
        self.ports = _Ports(nodes + 2)
        # Groups of the machine's hierarchy have the names of nodes, so these must be no other test's.
        prefix = f"z{self.ports.first}n" if constrain else "n"
        self.names = [f"{prefix}{i}" for i in range(1, nodes + 1)]
        self.keeper = Keeper()
        self.pids = {}  # By "munged", "slurmctld", "slurmd-n1", "zeusd-n1", "slurmdbd", "mariadbd".
        self.accounting = accounting
        self.constrain = constrain
        if plugins:
            own = next(folder for pattern in SLURM_PLUGINS for folder in glob.glob(pattern))
            plugstack += f"optional {PLUGINS}/spank_zeus.so socket={self.socket_path('%n')} {spank}\n"
            settings = f"PluginDir={own}:{PLUGINS}\nAcctGatherEnergyType=acct_gather_energy/zeus\nAcctGatherNodeFreq=1\n" + settings
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("ZEUS", "SLURM", "CUDA_", "SBATCH"))}
        self.environment.update(PATH=TOOLS, SLURM_CONF=self.path("slurm.conf"), ZEUS_SIM_DIR=self.path("sim"))
        try:
            self._make_folders()
            for number, name in enumerate(self.names):
                self._run_once([ZEUS, "sim", "start", "--name", name, "--gpus", gpus, "--seed", str(number + 1), "--time-scale",
                                str(time_scale)])
            self.driver = self._driver()
            self._write_configuration(settings, plugstack)
            self._start(zeusd, configuration)
        except BaseException:
            self.stop()
            raise

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def socket_path(self, node):
        """Where the node's zeusd listens."""
        return self.path(node, "zeusd.sock")

    # Files.

    def _make_folders(self):
        self.keeper.remove(self.folder)
        if self.constrain:
            self.keeper.remove(*(f"{CGROUPS}/*/slurm_{name}" for name in self.names))
        for name in ["state", "log", "dev", "sim", "munge"]:
            os.mkdir(self.path(name), 0o755)
        for name in self.names:
            os.makedirs(self.path(name, "activity"))
            os.mkdir(self.path(f"tmp-{name}"))
            for folder in (self.path(name, "activity"), self.path(f"tmp-{name}")):
                os.chmod(folder, 0o1777)
        # Slurm only looks whether they exist; 195 is NVIDIA's number.
        for i in range(self.gpus_per_node):
            os.mknod(self.path("dev", f"gpu{i}"), 0o20666, os.makedev(195, i))
        munge = pwd.getpwnam("munge")
        key = self.path("munge", "key")
        with open(key, "wb") as file:
            file.write(os.urandom(128))
        os.chmod(key, 0o400)
        for path in (key, self.path("munge")):
            os.chown(path, munge.pw_uid, munge.pw_gid)

    def _write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def _write_configuration(self, settings, plugstack):
        self._write("plugstack.conf", plugstack)
        shards = [f"Name=shard Count={self.shards} File={self.path('dev')}/gpu{i}\n" for i in range(self.gpus_per_node) if self.shards]
        self._write("gres.conf", f"Name=gpu Type=v100 File={self.path('dev')}/gpu[0-{self.gpus_per_node - 1}]\n" + "".join(shards))
        self._write("cgroup.conf", f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={CGROUPS}\nConstrainDevices=yes\n")
        self._write("task_prolog.sh", self._task_prolog(), 0o755)
        self._write("slurm.conf", self._slurm_conf() + settings + "\n")

    def _task_prolog(self):
        """The script that tells tasks which simulated GPUs are those of their node."""
        lines = ["#!/bin/sh"]
        for key, value in self.node_environment("$SLURMD_NODENAME").items():
            if key.startswith(("ZEUS", "LD_LIBRARY_PATH")):
                lines.append(f'echo "export {key}={value}"')
        return "\n".join(lines) + "\n"

    def node_environment(self, node):
        """For programs that see the GPUs of a node."""
        return dict(self.environment, **self.driver, ZEUS_SIM_NODE=node, ZEUS_ACTIVITY_DIR=self.path(node, "activity"),
                    ZEUS_KNOB_DIR=self.path(node, "knobs"), ZEUSD_SOCK_PATH=self.socket_path(node))

    def _driver(self):
        """The variables by which programs find the simulated driver, as `zeus sim env` sets them."""
        text = self._run_once(["sh", "-c", 'eval "$("$1" sim env --name "$2")" && env -0', "sh", ZEUS, self.names[0]])
        variables = dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
        return {name: variables[name] for name in ("ZEUS_NVML_LIBRARY", "LD_LIBRARY_PATH")}

    def _slurm_conf(self):
        here, host, first = self.folder, socket.gethostname().split(".")[0], self.ports.first
        shards = f",shard:{self.shards * self.gpus_per_node}" if self.shards else ""
        nodes = "\n".join(
            f"NodeName={name} NodeHostName={host} NodeAddr=127.0.0.1 Port={first + 2 + i} Boards=1 SocketsPerBoard=1 CoresPerSocket=8 "
            f"ThreadsPerCore=1 RealMemory=2000 Gres=gpu:v100:{self.gpus_per_node}{shards} State=UNKNOWN" for i, name in enumerate(self.names))
        track = "cgroup" if self.constrain else "linuxproc"
        if self.accounting:
            accounting = f"""AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={first + 1}
AccountingStoragePass={here}/munge/sock
AccountingStorageTRES=gres/gpu,energy"""
        else:
            accounting = "AccountingStorageType=accounting_storage/none"
        # The last of two lines wins, so settings of a test may repeat a name.
        return f"""ClusterName=zeus
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={here}/munge/sock
SlurmctldPort={first}
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd-%n.pid
SlurmdSpoolDir={here}/spool-%n
StateSaveLocation={here}/state
SlurmctldLogFile={here}/log/slurmctld.log
SlurmdLogFile={here}/log/%n.log
ProctrackType=proctrack/{track}
TaskPlugin=task/{"cgroup" if self.constrain else "none"}
TaskProlog={here}/task_prolog.sh
TmpFS={here}/tmp-%n
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
{accounting}
JobCompType=jobcomp/filetxt
JobCompLoc={here}/log/jobcomp.txt
GresTypes=gpu{",shard" if self.shards else ""}
PrologFlags=Alloc
PlugStackConfig={here}/plugstack.conf
SlurmdParameters=config_overrides
{nodes}
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    # Processes.

    def _start(self, zeusd, configuration):
        self.start("munged", ["setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "munged", "--foreground", f"--key-file={self.path('munge', 'key')}",
                              f"--socket={self.path('munge', 'sock')}", f"--pid-file={self.path('munge', 'pid')}",
                              f"--log-file={self.path('munge', 'log')}", f"--seed-file={self.path('munge', 'seed')}"])
        for name in self.names:
            if zeusd:
                self._write(f"{name}.toml", configuration)
                self.start_zeusd(name)
        self._await(lambda: os.path.exists(self.path("munge", "sock")), "munge")
        if self.accounting:
            self._start_accounting()
        self.start_slurmctld()
        for name in self.names:
            self.start_slurmd(name)
        # A client that comes too early waits for seconds before it tries again.
        self._await(lambda: self._answers(self.ports.first), "slurmctld")
        if zeusd:
            for name in self.names:
                self.await_zeusd(name)
        self.await_nodes()

    def _run_once(self, command, **environment):
        done = subprocess.run(command, env=dict(self.environment, **environment), text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout

    def log(self, name):
        """Returns the text of a log file."""
        try:
            with open(self.path("log", name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self, name, command, environment=None):
        """Starts a program that ends with the cluster; its output goes to log(name + ".out")."""
        self.pids[name] = self.keeper.start(command, environment or self.environment, self.path("log", f"{name}.out"))
        return self.pids[name]

    def _await(self, condition, name):
        """Returns when the condition holds; fails with its last words when the program has ended."""
        deadline = time.monotonic() + 60
        while not condition():
            if (name in self.pids and self.keeper.ended(self.pids[name])) or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start: {self.log(name + '.out')[-2000:]} {self.log(name + '.log')[-2000:]}")
            time.sleep(0.01)

    @staticmethod
    def _answers(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def start_slurmctld(self):
        self.start("slurmctld", ["slurmctld", "-D", "-i", "-f", self.path("slurm.conf")])

    def start_slurmd(self, node):
        self.start(f"slurmd-{node}", ["slurmd", "-D", "-N", node, "-f", self.path("slurm.conf")],
                   dict(self.environment, ZEUSD_SOCK_PATH=self.socket_path(node)))

    def start_zeusd(self, node):
        """Does not wait until it is ready."""
        folder = self.path(node)
        environment = dict(self.node_environment(node), STATE_DIRECTORY=f"{folder}/state", LOGS_DIRECTORY=folder)
        del environment["ZEUSD_SOCK_PATH"]
        self.start(f"zeusd-{node}", [ZEUSD, "serve", "--socket-path", self.socket_path(node), "--config", self.path(f"{node}.toml")],
                   environment)

    def await_zeusd(self, node):
        def ready():
            try:
                return self.ask(node, "GET", "/readyz")[0] == 200
            except OSError:
                return False
        self._await(ready, f"zeusd-{node}")

    def _start_accounting(self):
        data, db_socket = self.path("db", "data"), self.path("db", "sock")
        os.mkdir(self.path("db"), 0o755)
        mysql = pwd.getpwnam("mysql")
        os.chown(self.path("db"), mysql.pw_uid, mysql.pw_gid)
        self._run_once(["mariadb-install-db", "--user=mysql", f"--datadir={data}", "--auth-root-authentication-method=normal",
                        "--skip-test-db", "--force"])
        self.start("mariadbd", ["setpriv", "--reuid=mysql", "--regid=mysql", "--init-groups", "mariadbd", "--no-defaults", f"--datadir={data}",
                                f"--socket={db_socket}", "--skip-networking", f"--pid-file={self.path('db', 'pid')}"])
        self._await(lambda: os.path.exists(db_socket), "mariadbd")
        self._run_once(["mariadb", f"--socket={db_socket}", "-e",
                        "create database slurm_acct_db; create user slurm@localhost identified by 'slurm'; "
                        "grant all on slurm_acct_db.* to slurm@localhost"])
        self._write("slurmdbd.conf", f"""AuthType=auth/munge
AuthInfo=socket={self.path('munge', 'sock')}
DbdHost=localhost
DbdPort={self.ports.first + 1}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
PidFile={self.path('slurmdbd.pid')}
LogFile={self.path('log', 'slurmdbd.log')}
""", 0o600)
        self.start("slurmdbd", ["slurmdbd", "-D"], dict(self.environment, MYSQL_UNIX_PORT=db_socket,
                                                        SLURM_CONF=self.path("slurmdbd.conf")))
        self._await(lambda: self._answers(self.ports.first + 1), "slurmdbd")
        self._await(lambda: self.run("sacctmgr", "-i", "add", "cluster", "zeus", check=False).returncode == 0, "slurmdbd")

    def stop(self):
        """Ends everything; files are gone afterwards."""
        self.keeper.stop()
        self.ports.claim.close()

    # For tests.

    def run(self, *command, check=True, timeout=60, user=None, **environment):
        """Runs a client. Clients try for minutes to reach a controller that is away, hence the time limit."""
        prefix = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"] if user else []
        done = subprocess.run([*prefix, *command], env=dict(self.environment, **environment), text=True, capture_output=True,
                              timeout=timeout, stdin=subprocess.DEVNULL, check=False, cwd="/tmp")
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        return done

    def submit(self, script, *options, user=None):
        """Queues a batch script: the job's number. Its output is in output(job)."""
        name = self.path(f"batch-{time.monotonic_ns()}.sh")
        self._write(os.path.basename(name), "#!/bin/sh\n" + script + "\n", 0o755)
        output = self.path(f"tmp-{self.names[0]}", "slurm-%j.out")
        done = self.run("sbatch", "--parsable", f"--output={output}", *options, name, user=user)
        return int(done.stdout.strip().split(";")[0])

    def output(self, job):
        try:
            with open(self.path(f"tmp-{self.names[0]}", f"slurm-{job}.out"), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def job_state(self, job):
        """RUNNING, COMPLETED, …"""
        words = self.run("scontrol", "-o", "show", "job", str(job)).stdout.split()
        return next(word.split("=")[1] for word in words if word.startswith("JobState="))

    def await_state(self, job, *states):
        wait_until(lambda: self.job_state(job) in states,
                   f"job {job} does not become {' or '.join(states)}: {self.job_state(job)} {self.output(job)}")

    def await_end(self, job):
        """Returns the final state."""
        # Slurm repeats a message that was lost on a busy machine after a minute.
        wait_until(lambda: self.job_state(job) not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"),
                   f"job {job} does not end: {self.job_state(job)}", seconds=300)
        return self.job_state(job)

    def node_states(self):
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %T", timeout=20, check=False).stdout.splitlines()
        return dict(line.split() for line in lines)

    def await_nodes(self):
        """Returns when all nodes are idle."""
        def idle():
            states = self.node_states()
            return len(states) == len(self.names) and set(states.values()) == {"idle"}
        self._await(idle, "slurmctld")

    def kill(self, name, number=9):
        """Sends a signal to one of `pids`; returns when the process has ended."""
        os.kill(self.pids[name], number)
        wait_until(lambda: self.keeper.ended(self.pids[name]), f"{name} does not end")

    def stepds(self, job):
        """The processes of Slurm that run the steps of a job."""
        return self.processes(rf"^slurmstepd: \[{job}\.")

    def processes(self, pattern):
        """Those of this cluster whose command line has the pattern."""
        done = subprocess.run(["pgrep", "-f", pattern], text=True, capture_output=True, check=False)
        return [int(pid) for pid in done.stdout.split() if self._is_ours(pid)]

    def _is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                return self.folder in file.read()
        except OSError:
            return False

    def ask(self, node, method, target, body=None):
        """A request to the node's zeusd: status and answer."""
        connection = UnixConnection(self.socket_path(node))
        try:
            connection.request(method, target, body=json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text
        finally:
            connection.close()

    def limits(self, node):
        """The power limits of the node's GPUs, read past the daemon."""
        done = subprocess.run([sys.executable, "-c", READ_LIMITS], env=self.node_environment(node), text=True, capture_output=True,
                              timeout=60, check=True)
        return json.loads(done.stdout)

    def job_record(self, node, job):
        """The job as the node's zeusd knows it, or None."""
        status, record = self.ask(node, "GET", f"/v1/jobs/slurm:zeus.{job}")
        return record if status == 200 else None

    def truth(self, node):
        """Exact energy and power of the node's GPUs, in PCI order."""
        return json.loads(self._run_once([ZEUS, "sim", "truth", "--json", "--name", node]))


def main():
    parser = argparse.ArgumentParser(description="Runs a command on a Slurm cluster of virtual nodes with simulated GPUs.")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--gpus", default="1xV100")
    parser.add_argument("--accounting", action="store_true")
    parser.add_argument("--plugins", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    reason = missing(accounting=options.accounting, plugins=options.plugins)
    if reason:
        sys.exit(f"slurm_testing: {reason}")
    cluster = Cluster(options.nodes, options.gpus, accounting=options.accounting, plugins=options.plugins,
                      spank=f"admin_comment={ZEUS}")
    try:
        sys.exit(subprocess.run(options.command, env=cluster.environment, check=False).returncode)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
