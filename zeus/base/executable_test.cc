#include "zeus/base/executable.h"

#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace executable_test {

class ExecutableTest : public ::testing::Test {
 protected:
  std::filesystem::path Add(const std::string& name, bool executable) {
    auto file = directory_.AddFile(name, "#!/bin/sh\n");
    const auto mode = std::filesystem::perms::owner_read;
    std::filesystem::permissions(file,
                                 executable ? mode | std::filesystem::perms::owner_exec : mode);
    return file;
  }

  // Searches two folders of the test and one that does not exist.
  Result<std::filesystem::path> Find(const std::string& command) {
    const std::string root = directory_.path().string();
    return FindExecutable(command, [root](const std::string& variable) {
      return variable == "PATH" ? std::optional(root + "/none:" + root + "/one:" + root + "/two")
                                : std::nullopt;
    });
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(ExecutableTest, TheFirstInPathIsFound) {
  Add("one/other", true);
  Add("one/tool", false);
  const auto second = Add("two/tool", true);
  const auto found = Find("tool");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value(), second);
}

TEST_F(ExecutableTest, ACommandThatIsNotThereIsNotFound) {
  const auto found = Find("tool");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(found.error().message, "tool: no such command in PATH");
  EXPECT_EQ(Find("").error().code, ErrorCode::kNotFound);
}

TEST_F(ExecutableTest, AFileThatMayNotBeExecutedIsNoCommand) {
  Add("one/tool", false);
  EXPECT_EQ(Find("tool").error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(Find(directory_.path().string() + "/one").error().code, ErrorCode::kNotSupported);
}

TEST_F(ExecutableTest, APathIsTakenAsItIs) {
  const auto file = Add("one/tool", true);
  EXPECT_TRUE(Find(file.string()).ok());
  const auto missing = Find(file.string() + "s");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, file.string() + "s: no such file or directory");
}

}  // namespace executable_test
}  // namespace zeus
