#include "zeus/monitor/sharing/activity_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::activity {
namespace activity_file_test {

using ::testing::HasSubstr;

class ActivityFileTest : public ::testing::Test {
 protected:
  auto Open() { return ActivityFile::Open(path_, clock_); }

  zeus::testing::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "activity";
  VirtualClock clock_;
};

TEST_F(ActivityFileTest, ANewFileIsForItsOwnerAloneAndTakesLittleMemory) {
  ASSERT_TRUE(Open().ok());

  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), sizeof(Layout));
  EXPECT_LT(status.st_blocks * 512, 200'000);
}

TEST_F(ActivityFileTest, WhatOneWritesTheOtherReads) {
  auto first = Open().value();
  auto second = Open().value();
  first->layout().slots[3].process.store(42);

  EXPECT_EQ(second->layout().slots[3].process.load(), 42U);
}

TEST_F(ActivityFileTest, ALinkIsRefused) {
  directory_.AddFile("elsewhere", "");
  directory_.AddLink("activity", directory_.path() / "elsewhere");

  EXPECT_EQ(Open().error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(Open().error().message, HasSubstr("is a link"));
  EXPECT_EQ(std::filesystem::file_size(directory_.path() / "elsewhere"), 0U);
}

TEST_F(ActivityFileTest, AFileThatOthersMayWriteIsRefused) {
  directory_.AddFile("activity", "");
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);

  EXPECT_EQ(Open().error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(Open().error().message, HasSubstr("ZEUS_ACTIVITY_DIR"));
}

TEST_F(ActivityFileTest, AFileOfSomebodyElseIsRefused) {
  directory_.AddFile("activity", "");
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  constexpr uid_t kNobody = 65534;
  if (::chown(path_.c_str(), kNobody, kNobody) != 0) GTEST_SKIP() << "only root gives files away";

  EXPECT_EQ(Open().error().code, ErrorCode::kPermissionDenied);
}

TEST_F(ActivityFileTest, ADirectoryIsRefused) {
  std::filesystem::create_directory(path_);

  EXPECT_FALSE(Open().ok());
}

TEST_F(ActivityFileTest, ATruncatedFileThatNobodyUsesIsReplaced) {
  for (const std::size_t size : {std::size_t{1}, sizeof(Header), sizeof(Layout) - 1}) {
    ASSERT_TRUE(Open().ok());
    std::filesystem::resize_file(path_, size);

    const auto replaced = Open();
    ASSERT_TRUE(replaced.ok()) << size << ": " << replaced.error().message;
    EXPECT_EQ(replaced.value()->layout().header.magic, kMagic);
    EXPECT_EQ(std::filesystem::file_size(path_), sizeof(Layout));
  }
}

TEST_F(ActivityFileTest, AnotherVersionThatNobodyUsesIsReplaced) {
  Open().value()->layout().header.fingerprint += 1;

  const auto first = Open();
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first.value()->layout().header.fingerprint, kFingerprint);
  // All share the new one.
  first.value()->layout().slots[3].process.store(42);
  EXPECT_EQ(Open().value()->layout().slots[3].process.load(), 42U);
}

TEST_F(ActivityFileTest, AnotherVersionThatAProcessUsesIsRefusedWithItsRemedy) {
  auto user = Open().value();
  user->layout().header.fingerprint += 1;

  EXPECT_EQ(Open().error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(Open().error().message, HasSubstr("another version of Zeus"));
  EXPECT_THAT(Open().error().message, HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(Open().error().message, HasSubstr("remove it"));
  user.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(ActivityFileTest, AUserThatCannotBeSeenHoldsALock) {
  Open().value()->layout().header.fingerprint += 1;
  // As one in another pid name space would.
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(descriptor, F_OFD_SETLK, &lock), 0);

  EXPECT_THAT(Open().error().message, HasSubstr("a process uses it"));
  ::close(descriptor);
  EXPECT_TRUE(Open().ok());
}

TEST_F(ActivityFileTest, NumbersThatLeadOutOfTheFileAreRefused) {
  auto user = Open().value();
  user->layout().header.key_count = kKeys + 1;
  EXPECT_EQ(Open().error().code, ErrorCode::kUnavailable);

  user->layout().header.key_count = 0;
  user->layout().header.slots_in_use = kSlots + 1;
  EXPECT_EQ(Open().error().code, ErrorCode::kUnavailable);
}

TEST_F(ActivityFileTest, AnAuthorThatDiedHalfwayIsReplaced) {
  directory_.AddFile("activity", "");
  std::filesystem::permissions(path_, std::filesystem::perms(0600));
  std::filesystem::resize_file(path_, sizeof(Layout));

  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Open().value()->layout().header.magic, kMagic);
}

TEST_F(ActivityFileTest, AStoppedHolderOfTheLockDoesNotStopUs) {
  auto holder = Open().value();
  const auto lock = holder->Acquire(clock_);
  ASSERT_TRUE(lock.ok());

  EXPECT_EQ(Open().error().code, ErrorCode::kUnavailable);
}

TEST_F(ActivityFileTest, TheLockIsGivenBack) {
  auto holder = Open().value();
  { const auto lock = holder->Acquire(clock_); }

  EXPECT_TRUE(Open().ok());
}

TEST(DefaultActivityPathTest, NamesTheUserAndObeysTheVariable) {
  const std::string name = "zeus-activity-" + std::to_string(::geteuid());
  EXPECT_EQ(DefaultActivityPath().value().filename(), name);

  const zeus::testing::TemporaryDirectory directory;
  const zeus::testing::ScopedVariable variable("ZEUS_ACTIVITY_DIR", directory.path());
  EXPECT_EQ(DefaultActivityPath().value(), directory.path() / name);
}

TEST(DefaultActivityPathTest, ADirectoryThatIsNoneIsNamed) {
  const zeus::testing::ScopedVariable variable("ZEUS_ACTIVITY_DIR", "/nowhere/at/all");

  EXPECT_EQ(DefaultActivityPath().error().code, ErrorCode::kNotFound);
  EXPECT_THAT(DefaultActivityPath().error().message, HasSubstr("/nowhere/at/all"));
}

}  // namespace activity_file_test
}  // namespace zeus::activity
