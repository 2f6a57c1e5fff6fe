#include "zeus/daemon/holder_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "zeus/base/file.h"

namespace zeus::daemon {
namespace holder_watch_test {

constexpr Seconds kTimeout{30};  // Reached only by a failure.

// A child that waits for its end.
class Child {
 public:
  Child() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Child() {
    Kill();
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Kill() const { ::kill(pid_, SIGKILL); }

  ProcessIdentity identity() const {
    ProcessIdentity process = ThisProcess().value();
    process.pid = pid_;
    const std::string stat = ReadSmallFile("/proc/" + std::to_string(pid_) + "/stat").value();
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string field;
    for (int i = 3; i <= 22; ++i) fields >> field;
    process.start_ticks = std::stoull(field);
    return process;
  }

 private:
  const pid_t pid_;
};

class HolderWatchTest : public ::testing::Test {
 protected:
  void Ended(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++ended_[key];
    ++count_;
    changed_.notify_all();
  }
  bool WaitForEnds(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTimeout, [&] { return count_ >= count; });
  }
  std::map<std::string, int> ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> ended_;  // Guarded by mutex_.
  std::size_t count_ = 0;             // Guarded by mutex_.
  std::unique_ptr<HolderWatch> watch_ =
      HolderWatch::Start([this](const std::string& key) { Ended(key); }).value();
};

TEST_F(HolderWatchTest, TheEndOfAProcessIsReportedOnce) {
  const Child child;
  ASSERT_TRUE(watch_->Add("lease", OpenPidfd(child.identity()).value()).ok());
  EXPECT_EQ(watch_->size(), 1U);
  child.Kill();
  ASSERT_TRUE(WaitForEnds(1));
  EXPECT_EQ(watch_->size(), 0U);
  // The end of a second process comes after all that is to be said of the first.
  const Child other;
  ASSERT_TRUE(watch_->Add("other", OpenPidfd(other.identity()).value()).ok());
  other.Kill();
  ASSERT_TRUE(WaitForEnds(2));
  EXPECT_EQ(ended(), (std::map<std::string, int>{{"lease", 1}, {"other", 1}}));
}

TEST_F(HolderWatchTest, OneProcessMayHoldManyLeases) {
  const Child child;
  const auto pidfd = OpenPidfd(child.identity()).value();
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(watch_->Add(key, pidfd).ok());
  ASSERT_TRUE(watch_->Add("d", OpenPidfd(child.identity()).value()).ok());
  watch_->Remove("b");
  child.Kill();
  ASSERT_TRUE(WaitForEnds(3));
  EXPECT_EQ(ended(), (std::map<std::string, int>{{"a", 1}, {"c", 1}, {"d", 1}}));
}

TEST_F(HolderWatchTest, AThousandThatAreKilledAtOnceAreAllReported) {
  constexpr std::size_t kMany = 1000;
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < kMany; ++i) {
    children.push_back(std::make_unique<Child>());
    ASSERT_TRUE(
        watch_->Add(std::to_string(i), OpenPidfd(children.back()->identity()).value()).ok());
  }
  for (const auto& child : children) child->Kill();
  ASSERT_TRUE(WaitForEnds(kMany));
  EXPECT_EQ(ended().size(), kMany);
  EXPECT_EQ(watch_->size(), 0U);
}

TEST_F(HolderWatchTest, AProcessThatHasEndedAlreadyIsReportedAtOnce) {
  const Child child;
  const auto pidfd = OpenPidfd(child.identity()).value();
  child.Kill();
  ASSERT_TRUE(watch_->Add("late", pidfd).ok());
  EXPECT_TRUE(WaitForEnds(1));
}

TEST_F(HolderWatchTest, TheReportMayAddAndRemoveWatches) {
  const Child first;
  const Child second;
  const auto pidfd = OpenPidfd(second.identity()).value();
  std::unique_ptr<HolderWatch> watch;
  std::mutex adding;
  watch = HolderWatch::Start([&](const std::string& key) {
            const std::lock_guard lock(adding);
            if (key == "first") {
              EXPECT_TRUE(watch->Add("second", pidfd).ok());
              watch->Remove("never there");
              second.Kill();
            }
            Ended(key);
          }).value();
  {
    const std::lock_guard lock(adding);
    ASSERT_TRUE(watch->Add("first", OpenPidfd(first.identity()).value()).ok());
    first.Kill();
  }
  EXPECT_TRUE(WaitForEnds(2));
  watch.reset();
}

TEST_F(HolderWatchTest, AKeyThatIsAddedAgainMeansTheNewProcess) {
  const Child old;
  const Child present;
  ASSERT_TRUE(watch_->Add("lease", OpenPidfd(old.identity()).value()).ok());
  ASSERT_TRUE(watch_->Add("lease", OpenPidfd(present.identity()).value()).ok());
  EXPECT_EQ(watch_->size(), 1U);
  old.Kill();
  const Child mark;
  ASSERT_TRUE(watch_->Add("mark", OpenPidfd(mark.identity()).value()).ok());
  mark.Kill();
  ASSERT_TRUE(WaitForEnds(1));
  EXPECT_EQ(ended().count("lease"), 0U);
  present.Kill();
  EXPECT_TRUE(WaitForEnds(2));
}

TEST_F(HolderWatchTest, WithoutADescriptorThereIsNothingToWatch) {
  EXPECT_EQ(watch_->Add("lease", nullptr).error().code, ErrorCode::kInvalidArgument);
}

TEST(OpenPidfdTest, AnotherProcessOfTheSameNumberIsNotTheHolder) {
  const Child child;
  ProcessIdentity earlier = child.identity();
  ASSERT_TRUE(OpenPidfd(earlier).ok());
  --earlier.start_ticks;
  const auto pidfd = OpenPidfd(earlier);
  ASSERT_FALSE(pidfd.ok());
  EXPECT_EQ(pidfd.error().code, ErrorCode::kNotFound);
}

TEST(OpenPidfdTest, AProcessThatIsGoneIsNotFound) {
  ProcessIdentity process;
  {
    const Child child;
    process = child.identity();
  }
  EXPECT_EQ(OpenPidfd(process).error().code, ErrorCode::kNotFound);
  process.pid_namespace = "pid:[1]";
  EXPECT_EQ(OpenPidfd(process).error().code, ErrorCode::kNotFound);
}

}  // namespace holder_watch_test
}  // namespace zeus::daemon
