#include "integrations/slurm/job_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::slurm {
namespace job_hooks_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Variables From(const std::map<std::string, std::string>& all) {
  return [&all](const char* name) -> const char* {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  };
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(JobKeyTest, AKeyHasTheClusterAndIsSafeInPathsAndAddresses) {
  EXPECT_EQ(JobKey("zeus", "1234"), "slurm:zeus.1234");
  EXPECT_EQ(JobKey("", "1234"), "slurm:1234");
  EXPECT_EQ(JobKey("../a b", "1"), "slurm:___a_b.1");
  EXPECT_EQ(JobKey("zeus", "1/2"), "");
  EXPECT_EQ(JobKey("zeus", ""), "");
}

TEST(JobWishesTest, OptionsAreReadOrRefused) {
  JobWishes wishes;
  EXPECT_TRUE(ReadMode("optimize", wishes));
  EXPECT_EQ(wishes.mode, JobWishes::Mode::kOptimize);
  EXPECT_FALSE(ReadMode("Optimize", wishes));
  EXPECT_TRUE(ReadPowerLimit("150.5", wishes));
  EXPECT_EQ(wishes.power_limit, 150.5);
  for (const char* text : {"", "0", "-1", "150W", "nan", "inf", "1e9"})
    EXPECT_FALSE(ReadPowerLimit(text, wishes)) << text;
  EXPECT_EQ(wishes.power_limit, 150.5);
  EXPECT_TRUE(ReadMaxSlowdown("1.05", wishes));
  for (const char* text : {"0.9", "11", "5%"}) EXPECT_FALSE(ReadMaxSlowdown(text, wishes)) << text;
  for (const char* text :
       {"2026-11-18T08:00", "2026-11-18T08:00:30Z", "2026-11-18T08:00:00+01:00"}) {
    EXPECT_TRUE(ReadDeadline(text, wishes)) << text;
    EXPECT_EQ(wishes.deadline, text);
  }
  for (const char* text : {"", "08:00", "tomorrow", "2026-11-18", "2026-11-18T08:00;rm"})
    EXPECT_FALSE(ReadDeadline(text, wishes)) << text;
}

class LeftMessageTest : public ::testing::Test {
 protected:
  std::string socket() const { return (folder_.path() / "zeusd.sock").string(); }
  std::string Message() const {
    return ReadAll(folder_.path() / "pending-jobs" / "slurm:zeus.12.json");
  }

  zeus::testing::TemporaryDirectory folder_;
  std::map<std::string, std::string> variables_{{"SLURM_JOB_ID", "12"},
                                                {"SLURM_CLUSTER_NAME", "zeus"},
                                                {"SLURM_JOB_UID", "1001"},
                                                {"SLURM_JOB_GPUS", "0,2-3"},
                                                {"SLURM_JOB_PARTITION", "a100"}};
};

TEST_F(LeftMessageTest, WithoutADaemonTheNextOneFindsTheJob) {
  JobWishes wishes;
  wishes.power_limit = 150;
  EXPECT_THAT(BeginJob(socket(), From(variables_), wishes), HasSubstr("told when it comes back"));
  EXPECT_EQ(Message(),
            R"({"id":"slurm:zeus.12","uid":1001,"gpu_positions":[0,2,3],"power_limit_watts":150,)"
            R"("labels":{"partition":"a100"}})");
  EXPECT_THAT(EndJob(socket(), "slurm:zeus.12").trouble, HasSubstr("no zeusd"));
  EXPECT_EQ(Message(), R"({"ended":"slurm:zeus.12"})");
}

TEST_F(LeftMessageTest, AJobWithoutGpusIsAJobAndOneThatIsOffIsNone) {
  variables_.erase("SLURM_JOB_GPUS");
  BeginJob(socket(), From(variables_), {});
  EXPECT_THAT(Message(), HasSubstr(R"("gpu_positions":[])"));
  std::filesystem::remove_all(folder_.path() / "pending-jobs");
  EXPECT_EQ(BeginJob(socket(), From(variables_), {.mode = JobWishes::Mode::kOff}), "");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "pending-jobs"));
}

TEST_F(LeftMessageTest, WhatSlurmCannotMeanIsNotPassedOn) {
  for (const char* list : {"0,a", "3-1", "-1", "0-99999", "GPU-1"}) {
    variables_["SLURM_JOB_GPUS"] = list;
    EXPECT_THAT(BeginJob(socket(), From(variables_), {}), HasSubstr("SLURM_JOB_GPUS")) << list;
  }
  variables_["SLURM_JOB_ID"] = "1; rm";
  EXPECT_THAT(BeginJob(socket(), From(variables_), {}), HasSubstr("SLURM_JOB_ID"));
}

TEST(RunApartTest, ACrashOrAHangOfTheWorkIsASentence) {
  EXPECT_EQ(RunApart([] { return std::string("done"); }, 10s), "done");
  EXPECT_THAT(RunApart(
                  [] {
                    ::raise(SIGSEGV);
                    return std::string();
                  },
                  10s),
              HasSubstr("crashed with signal 11"));
  EXPECT_THAT(RunApart(
                  [] {
                    for (;;) ::pause();
                    return std::string();
                  },
                  50ms),
              HasSubstr("ended after 50 ms"));
  EXPECT_THAT(RunApart([]() -> std::string { throw 1; }, 10s), HasSubstr("failed"));
}

}  // namespace job_hooks_test
}  // namespace zeus::slurm
