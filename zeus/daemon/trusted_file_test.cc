#include "zeus/daemon/trusted_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace trusted_file_test {

class TrustedFileTest : public ::testing::Test {
 protected:
  std::filesystem::path Add(const char* name, mode_t mode) {
    const auto path = directory_.AddFile(name, "content");
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(TrustedFileTest, AFileOfThisUserIsRead) {
  const auto path = Add("file", 0644);
  const auto text = ReadTrustedFile(path);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text.value(), "content");
}

TEST_F(TrustedFileTest, NoFileIsSaidToBeNone) {
  EXPECT_EQ(ReadTrustedFile(directory_.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadTrustedFile(directory_.path() / "no/file").error().code, ErrorCode::kNotFound);
}

TEST_F(TrustedFileTest, AFileThatOthersMayWriteIsRefused) {
  for (const mode_t mode : {0664, 0646, 0666}) {
    const auto text = ReadTrustedFile(Add("file", mode));
    ASSERT_FALSE(text.ok()) << mode;
    EXPECT_EQ(text.error().code, ErrorCode::kPermissionDenied);
    EXPECT_NE(text.error().message.find("chmod"), std::string::npos) << text.error().message;
  }
}

TEST_F(TrustedFileTest, ASecretIsForItsOwnerOnly) {
  EXPECT_TRUE(ReadTrustedFile(Add("key", 0600), Secrecy::kOwnerOnly).ok());
  EXPECT_TRUE(ReadTrustedFile(Add("key", 0400), Secrecy::kOwnerOnly).ok());
  for (const mode_t mode : {0640, 0604, 0644, 0610})
    EXPECT_EQ(ReadTrustedFile(Add("key", mode), Secrecy::kOwnerOnly).error().code,
              ErrorCode::kPermissionDenied)
        << mode;
}

TEST_F(TrustedFileTest, ASymbolicLinkIsRefused) {
  Add("file", 0644);
  const auto link = directory_.AddLink("link", directory_.path() / "file");
  EXPECT_EQ(ReadTrustedFile(link).error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(ReadTrustedFile(link).error().message.find("symbolic link"), std::string::npos);
}

TEST_F(TrustedFileTest, AFolderThatOthersMayWriteIsRefused) {
  const auto path = Add("open/file", 0644);
  ASSERT_TRUE(ReadTrustedFile(path).ok());
  ASSERT_EQ(::chmod(path.parent_path().c_str(), 0777), 0);
  EXPECT_EQ(ReadTrustedFile(path).error().code, ErrorCode::kPermissionDenied);
  ASSERT_EQ(::chmod(path.parent_path().c_str(), 01777), 0);
  EXPECT_FALSE(ReadTrustedFile(path).ok()) << "others could add files with chosen names";
}

TEST_F(TrustedFileTest, AFolderFurtherUpMayBeStickyOnly) {
  const auto path = Add("up/folder/file", 0644);
  const auto up = path.parent_path().parent_path();
  ASSERT_EQ(::chmod(up.c_str(), 01777), 0);
  EXPECT_TRUE(ReadTrustedFile(path).ok()) << "as /tmp";
  ASSERT_EQ(::chmod(up.c_str(), 0777), 0);
  EXPECT_FALSE(ReadTrustedFile(path).ok()) << "others could move the folder away";
}

TEST_F(TrustedFileTest, AFileOrFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto path = Add("folder/file", 0644);
  ASSERT_EQ(::chown(path.c_str(), 1001, 0), 0);
  EXPECT_NE(ReadTrustedFile(path).error().message.find("1001"), std::string::npos);
  ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  ASSERT_TRUE(ReadTrustedFile(path).ok());
  ASSERT_EQ(::chown(path.parent_path().c_str(), 1001, 0), 0);
  EXPECT_EQ(ReadTrustedFile(path).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(TrustedFileTest, FoldersAndPipesAreRefusedWithoutWaiting) {
  EXPECT_FALSE(ReadTrustedFile(directory_.path()).ok());
  const auto pipe = directory_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadTrustedFile(pipe).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(TrustedFileTest, AFileThatIsTooLargeIsRefused) {
  const auto path = Add("file", 0600);
  EXPECT_TRUE(ReadTrustedFile(path, Secrecy::kPublic, 7).ok());
  EXPECT_EQ(ReadTrustedFile(path, Secrecy::kPublic, 6).error().code, ErrorCode::kInvalidArgument);
}

class StateFileTest : public TrustedFileTest {
 protected:
  static constexpr std::size_t kLimit = 1000;
  static Status Write(const std::filesystem::path& path, std::string_view text) {
    return WriteStateFile(path, text, Durability::kSurvivesProcess);
  }
};

TEST_F(StateFileTest, AFileIsReadAsItWasWrittenWhoeverMayWriteInItsFolder) {
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  const auto path = directory_.path() / "state";
  EXPECT_EQ(ReadStateFile(path, kLimit).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(Write(path, "one").ok());
  ASSERT_TRUE(Write(path, "two").ok());
  EXPECT_EQ(ReadStateFile(path, kLimit).value(), "two");
  struct stat state {};
  ASSERT_EQ(::stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600U);
  EXPECT_EQ(ReadStateFile(path, 2).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(StateFileTest, ALinkIsNeitherReadNorFollowed) {
  const auto target = Add("target", 0600);
  const auto path = directory_.path() / "state";
  std::filesystem::create_symlink(target, path);
  EXPECT_EQ(ReadStateFile(path, kLimit).error().code, ErrorCode::kPermissionDenied);
  ASSERT_TRUE(Write(path, "new").ok());
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(ReadStateFile(path, kLimit).value(), "new");
  EXPECT_EQ(ReadStateFile(target, kLimit).value(), "content");
}

TEST_F(StateFileTest, AFileThatAnotherUserPutThereIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto path = Add("state", 0600);
  ASSERT_EQ(::chown(path.c_str(), 12002, 12002), 0);
  const auto text = ReadStateFile(path, kLimit);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(text.error().message.find("12002"), std::string::npos) << text.error().message;
}

TEST_F(StateFileTest, AFailureLeavesTheOldContentAndNoRest) {
  const auto path = directory_.path() / "none" / "state";
  EXPECT_EQ(Write(path, "x").error().code, ErrorCode::kNotFound);
  std::filesystem::create_directory(directory_.path() / "folder");
  std::filesystem::create_directory(directory_.path() / "folder" / "inside");
  EXPECT_FALSE(Write(directory_.path() / "folder", "x").ok());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    ++files;
  EXPECT_EQ(files, 1U);
}

}  // namespace trusted_file_test
}  // namespace zeus::daemon
