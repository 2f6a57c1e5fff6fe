#include "zeus/daemon/state_log.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace {

using ::testing::ElementsAre;

class StateLogTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  std::vector<std::string> Lines() const { return StateLog(path_).Read().value(); }

  zeus::testing::TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "state.json";
  StateLog log_{path_};
};

TEST_F(StateLogTest, ChangesFollowTheState) {
  EXPECT_FALSE(log_.Append("a")) << "there is nothing that it would change";
  ASSERT_TRUE(log_.Replace("whole").ok());
  EXPECT_TRUE(log_.Append("a"));
  EXPECT_TRUE(log_.Append("b"));
  EXPECT_THAT(Lines(), ElementsAre("whole", "a", "b"));
  ASSERT_TRUE(log_.Replace("new").ok());
  EXPECT_THAT(Lines(), ElementsAre("new"));
}

TEST_F(StateLogTest, ALineThatWasNotFinishedIsLeftOut) {
  ASSERT_TRUE(log_.Replace("whole").ok());
  ASSERT_TRUE(log_.Append("a"));
  Write("{\"regis");
  EXPECT_THAT(Lines(), ElementsAre("whole", "a"));
  EXPECT_FALSE(log_.Append("b")) << "it would end the line of another";
}

TEST_F(StateLogTest, AStateWithoutAnEndIsThatOfAnEarlierVersion) {
  Write("whole");
  EXPECT_THAT(Lines(), ElementsAre("whole"));
}

TEST_F(StateLogTest, AFileThatIsGoneOrAnotherTakesNoChange) {
  ASSERT_TRUE(log_.Replace("whole").ok());
  std::filesystem::remove(path_);
  EXPECT_FALSE(log_.Append("a"));
  EXPECT_EQ(StateLog(path_).Read().error().code, ErrorCode::kNotFound);
  Write("another\n");
  EXPECT_FALSE(log_.Append("a"));
  EXPECT_THAT(Lines(), ElementsAre("another"));
}

TEST_F(StateLogTest, TheWholeIsWrittenAgainOnceTheChangesAreLarger) {
  const std::string change(1000, 'x');
  ASSERT_TRUE(log_.Replace("whole").ok());
  int changes = 0;
  while (log_.Append(change)) ++changes;
  EXPECT_GT(changes, 60);
  EXPECT_LT(changes, 70);
  ASSERT_TRUE(log_.Replace(std::string(200'000, 'w')).ok());
  for (changes = 0; log_.Append(change);) ++changes;
  EXPECT_GT(changes, 190);
  EXPECT_LT(changes, 210);
}

// A file that may not grow takes a part of the line, as a full disk does.
TEST_F(StateLogTest, ALineThatDoesNotFitIsNotThere) {
  ASSERT_TRUE(log_.Replace("whole").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool fits = log_.Append(std::string(200, 'x'));
  const Status replaced = log_.Replace(std::string(200, 'y'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, signal);
  EXPECT_FALSE(fits);
  EXPECT_FALSE(replaced.ok());
  EXPECT_EQ(std::filesystem::file_size(path_), 100) << "a part of it is there";
  EXPECT_THAT(Lines(), ElementsAre("whole"));
}

TEST_F(StateLogTest, WithoutAPathNothingIsKept) { EXPECT_FALSE(StateLog("").keeps()); }

}  // namespace
}  // namespace zeus::daemon
