#include "zeus/gateway/listening_process.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeus/base/file_descriptor.h"

namespace zeus::gateway::listening_process_test {
namespace {

TEST(ListeningProcessTest, ThisProcessIsFoundByItsPort) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_THAT(ListeningProcesses(port), ::testing::IsEmpty());
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_THAT(ListeningProcesses(port), ::testing::Contains(::getpid()));
}

TEST(ListeningProcessTest, AnUnreadableSystemHasNone) {
  EXPECT_THAT(ListeningProcesses(80, "/nonexistent"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace zeus::gateway::listening_process_test
