#include "zeus/daemon/peer_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "zeus/base/process.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace peer_reader_test {

sockaddr_un AddressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// Connects to a listening socket from a forked child, after the child has done `prepare`.
class PeerReaderTest : public ::testing::Test {
 protected:
  PeerReaderTest() {
    const sockaddr_un address = AddressOf(path_);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::chmod(path_.c_str(), 0777), 0);
    EXPECT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  }
  ~PeerReaderTest() override { EndChild(); }

  void EndChild() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  // False when the child could not prepare itself, as where this needs rights.
  bool Connect(const std::function<bool()>& prepare) {
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const sockaddr_un address = AddressOf(path_);
      const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
      const bool done =
          prepare() &&
          ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
      if (!done) ::_exit(1);
      for (;;) ::pause();
    }
    // A child that fails ends; one that connects does not.
    for (;;) {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        child_ = 0;
        return false;
      }
      accepted_ = std::make_unique<FileDescriptor>(
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (accepted_->valid()) return true;
      ::usleep(500);
    }
  }

  Caller Read(const PeerReader& reader) const {
    auto caller = reader.Read(accepted_->get(), 7);
    EXPECT_TRUE(caller.ok()) << caller.error().message;
    return caller.ok() ? std::move(caller).value() : Caller();
  }

  zeus::testing::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "socket";
  const FileDescriptor listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)};
  std::unique_ptr<FileDescriptor> accepted_;
  pid_t child_ = 0;
};

TEST_F(PeerReaderTest, AProcessOfTheSameMachineIsKnown) {
  ASSERT_TRUE(Connect([] { return true; }));
  const Caller caller = Read(PeerReader());
  EXPECT_EQ(caller.transport, Caller::Transport::kUnixSocket);
  EXPECT_EQ(caller.subject, fmt::format("uid:{}", ::getuid()));
  EXPECT_EQ(caller.uid, ::getuid());
  EXPECT_EQ(caller.gid, ::getgid());
  EXPECT_EQ(caller.connection, 7u);
  EXPECT_FALSE(caller.contained);
  ASSERT_TRUE(caller.process);
  EXPECT_EQ(caller.process->pid, child_);
  EXPECT_EQ(*caller.process, ProcessWithPid(child_).value());
  EXPECT_NE(caller.executable.find("daemon_test"), std::string::npos);
  EXPECT_FALSE(caller.token_scopes);
  ASSERT_TRUE(caller.pidfd);
  EXPECT_NE(::fcntl(caller.pidfd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PeerReaderTest, UserAndGroupsAreThoseOfTheConnection) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_TRUE(Connect([] {
    const std::vector<gid_t> groups = {100, 2000};
    return ::setgroups(groups.size(), groups.data()) == 0 && ::setgid(1002) == 0 &&
           ::setuid(1001) == 0;
  }));
  const Caller caller = Read(PeerReader());
  EXPECT_EQ(caller.uid, 1001u);
  EXPECT_EQ(caller.gid, 1002u);
  EXPECT_EQ(caller.groups, (std::vector<gid_t>{100, 2000}));
  EXPECT_EQ(caller.subject, "uid:1001");
  EXPECT_FALSE(caller.is_host_root());
}

TEST_F(PeerReaderTest, NoSupplementaryGroupsAreNone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can leave its groups";
  ASSERT_TRUE(Connect([] { return ::setgroups(0, nullptr) == 0; }));
  EXPECT_TRUE(Read(PeerReader()).groups.empty());
}

TEST_F(PeerReaderTest, AnotherMountNamespaceIsAContainer) {
  if (!Connect([] { return ::unshare(CLONE_NEWNS) == 0; }))
    GTEST_SKIP() << "this process may not make a mount namespace";
  const Caller caller = Read(PeerReader());
  EXPECT_TRUE(caller.contained);
  EXPECT_FALSE(caller.is_host_root());
  EXPECT_TRUE(caller.process) << "its number is visible";
  // Root of a container has a name of its own, so that no list mistakes it for the machine's.
  const std::string user = fmt::format("uid:{}", ::getuid());
  EXPECT_EQ(caller.subject, ::getuid() == 0 ? user + ":contained" : user);
}

// A tree of /proc in which process 50 is 3 in a pid namespace of its own, beside others.
class ProcessAsSeenByTest : public ::testing::Test {
 protected:
  ProcessAsSeenByTest() {
    Add(40, "inner", "40\t1");
    Add(50, "inner", "50\t3");
    Add(60, "other", "60\t3");
    Add(3, "outer", "3");
    procfs_.AddLink("self/ns/pid", "outer");
    caller_.process = ProcessIdentity{.pid = 40};
  }
  void Add(int pid, const char* name_space, const char* numbers) {
    std::string zeros;
    for (int i = 0; i < 17; ++i) zeros += " 0";
    const std::string folder = std::to_string(pid);
    procfs_.AddFile(folder + "/stat", fmt::format("{} (x) S 1{} {} 0\n", pid, zeros, pid));
    procfs_.AddFile(folder + "/status", fmt::format("Name:\tx\nNSpid:\t{}\nNSsid:\t7\n", numbers));
    procfs_.AddLink(folder + "/ns/pid", name_space);
  }
  Result<ProcessIdentity> Find(std::int64_t pid) {
    return ProcessAsSeenBy(caller_, pid, procfs_.path());
  }

  zeus::testing::TemporaryDirectory procfs_;
  Caller caller_{};
};

TEST_F(ProcessAsSeenByTest, ANumberIsThatOfTheCallersNamespace) {
  EXPECT_EQ(Find(3).value().pid, 50);
  EXPECT_EQ(Find(1).value().pid, 40);
  for (const std::int64_t pid : {50, 60, 2, 0, -1}) EXPECT_FALSE(Find(pid).ok()) << pid;
}

TEST_F(ProcessAsSeenByTest, InTheDaemonsOwnNamespaceItIsTheNumber) {
  caller_.process = ProcessIdentity{.pid = 3};
  EXPECT_EQ(Find(3).value().pid, 3);
  EXPECT_EQ(Find(50).value().pid, 50);
}

TEST_F(ProcessAsSeenByTest, ACallerThatCannotBeSeenHasNoProcesses) {
  caller_.process.reset();
  EXPECT_EQ(Find(3).error().code, ErrorCode::kNotFound);
  caller_.transport = Caller::Transport::kTcp;
  EXPECT_EQ(Find(3).value().pid, 3) << "an administrator's number over TCP is the machine's";
}

TEST_F(PeerReaderTest, RootOfAUserNamespaceIsTheUserOutside) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const bool connected = Connect([] {
    if (::setgid(1002) != 0 || ::setuid(1001) != 0) return false;
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::unshare(CLONE_NEWUSER) != 0) return false;
    const FileDescriptor map(::open("/proc/self/uid_map", O_WRONLY));
    const std::string line = "0 1001 1";
    return ::write(map.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
           ::getuid() == 0;
  });
  if (!connected) GTEST_SKIP() << "this machine allows no user namespaces";
  const Caller caller = Read(PeerReader());
  EXPECT_EQ(caller.uid, 1001u);
  EXPECT_TRUE(caller.contained);
}

TEST_F(PeerReaderTest, AProcessThatHasEndedHasNoIdentityToBorrow) {
  ASSERT_TRUE(Connect([] { return true; }));
  EndChild();
  const Caller caller = Read(PeerReader());
  EXPECT_EQ(caller.uid, ::getuid()) << "the kernel remembers";
  EXPECT_FALSE(caller.process);
  EXPECT_TRUE(caller.contained) << "root that cannot be looked at is no administrator";
  EXPECT_FALSE(caller.is_host_root());
}

// The next process with a number that was free: as clone3() gives it to root.
pid_t ForkWithPid(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (child != 0) return child;
  for (;;) ::pause();
}

TEST_F(PeerReaderTest, TheNextProcessWithTheSameNumberLendsNoIdentity) {
  ASSERT_TRUE(Connect([] { return true; }));
  const pid_t number = child_;
  const Seconds accepted = CurrentBootTime().since;
  EndChild();
  // Its start time is counted in ticks of 10 ms.
  while (CurrentBootTime().since < accepted + Seconds(0.05)) ::usleep(1000);
  child_ = ForkWithPid(number);
  if (child_ != number) {
    EndChild();
    GTEST_SKIP() << "this process may not choose the number of another one";
  }
  const Caller caller = Read(PeerReader());
  EXPECT_FALSE(caller.process);
  EXPECT_TRUE(caller.contained);
  EXPECT_EQ(caller.executable, "");
  EXPECT_FALSE(PidfdOfProcessBefore(number, accepted)) << "nor without help of the socket";
  EXPECT_TRUE(PidfdOfProcessBefore(number, CurrentBootTime().since));
}

TEST_F(PeerReaderTest, AProcessOutsideOfTheReadersPidNamespaceIsContained) {
  const sockaddr_un address = AddressOf(path_);
  const FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const FileDescriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const auto in_another_namespace = [](const std::function<bool()>& check) {
    return zeus::testing::HoldsInAChild(
        [&] { return ::unshare(CLONE_NEWPID) == 0 && zeus::testing::HoldsInAChild(check); });
  };
  if (!in_another_namespace([] { return ::getpid() == 1; }))
    GTEST_SKIP() << "this process may not make a pid namespace";
  EXPECT_TRUE(in_another_namespace([&] {
    const auto caller = PeerReader().Read(accepted.get(), 1);
    return caller.ok() && caller.value().contained && !caller.value().process &&
           caller.value().uid == ::getuid() && !caller.value().is_host_root();
  }));
}

TEST_F(PeerReaderTest, ADescriptorThatIsPassedOnKeepsTheIdentityOfWhoConnected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // The child changes its user after it has connected; so would another process with its socket.
  ASSERT_TRUE(Connect([this] {
    const sockaddr_un address = AddressOf(path_);
    const int early = ::socket(AF_UNIX, SOCK_STREAM, 0);
    return ::connect(early, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
           ::setgid(1002) == 0 && ::setuid(1001) == 0;
  }));
  EXPECT_EQ(Read(PeerReader()).uid, 0u) << "the early connection was root's";
}

// A tree like /proc in which this machine has other namespaces.
TEST_F(PeerReaderTest, EachNamespaceCountsAndSoDoesOneThatCannotBeRead) {
  ASSERT_TRUE(Connect([] { return true; }));
  zeus::testing::TemporaryDirectory procfs;
  const std::string pid = std::to_string(child_);
  procfs.AddFile(pid + "/stat", fmt::format("{} (x) S 1{} 500 0\n", child_, [] {
                   std::string fields;
                   for (int i = 0; i < 17; ++i) fields += " 0";
                   return fields;
                 }()));
  procfs.AddFile(pid + "/cgroup", "0::/system.slice/slurmstepd.scope/job_5/step_0\n");
  for (const char* name : {"pid", "user", "mnt"}) {
    procfs.AddLink(fmt::format("self/ns/{}", name), "a");
    procfs.AddLink(fmt::format("{}/ns/{}", pid, name), "a");
  }
  const PeerReader reader(procfs.path());
  const Caller same = Read(reader);
  ASSERT_TRUE(same.process);
  EXPECT_EQ(same.process->start_ticks, 500u);
  EXPECT_EQ(same.process->pid_namespace, "a");
  EXPECT_FALSE(same.contained);
  EXPECT_EQ(same.cgroup, "/system.slice/slurmstepd.scope/job_5/step_0");
  for (const char* name : {"pid", "user", "mnt"}) {
    const auto link = procfs.path() / pid / "ns" / name;
    std::filesystem::remove(link);
    EXPECT_TRUE(Read(reader).contained) << name << " cannot be read";
    std::filesystem::create_symlink("b", link);
    EXPECT_TRUE(Read(reader).contained) << name << " differs";
    std::filesystem::remove(link);
    std::filesystem::create_symlink("a", link);
  }
  EXPECT_FALSE(Read(reader).contained);
  // A service with mounts of its own, as systemd starts one: callers have those of the first
  // process.
  const auto self = procfs.path() / "self/ns/mnt";
  std::filesystem::remove(self);
  std::filesystem::create_symlink("mounts of the service", self);
  EXPECT_TRUE(Read(PeerReader(procfs.path())).contained) << "the first process cannot be read";
  procfs.AddLink("1/ns/mnt", "a");
  EXPECT_FALSE(Read(PeerReader(procfs.path())).contained);
  const auto link = procfs.path() / pid / "ns/mnt";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("mounts of a container", link);
  EXPECT_TRUE(Read(PeerReader(procfs.path())).contained);
}

TEST_F(PeerReaderTest, AProcessThatStartedLaterIsNotTheOneThatConnected) {
  const Seconds before = CurrentBootTime().since - Seconds(60);
  ASSERT_TRUE(Connect([] { return true; }));
  EXPECT_TRUE(PidfdOfProcessBefore(child_, CurrentBootTime().since));
  EXPECT_FALSE(PidfdOfProcessBefore(child_, before));
  const pid_t ended = child_;
  EndChild();
  EXPECT_FALSE(PidfdOfProcessBefore(ended, CurrentBootTime().since));
}

TEST_F(PeerReaderTest, ASocketWithoutAPeerTellsNothing) {
  const FileDescriptor alone(::socket(AF_INET, SOCK_STREAM, 0));
  const auto caller = PeerReader().Read(alone.get(), 1);
  ASSERT_FALSE(caller.ok());
  EXPECT_EQ(caller.error().code, ErrorCode::kUnavailable);
}

TEST(PeerReaderOverTcpTest, NobodyIsKnown) {
  const Caller caller = PeerReader::OverTcp(3);
  EXPECT_EQ(caller.transport, Caller::Transport::kTcp);
  EXPECT_EQ(caller.subject, "anonymous");
  EXPECT_EQ(caller.connection, 3u);
  EXPECT_FALSE(caller.uid);
  EXPECT_FALSE(caller.is_host_root());
}

}  // namespace peer_reader_test
}  // namespace zeus::daemon
