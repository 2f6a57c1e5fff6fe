#include "zeus/http/socket_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::http {
namespace socket_file_test {

using ::testing::HasSubstr;

class SocketFileTest : public ::testing::Test {
 protected:
  static ::sockaddr_un Address(const std::string& path) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  static bool Connects(const FileDescriptor& client, const std::string& path) {
    const auto address = Address(path);
    return ::connect(client.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) ==
           0;
  }
  static std::unique_ptr<FileDescriptor> Client() {
    return std::make_unique<FileDescriptor>(
        ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  struct ::stat State() const {
    struct ::stat state {};
    EXPECT_EQ(::lstat(path_.c_str(), &state), 0);
    return state;
  }

  zeus::testing::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "run/zeus/zeus.sock").string();
};

TEST_F(SocketFileTest, AMissingFolderIsMadeAndTheFileIsRemovedAtTheEnd) {
  {
    const auto file = SocketFile::Listen(path_, {});
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_TRUE(Connects(*Client(), path_));
    EXPECT_FALSE(SocketFile::Listen(path_, {}).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(std::filesystem::is_directory(directory_.path() / "run/zeus"));
}

TEST_F(SocketFileTest, ModeAndOwnerAreAsAsked) {
  const auto file = SocketFile::Listen(path_, {.mode = 0606});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(State().st_mode & 0777U, 0606U);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string other = path_ + "2";
  const auto given = SocketFile::Listen(other, {.mode = 0660, .owner = 65534, .group = 65533});
  ASSERT_TRUE(given.ok());
  struct ::stat state {};
  ASSERT_EQ(::lstat(other.c_str(), &state), 0);
  EXPECT_EQ(state.st_uid, 65534U);
  EXPECT_EQ(state.st_gid, 65533U);
}

TEST_F(SocketFileTest, ASocketOnWhichNobodyAnswersIsReplaced) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  {
    const auto dead = Client();
    const auto address = Address(path_);
    ASSERT_EQ(::bind(dead->get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
              0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(SocketFile::Listen(path_, {}).ok());
}

TEST_F(SocketFileTest, AServerWhoseQueueIsFullKeepsItsSocket) {
  const auto file = SocketFile::Listen(path_, {}).value()->TakeDescriptor();
  const std::string busy = path_ + "2";
  const auto server = Client();
  const auto address = Address(busy);
  ASSERT_EQ(::bind(server->get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
            0);
  ASSERT_EQ(::listen(server->get(), 0), 0);
  std::vector<std::unique_ptr<FileDescriptor>> waiting;
  do waiting.push_back(Client());
  while (Connects(*waiting.back(), busy));
  const auto second = SocketFile::Listen(busy, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("another server does"));
  EXPECT_TRUE(std::filesystem::exists(busy));
}

TEST_F(SocketFileTest, AFileThatIsNoSocketStays) {
  directory_.AddFile("run/zeus/zeus.sock", "precious");
  EXPECT_FALSE(SocketFile::Listen(path_, {}).ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(SocketFileTest, TheSocketOfASuccessorIsNotRemoved) {
  auto first = SocketFile::Listen(path_, {}).value();
  first->TakeDescriptor();  // It is closed at once.
  const auto second = SocketFile::Listen(path_, {});
  ASSERT_TRUE(second.ok());
  first.reset();
  EXPECT_TRUE(Connects(*Client(), path_));
}

TEST_F(SocketFileTest, OnlyListeningStreamSocketsAreTakenOver) {
  const auto file = SocketFile::Listen(path_, {}).value();
  const auto descriptor = file->TakeDescriptor();
  const auto listener = DuplicateListener(descriptor->get());
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener.value().path, path_);
  EXPECT_NE(listener.value().descriptor->get(), descriptor->get());
  EXPECT_FALSE(DuplicateListener(Client()->get()).ok());
  const FileDescriptor datagrams(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(DuplicateListener(datagrams.get()).ok());
  EXPECT_FALSE(DuplicateListener(-1).ok());
}

}  // namespace socket_file_test
}  // namespace zeus::http
