#include "zeus/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace file_test {

class FileTest : public ::testing::Test {
 protected:
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(FileTest, ReadsALineWithoutItsNewline) {
  const auto path = directory_.AddFile("name", "package-0\n");
  EXPECT_EQ(ReadLine(path).value(), "package-0");
}

TEST_F(FileTest, ReadsIntegers) {
  EXPECT_EQ(ReadUnsigned(directory_.AddFile("a", "262143328850\n")).value(), 262143328850U);
  EXPECT_EQ(ReadInteger(directory_.AddFile("b", "-40")).value(), -40);
}

TEST_F(FileTest, AMissingFileIsNotFoundAndNamed) {
  const auto result = ReadLine(directory_.path() / "absent");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.error().message.find("absent: No such file"), std::string::npos);
}

TEST_F(FileTest, EmptyHugeAndBinaryFilesAreRefused) {
  EXPECT_EQ(ReadLine(directory_.AddFile("empty", "")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadLine(directory_.AddFile("huge", std::string(1 << 20, '1'))).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadLine(directory_.AddFile("binary", std::string("\0\x01\xff", 3))).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, ADirectoryIsNotAFile) { EXPECT_FALSE(ReadLine(directory_.path()).ok()); }

TEST_F(FileTest, WritesAttributesButNeverCreatesThem) {
  const auto path = directory_.AddFile("power1_cap", "1");
  ASSERT_TRUE(WriteAttribute(path, "200000000").ok());
  EXPECT_EQ(ReadUnsigned(path).value(), 200000000U);
  EXPECT_EQ(WriteAttribute(directory_.path() / "absent", "1").error().code, ErrorCode::kNotFound);
}

TEST_F(FileTest, ReplacingCreatesAndReplacesAndLeavesNothingElse) {
  const auto path = directory_.path() / "profile.json";

  ASSERT_TRUE(ReplaceFile(path, "old").ok());
  ASSERT_TRUE(ReplaceFile(path, "new content").ok());

  EXPECT_EQ(ReadSmallFile(path).value(), "new content");
  const std::filesystem::directory_iterator files(directory_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(FileTest, AFileThatNeedNotOutlastTheMachineIsReplacedToo) {
  const auto path = directory_.path() / "state.json";
  for (const char* text : {"old", "new"})
    ASSERT_TRUE(ReplaceFile(path, text, Readers::kOwnerOnly, Durability::kSurvivesProcess).ok());
  EXPECT_EQ(ReadSmallFile(path).value(), "new");
}

TEST_F(FileTest, AFileThatCannotBeReplacedIsNamed) {
  const auto status = ReplaceFile(directory_.path() / "absent" / "file", "text");

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_NE(status.error().message.find("absent/file: No such file"), std::string::npos);
}

TEST(ReadSmallFileTest, AFileThatIsTooLargeIsRefusedBeforeItIsRead) {
  testing::TemporaryDirectory folder;
  const auto path = folder.AddFile("large", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);  // More than there is memory.
  const auto read = ReadSmallFile(path, std::size_t{1} << 39);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace file_test
}  // namespace zeus
