#include "zeus/base/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "zeus/base/file_descriptor.h"

namespace zeus {
namespace spawn_test {

std::string RunAndRead(SpawnOptions options) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const FileDescriptor read_end(ends[0]);
  {
    const FileDescriptor write_end(ends[1]);
    options.output = ends[1];
    const auto process = Spawn(options);
    EXPECT_TRUE(process.ok()) << process.error().message;
    EXPECT_EQ(WaitForEnd(process.value()), 0);
  }
  std::array<char, 256> buffer{};
  const ssize_t got = ::read(read_end.get(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

TEST(SpawnTest, AProgramIsFoundInThePathAndGetsItsArguments) {
  EXPECT_EQ(RunAndRead({.command = {"sh", "-c", "echo $1", "sh", "a b"}}), "a b\n");
}

TEST(SpawnTest, AnEnvironmentReplacesThatOfThisProcess) {
  EXPECT_EQ(RunAndRead({.command = {"/bin/sh", "-c", "echo $COLOUR$HOME"},
                        .environment = {{"COLOUR=red"}}}),
            "red\n");
}

TEST(SpawnTest, AGroupOfItsOwnIsLedByTheProgram) {
  const auto process = Spawn({.command = {"sleep", "60"}, .own_process_group = true});
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(::getpgid(process.value()), process.value());
  EXPECT_EQ(::kill(-process.value(), SIGTERM), 0);
  EXPECT_TRUE(WIFSIGNALED(WaitForEnd(process.value())));
}

TEST(SpawnTest, AProgramThatIsNotThereIsNamed) {
  const auto process = Spawn({.command = {"no-such-program-anywhere"}});
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(process.error().message, ::testing::HasSubstr("no-such-program-anywhere"));
}

}  // namespace spawn_test
}  // namespace zeus
