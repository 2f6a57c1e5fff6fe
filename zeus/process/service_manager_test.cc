#include "zeus/process/service_manager.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <string>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace service_manager_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ::pid_t kThis = 4711;
constexpr int kFirst = 200;  // Descriptors that the test program does not use.

class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceEnvironment environment() {
    return {.read = [this](const std::string& name) -> std::optional<std::string> {
              const auto found = variables_.find(name);
              if (found == variables_.end()) return std::nullopt;
              return found->second;
            },
            .remove = [this](const char* name) { variables_.erase(name); },
            .process = kThis,
            .first_descriptor = kFirst};
  }

  // Opens the descriptors that a manager would pass, inheritable as it does.
  void Pass(int count) {
    for (int i = 0; i < count; ++i) {
      const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      ASSERT_EQ(::dup2(socket.get(), kFirst + i), kFirst + i);
    }
  }
  static bool IsOpen(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

  // Binds the manager's end of NOTIFY_SOCKET.
  void Listen(const std::string& name) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(manager_.get(), reinterpret_cast<const ::sockaddr*>(&address), size), 0);
    variables_["NOTIFY_SOCKET"] = name;
  }
  std::string Received() {
    char text[500];
    const auto size = ::recv(manager_.get(), text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(size));
  }

  std::map<std::string, std::string> variables_{};
  FileDescriptor manager_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(ServiceManagerTest, SocketsComeWithTheirNamesAndAreNotInherited) {
  Pass(2);
  variables_ = {{"LISTEN_PID", "4711"}, {"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "http:board"}};
  {
    const auto sockets = TakeActivatedSockets(environment());
    ASSERT_TRUE(sockets.ok()) << sockets.error().message;
    ASSERT_EQ(sockets.value().size(), 2U);
    EXPECT_EQ(sockets.value()[0].name, "http");
    EXPECT_EQ(sockets.value()[1].name, "board");
    EXPECT_EQ(sockets.value()[1].descriptor->get(), kFirst + 1);
    EXPECT_EQ(::fcntl(kFirst, F_GETFD), FD_CLOEXEC);
    EXPECT_THAT(variables_, IsEmpty());
  }
  EXPECT_FALSE(IsOpen(kFirst));
}

TEST_F(ServiceManagerTest, ASocketWithoutANameIsUnknown) {
  Pass(1);
  variables_ = {{"LISTEN_PID", "4711"}, {"LISTEN_FDS", "1"}};
  EXPECT_EQ(TakeActivatedSockets(environment()).value().at(0).name, "unknown");
}

TEST_F(ServiceManagerTest, SocketsOfAnotherProcessAreLeftAlone) {
  Pass(1);
  variables_ = {{"LISTEN_PID", "1"}, {"LISTEN_FDS", "1"}, {"LISTEN_FDNAMES", "http"}};
  EXPECT_THAT(TakeActivatedSockets(environment()).value(), IsEmpty());
  EXPECT_THAT(variables_, IsEmpty());
  EXPECT_TRUE(IsOpen(kFirst));
  ::close(kFirst);
  EXPECT_THAT(TakeActivatedSockets(environment()).value(), IsEmpty());
}

TEST_F(ServiceManagerTest, ContradictionsAreRefused) {
  const auto refusal = [this](const std::string& count, const std::string& names) {
    variables_ = {{"LISTEN_PID", "4711"}, {"LISTEN_FDS", count}, {"LISTEN_FDNAMES", names}};
    const auto sockets = TakeActivatedSockets(environment());
    return sockets.ok() ? "accepted" : sockets.error().message;
  };
  EXPECT_THAT(refusal("2", "http"), HasSubstr("has 1 names"));
  EXPECT_THAT(refusal("x", "http"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("99999999999", "http"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("1", "http"), HasSubstr("descriptor 200 is not open"));
  EXPECT_EQ(refusal("0", ""), "accepted");
}

TEST_F(ServiceManagerTest, StatesReachASocketInTheFileSystem) {
  Listen((directory_.path() / "notify").string());
  const ServiceNotifier notifier(environment());
  EXPECT_TRUE(notifier.has_manager());
  EXPECT_FALSE(variables_.contains("NOTIFY_SOCKET"));
  ASSERT_TRUE(notifier.Ready("8 GPUs\nREADY=0").ok());
  EXPECT_EQ(Received(), "READY=1\nSTATUS=8 GPUs READY=0\n");
  ASSERT_TRUE(notifier.Ready().ok());
  EXPECT_EQ(Received(), "READY=1\n");
  ASSERT_TRUE(notifier.Report("3 leases").ok());
  EXPECT_EQ(Received(), "STATUS=3 leases\n");
  ASSERT_TRUE(notifier.Watchdog().ok());
  EXPECT_EQ(Received(), "WATCHDOG=1\n");
  ASSERT_TRUE(notifier.Reloading(TimePoint(Seconds(1.5))).ok());
  EXPECT_EQ(Received(), "RELOADING=1\nMONOTONIC_USEC=1500000\n");
  ASSERT_TRUE(notifier.Stopping().ok());
  EXPECT_EQ(Received(), "STOPPING=1\n");
}

TEST_F(ServiceManagerTest, StatesReachAnAbstractSocket) {
  Listen("@zeus-test-" + directory_.path().filename().string());
  ASSERT_TRUE(ServiceNotifier(environment()).Watchdog().ok());
  EXPECT_EQ(Received(), "WATCHDOG=1\n");
}

TEST_F(ServiceManagerTest, WithoutAManagerReportsDoNothing) {
  const ServiceNotifier notifier(environment());
  EXPECT_FALSE(notifier.has_manager());
  EXPECT_FALSE(notifier.watchdog_timeout());
  EXPECT_TRUE(notifier.Ready().ok());
}

TEST_F(ServiceManagerTest, AManagerThatCannotBeReachedIsAnError) {
  for (const std::string name : {"/nowhere/notify", "vsock:2:1234", "/"}) {
    variables_["NOTIFY_SOCKET"] = name;
    EXPECT_FALSE(ServiceNotifier(environment()).Ready().ok()) << name;
  }
  variables_["NOTIFY_SOCKET"] = std::string(200, '/');
  EXPECT_FALSE(ServiceNotifier(environment()).Ready().ok());
}

TEST_F(ServiceManagerTest, TheWatchdogIsForOneProcess) {
  const auto timeout = [this](const std::string& period, const std::string& process) {
    variables_ = {{"WATCHDOG_USEC", period}};
    if (!process.empty()) variables_["WATCHDOG_PID"] = process;
    const ServiceNotifier notifier(environment());
    EXPECT_THAT(variables_, IsEmpty());
    return notifier.watchdog_timeout();
  };
  EXPECT_EQ(timeout("20000000", "4711"), Seconds(20));
  EXPECT_EQ(timeout("500000", ""), Seconds(0.5));
  EXPECT_EQ(timeout("20000000", "1"), std::nullopt);
  EXPECT_EQ(timeout("0", ""), std::nullopt);
  EXPECT_EQ(timeout("soon", ""), std::nullopt);
}

}  // namespace service_manager_test
}  // namespace zeus
