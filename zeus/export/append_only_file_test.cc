#include "zeus/export/append_only_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace append_only_file_test {

using ::testing::HasSubstr;
using zeus::testing::HoldsInAChild;
using zeus::testing::TemporaryDirectory;

class AppendOnlyFileTest : public ::testing::Test {
 protected:
  std::string Content() const { return ReadSmallFile(path_).value(); }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "log";
};

// As a disk with so much space: the kernel writes what fits and then refuses.
void LimitFilesTo(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST_F(AppendOnlyFileTest, ANewFileGetsTheHeaderOnce) {
  for (const char* record : {"1,2", "3,4"}) {
    auto file = AppendOnlyFile::Open(path_, "a,b");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file.value()->Append(record).ok());
  }
  EXPECT_EQ(Content(), "a,b\n1,2\n3,4\n");
}

TEST_F(AppendOnlyFileTest, AFileWithAnotherHeaderIsRefusedAndLeftAlone) {
  directory_.AddFile("log", "a,b,c\n1,2,3\n");
  const auto file = AppendOnlyFile::Open(path_, "a,b");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(file.error().message, HasSubstr("does not begin with \"a,b\""));
  EXPECT_EQ(Content(), "a,b,c\n1,2,3\n");
}

TEST_F(AppendOnlyFileTest, HalfALineOfAnEarlierCrashIsRemoved) {
  directory_.AddFile("log", "a,b\n1,2\n3,");
  ASSERT_TRUE(AppendOnlyFile::Open(path_, "a,b").value()->Append("5,6").ok());
  EXPECT_EQ(Content(), "a,b\n1,2\n5,6\n");
}

TEST_F(AppendOnlyFileTest, AFullDiskLeavesWholeRecordsAndLaterOnesFollow) {
  EXPECT_TRUE(HoldsInAChild([this] {
    LimitFilesTo(15);
    auto file = std::move(AppendOnlyFile::Open(path_, "a,b")).value();
    if (!file->Append("11,22").ok()) return false;         // 10 bytes.
    if (file->Append("333333,444444").ok()) return false;  // 5 of its bytes fit.
    if (Content() != "a,b\n11,22\n") return false;
    if (file->Append("555,666").ok()) return false;
    LimitFilesTo(RLIM_INFINITY);
    return file->Append("7,8").ok();
  }));
  EXPECT_EQ(Content(), "a,b\n11,22\n7,8\n");
}

TEST_F(AppendOnlyFileTest, TwoWritersInterleaveWholeLines) {
  auto first = std::move(AppendOnlyFile::Open(path_, "a")).value();
  auto second = std::move(AppendOnlyFile::Open(path_, "a")).value();
  ASSERT_TRUE(first->Append("1").ok());
  ASSERT_TRUE(second->Append("2").ok());
  ASSERT_TRUE(first->Append("3").ok());
  EXPECT_EQ(Content(), "a\n1\n2\n3\n");
}

TEST_F(AppendOnlyFileTest, ADeviceThatTakesNothingIsAnError) {
  const auto file = AppendOnlyFile::Open("/dev/full", "");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file.value()->Append("1").error().message, HasSubstr("No space left"));
}

TEST_F(AppendOnlyFileTest, AMissingDirectoryIsNamed) {
  const auto file = AppendOnlyFile::Open(directory_.path() / "none" / "log", "a");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("none/log"));
}

}  // namespace append_only_file_test
}  // namespace zeus
