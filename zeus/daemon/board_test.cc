#include "zeus/daemon/board.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace board_test {

using namespace zeus::literals;

wire::BoardDescription OneGpu() {
  return {.kind = wire::BoardKind::kGpu, .devices = {{.name = "gpu:0", .uuid = "GPU-1"}}};
}

TEST(BoardTest, ItsMemoryCannotBeChangedThroughItsDescriptor) {
  const auto board = Board::Create(OneGpu(), 1).value();
  const int seals = ::fcntl(board->descriptor(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);

  EXPECT_LT(::write(board->descriptor(), "x", 1), 0);
  EXPECT_NE(::ftruncate(board->descriptor(), 0), 0);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, board->descriptor(), 0),
            MAP_FAILED);
}

TEST(BoardTest, ItsMemoryCannotBeChangedByOpeningItAgain) {
  const auto board = Board::Create(OneGpu(), 1).value();
  const std::string path = "/proc/self/fd/" + std::to_string(board->descriptor());
  const FileDescriptor again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again.valid());

  EXPECT_LT(::write(again.get(), "x", 1), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
}

TEST(BoardTest, TooManyDevicesAreRefused) {
  wire::BoardDescription description = OneGpu();
  description.devices.resize(wire::board::kMostDevices + 1);
  EXPECT_EQ(Board::Create(description, 1).error().code, ErrorCode::kInvalidArgument);
}

TEST(BoardServerTest, ASecondDaemonDoesNotTakeTheSocketOfTheFirst) {
  const zeus::testing::TemporaryDirectory folder;
  const std::string path = folder.path() / "board.sock";
  const auto first = BoardServer::Listen(path).value();
  EXPECT_EQ(BoardServer::Listen(path).error().code, ErrorCode::kUnavailable);
}

TEST(BoardServerTest, TheSocketOfADaemonThatIsGoneIsReplaced) {
  const zeus::testing::TemporaryDirectory folder;
  const std::string path = folder.path() / "board.sock";
  { const auto first = BoardServer::Listen(path).value(); }
  EXPECT_TRUE(BoardServer::Listen(path).ok());
}

}  // namespace board_test
}  // namespace zeus::daemon
