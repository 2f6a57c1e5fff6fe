#include "zeus/daemon/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/testing/unprivileged.h"

namespace zeus::daemon {
namespace audit_log_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Seconds kTimeout{20};  // Reached only by a failure.

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> OpenLog() { return AuditLog::Open(file_, clock_).value(); }

  static std::vector<std::string> Lines(const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  VirtualClock clock_;
  zeus::testing::TemporaryDirectory folder_;
  std::filesystem::path file_ = folder_.path() / "audit.jsonl";
};

TEST_F(AuditLogTest, AnEntryIsOneLineOfJson) {
  const auto log = OpenLog();
  log->Append({.event = "knob set",
               .subject = "uid:1001",
               .pid = 4711,
               .lease = "lease_a",
               .knob = wire::KnobKey{"GPU-1", wire::LeaseKnob::kGpuPowerLimit},
               .from = "300 W",
               .to = "200 W",
               .effective = "180 W",
               .outcome = "ok",
               .duration = Seconds(0.25)});
  ASSERT_TRUE(log->WaitUntilWritten(kTimeout));
  const auto lines = Lines(file_);
  ASSERT_THAT(lines, SizeIs(1));
  const Json json = ParseJson(lines[0]).value();
  EXPECT_EQ(json["number"], 1);
  EXPECT_EQ(json["event"], "knob set");
  EXPECT_EQ(json["device"], "GPU-1");
  EXPECT_EQ(json["knob"], "gpu_power_limit");
  EXPECT_EQ(json["from"], "300 W");
  EXPECT_EQ(json["effective"], "180 W");
  EXPECT_EQ(json["duration_seconds"], 0.25);
  EXPECT_TRUE(json.contains("boot_id"));
  EXPECT_THAT(json["time"].get<std::string>(), HasSubstr("T"));
}

TEST_F(AuditLogTest, LinesAreAppendedInOrderAndAtTheEndOfTheLog) {
  {
    const auto log = OpenLog();
    for (int i = 0; i < 500; ++i) log->Append({.event = "first"});
  }
  const auto log = OpenLog();
  log->Append({.event = "second"});
  ASSERT_TRUE(log->WaitUntilWritten(kTimeout));
  const auto lines = Lines(file_);
  ASSERT_THAT(lines, SizeIs(501));
  for (int i = 0; i < 500; ++i)
    EXPECT_EQ(ParseJson(lines[static_cast<std::size_t>(i)]).value()["number"], i + 1);
  EXPECT_THAT(lines.back(), HasSubstr("second"));
}

TEST_F(AuditLogTest, AFullDiskLosesLinesAndCountsThem) {
  const auto log = AuditLog::Open("/dev/full", clock_).value();
  for (int i = 0; i < 20; ++i) log->Append({.event = "knob set"});
  ASSERT_TRUE(log->WaitUntilWritten(kTimeout));
  EXPECT_EQ(log->lost(), 20U);
  EXPECT_THAT(log->After(0, 100, ""), SizeIs(20));
}

TEST_F(AuditLogTest, ALineThatTheDiskCutsOffIsTakenBack) {
  EXPECT_TRUE(zeus::testing::HoldsInAChild([this] {
    ::signal(SIGXFSZ, SIG_IGN);
    constexpr rlim_t kBytes = 1000;
    const ::rlimit limit{.rlim_cur = kBytes, .rlim_max = kBytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const auto log = OpenLog();
    for (int i = 0; i < 50; ++i) log->Append({.event = "knob set"});
    return log->WaitUntilWritten(kTimeout) && log->lost() > 0 && log->lost() < 50;
  }));
  const auto lines = Lines(file_);
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_TRUE(ParseJson(line).ok()) << line;
}

TEST_F(AuditLogTest, AReopenedLogGoesOnInTheNewFile) {
  const auto log = OpenLog();
  log->Append({.event = "before"});
  ASSERT_TRUE(log->WaitUntilWritten(kTimeout));
  std::filesystem::rename(file_, folder_.path() / "audit.1");
  ASSERT_TRUE(log->Reopen().ok());
  log->Append({.event = "after"});
  ASSERT_TRUE(log->WaitUntilWritten(kTimeout));
  EXPECT_THAT(Lines(folder_.path() / "audit.1"), SizeIs(1));
  ASSERT_THAT(Lines(file_), SizeIs(1));
  EXPECT_THAT(Lines(file_)[0], HasSubstr("after"));
}

TEST_F(AuditLogTest, ALinkInThePlaceOfTheFileIsRefused) {
  std::filesystem::create_symlink(folder_.path() / "target", file_);
  EXPECT_FALSE(AuditLog::Open(file_, clock_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "target"));
}

TEST_F(AuditLogTest, AFolderThatMayNotBeWrittenIsNamed) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective() || ::geteuid() == 0) GTEST_SKIP() << "root writes everywhere here";
  const auto log = AuditLog::Open(file_, clock_);
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(log.error().message, HasSubstr("audit.jsonl"));
}

TEST_F(AuditLogTest, PagesFollowEachOther) {
  const auto log = AuditLog::Open("", clock_).value();
  for (int i = 0; i < 10; ++i)
    log->Append({.event = "e", .subject = i % 2 == 0 ? "uid:1" : "uid:2"});
  const auto first = log->After(0, 4, "");
  ASSERT_THAT(first, SizeIs(4));
  EXPECT_EQ(first.back().number, 4U);
  const auto rest = log->After(first.back().number, 100, "");
  ASSERT_THAT(rest, SizeIs(6));
  EXPECT_EQ(rest.front().number, 5U);
  EXPECT_THAT(log->After(0, 100, "uid:2"), SizeIs(5));
  EXPECT_THAT(log->After(10, 100, ""), SizeIs(0));
}

TEST_F(AuditLogTest, TheOldestEntriesLeaveTheMemory) {
  const auto log = AuditLog::Open("", clock_).value();
  for (std::size_t i = 0; i < AuditLog::kKept + 10; ++i) log->Append({.event = "e"});
  const auto all = log->After(0, 2 * AuditLog::kKept, "");
  ASSERT_THAT(all, SizeIs(AuditLog::kKept));
  EXPECT_EQ(all.front().number, 11U);
  EXPECT_EQ(log->After(5, 1, "").front().number, 11U);
  EXPECT_EQ(log->After(11, 1, "").front().number, 12U);
}

TEST_F(AuditLogTest, TenRefusalsASecondAreLoggedForEachSubject) {
  const auto log = AuditLog::Open("", clock_).value();
  for (int i = 0; i < 100; ++i) {
    log->AppendRefusal({.event = "refused", .subject = "uid:1"});
    log->AppendRefusal({.event = "refused", .subject = "uid:2"});
  }
  EXPECT_THAT(log->After(0, 1000, "uid:1"), SizeIs(10));
  EXPECT_THAT(log->After(0, 1000, "uid:2"), SizeIs(10));
  clock_.Advance(Seconds(1));
  log->AppendRefusal({.event = "refused", .subject = "uid:1"});
  EXPECT_THAT(log->After(0, 1000, "uid:1"), SizeIs(11));
}

TEST_F(AuditLogTest, SubjectsThatAreInventedDoNotFillTheLog) {
  const auto log = AuditLog::Open("", clock_).value();
  for (int i = 0; i < 5000; ++i)
    log->AppendRefusal({.event = "refused", .subject = "token:" + std::to_string(i)});
  EXPECT_LT(log->After(0, 10'000, "").size(), 1100U);
}

}  // namespace audit_log_test
}  // namespace zeus::daemon
