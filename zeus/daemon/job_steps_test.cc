#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/daemon/job_book.h"

namespace zeus::daemon {
namespace job_steps_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Registered = JobBook::Registered;

constexpr double kRounding = 1e-9;

// A machine whose processes know their parents, and whose control groups tell nothing.
class JobStepsTest : public ::testing::Test {
 protected:
  JobStepsTest() {
    procfs_.AddLink("self/ns/pid", "here");
    Start(1, 0);
    procfs_.AddLink("self/stat", procfs_.path() / "1/stat");
  }

  // `used` is its CPU time in ticks.
  void Start(std::int64_t pid, std::int64_t parent, std::uint64_t used = 0) {
    std::string zeros;
    for (int i = 0; i < 9; ++i) zeros += " 0";
    procfs_.AddFile(fmt::format("{}/stat", pid),
                    fmt::format("{} (slurmstepd) S {}{} {} 0 0 0 0 0 0 0 {} 0\n", pid, parent,
                                zeros, used, 100 + pid));
    procfs_.AddFile(fmt::format("{}/cgroup", pid), "0::/\n");
  }
  void End(std::int64_t pid) { std::filesystem::remove_all(procfs_.path() / std::to_string(pid)); }

  JobSpec Spec(const std::string& id = "slurm:zeus.7") const {
    return {.id = id, .uid = 1001, .devices = {"GPU-1"}, .labels = {{"restarts", "0"}}};
  }
  JobBook::Options WithFile(const std::string& boot = "a") {
    JobBook::Options options = options_;
    options.state_file = state_.path() / "jobs.json";
    options.boot_clock = [boot] { return BootTime{.boot = boot}; };
    return options;
  }
  static void Book(JobBook& book, double joules, std::vector<JobBook::Slice::Sample> samples = {}) {
    book.Book({.device = "GPU-1",
               .energy = Joules(joules),
               .sigma = Joules(0.1 * joules),
               .samples = std::move(samples)});
  }
  double StepEnergy(const std::string& step) const {
    return book_.Find("slurm:7")->steps.at(step).value();
  }
  void Wait(Seconds duration) {
    clock_.Advance(duration);
    book_.Step();
  }

  zeus::testing::TemporaryDirectory procfs_;
  zeus::testing::TemporaryDirectory state_;
  VirtualClock clock_;
  std::vector<std::string> ended_;
  JobBook::Options options_{.ended = [this](const std::string& job) { ended_.push_back(job); },
                            .procfs = procfs_.path()};
  JobBook book_{clock_, options_};
};

TEST_F(JobStepsTest, AJobIsFoundWithoutTheNameOfItsCluster) {
  ASSERT_TRUE(book_.Register(Spec()).ok());
  EXPECT_EQ(book_.Find("slurm:7")->spec.id, "slurm:zeus.7");
  EXPECT_TRUE(book_.Runs("slurm:7"));
  EXPECT_FALSE(book_.Find("slurm:17"));
  EXPECT_FALSE(book_.Find("slurm:other.7"));
  ASSERT_TRUE(book_.End("slurm:7").ok());
  EXPECT_THAT(ended_, ElementsAre("slurm:zeus.7"));
}

TEST_F(JobStepsTest, AProcessBelongsByTheStepThatItDescendsFrom) {
  Start(50, 1);
  Start(51, 50);
  Start(52, 51);
  Start(60, 1);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
  const auto caller = [](uid_t uid, std::int64_t pid) {
    return Caller{.uid = uid,
                  .process = ProcessIdentity{pid, static_cast<std::uint64_t>(100 + pid), "here"}};
  };
  EXPECT_THAT(book_.DevicesOf(caller(1001, 52)), ElementsAre("GPU-1"));
  EXPECT_THAT(book_.DevicesOf(caller(1002, 52)), IsEmpty());
  EXPECT_THAT(book_.DevicesOf(caller(1001, 60)), IsEmpty());
}

TEST_F(JobStepsTest, StepsThatRunAfterOneAnotherHaveTheirEnergy) {
  Start(50, 1);
  Start(51, 1);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  Book(book_, 5);  // Before any step.
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "batch", .pid = 50}).ok());
  Book(book_, 10);
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 51}).ok());
  Book(book_, 100);
  ASSERT_TRUE(book_.EndStep("slurm:7", "0").ok());
  Book(book_, 20);
  EXPECT_NEAR(StepEnergy(""), 5, kRounding);
  EXPECT_NEAR(StepEnergy("batch"), 30, kRounding);
  EXPECT_NEAR(StepEnergy("0"), 100, kRounding);
}

TEST_F(JobStepsTest, StepsAtTheSameTimeShareAsSamplesTellAndLastTold) {
  for (const int pid : {50, 51}) Start(pid, 1);
  Start(60, 50);
  Start(61, 51);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "1", .pid = 51}).ok());
  Book(book_, 10);  // Nothing is known yet.
  EXPECT_NEAR(StepEnergy("0"), 5, kRounding);
  Book(book_, 100, {{60, 0.75}, {61, 0.25}});
  Book(book_, 100);
  EXPECT_NEAR(StepEnergy("0"), 155, kRounding);
  EXPECT_NEAR(StepEnergy("1"), 55, kRounding);
  ASSERT_TRUE(book_.EndStep("slurm:7", "0").ok());
  Book(book_, 100);
  EXPECT_NEAR(StepEnergy("1"), 155, kRounding);
}

TEST_F(JobStepsTest, AStepThatVanishesEndsTheJobAndOneThatEndsDoesNot) {
  Start(50, 1);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
  Wait(60s);
  ASSERT_TRUE(book_.EndStep("slurm:7", "0").ok());
  End(50);
  Wait(3600s);
  EXPECT_TRUE(book_.Runs("slurm:7")) << "the allocation goes on";

  Start(51, 1);
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "1", .pid = 51}).ok());
  Wait(60s);
  End(51);
  Wait(5s);
  EXPECT_TRUE(book_.Runs("slurm:7"));
  Wait(6s);
  EXPECT_FALSE(book_.Runs("slurm:7"));
  EXPECT_EQ(book_.Find("slurm:7")->end_reason, "nobody left");
  EXPECT_THAT(ended_, ElementsAre("slurm:zeus.7"));
}

TEST_F(JobStepsTest, AJobThatWasTakenForDeadGoesOnWithItsEnergy) {
  Start(50, 1);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
  Book(book_, 10);
  End(50);
  Wait(11s);
  ASSERT_FALSE(book_.Runs("slurm:7"));
  Book(book_, 1000);
  Start(51, 1);
  EXPECT_EQ(book_.BeginStep("slurm:7", {.step = "1", .pid = 51}).value(), Registered::kRevived);
  Book(book_, 20);
  EXPECT_NEAR(book_.Find("slurm:7")->devices.at(0).energy.value(), 30, kRounding);
  ASSERT_TRUE(book_.End("slurm:7").ok());
  EXPECT_FALSE(book_.BeginStep("slurm:7", {.step = "2", .pid = 51}).ok()) << "it was deleted";
}

TEST_F(JobStepsTest, ARequeuedJobTakesThePlaceOfTheRunBefore) {
  ASSERT_EQ(book_.Register(Spec()).value(), Registered::kAnew);
  EXPECT_EQ(book_.Register(Spec()).value(), Registered::kAlready);
  Book(book_, 10);
  JobSpec again = Spec();
  again.labels["restarts"] = "1";
  EXPECT_EQ(book_.Register(again).value(), Registered::kAnew);
  EXPECT_THAT(ended_, ElementsAre("slurm:zeus.7")) << "leases of the run before end";
  EXPECT_NEAR(book_.Find("slurm:7")->devices.at(0).energy.value(), 0, kRounding);
  JobSpec other = Spec();
  other.uid = 1002;
  other.labels.erase("restarts");
  EXPECT_EQ(book_.Register(other).error().code, ErrorCode::kConflict);
}

TEST_F(JobStepsTest, LabelsOfAStepAreAddedToTheJob) {
  Start(50, 1);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(
      book_.BeginStep("slurm:7", {.step = "0", .pid = 50, .labels = {{"job_name", "bert"}}}).ok());
  EXPECT_EQ(book_.Find("slurm:7")->spec.labels.at("job_name"), "bert");
  EXPECT_EQ(book_.Register(Spec()).value(), Registered::kAlready) << "a repeated hook";
}

TEST_F(JobStepsTest, ADescendantsCpuTimeIsTheJobs) {
  Start(50, 1, 10);
  Start(51, 50, 100);
  ASSERT_TRUE(book_.Register(Spec()).ok());
  ASSERT_TRUE(book_.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
  Wait(2s);
  Start(51, 50, 300);
  Start(52, 51, 50);
  Start(60, 1, 5000);
  Wait(2s);
  EXPECT_NEAR(book_.Find("slurm:7")->cpu_time.count(), 2.5, kRounding);
}

TEST_F(JobStepsTest, EnergyAndStepsSurviveARestart) {
  Start(50, 1);
  {
    JobBook book(clock_, WithFile());
    ASSERT_TRUE(book.Register(Spec()).ok());
    ASSERT_TRUE(book.BeginStep("slurm:7", {.step = "0", .pid = 50}).ok());
    Book(book, 40);
    book.SetCounter("GPU-1", Joules(1000));
    book.SaveEnergy();
  }
  JobBook book(clock_, WithFile());
  ASSERT_TRUE(book.Load().ok());
  EXPECT_EQ(book.SavedCounter("GPU-1"), Joules(1000));
  Book(book, 2);
  const auto view = book.Find("slurm:7");
  EXPECT_NEAR(view->devices.at(0).energy.value(), 42, kRounding);
  EXPECT_NEAR(view->steps.at("0").value(), 42, kRounding);
  End(50);
  clock_.Advance(12s);
  book.Step();
  EXPECT_FALSE(book.Runs("slurm:7")) << "its step is known and gone";
}

// The daemon is killed without a word: what it wrote last is a line for each job since.
TEST_F(JobStepsTest, JobsThatCameAndWentSinceTheLastLookSurviveAKill) {
  JobBook killed(clock_, WithFile());
  killed.SetCounter("GPU-1", Joules(1000));
  ASSERT_TRUE(killed.Register(Spec("first")).ok());
  killed.SetCounter("GPU-1", Joules(1030));
  ASSERT_TRUE(killed.Register(Spec("second")).ok());
  ASSERT_TRUE(killed.End("first").ok());
  killed.SetCounter("GPU-1", Joules(1037));
  ASSERT_TRUE(killed.Register(Spec("third")).ok());
  ASSERT_TRUE(killed.End("second").ok());
  ASSERT_TRUE(killed.Register(Spec("fourth")).ok());
  ASSERT_TRUE(killed.End("third").ok());
  killed.SetCounter("GPU-1", Joules(1100));  // It is never written down.

  JobBook book(clock_, WithFile());
  ASSERT_TRUE(book.Load().ok());
  EXPECT_EQ(book.SavedCounter("GPU-1"), Joules(1037));
  EXPECT_FALSE(book.Find("first"));
  EXPECT_FALSE(book.Find("third"));
  EXPECT_TRUE(book.Runs("fourth"));
  EXPECT_NEAR(book.Find("fourth")->devices.at(0).energy.value(), 0, kRounding)
      << "what was used before it is not its own";
  const JobBook::DeviceTotal total = book.Totals().at("GPU-1");
  EXPECT_NEAR(total.total.value(), 37, kRounding);
  EXPECT_NEAR(total.of_jobs.value(), 37, kRounding);
}

TEST_F(JobStepsTest, AThousandJobsAreALineEach) {
  const auto options = WithFile();
  JobBook book(clock_, options);
  int rewritten = 0;
  ino_t file = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(book.Register(Spec(fmt::format("job-{}", i))).ok());
    struct stat state {};
    ASSERT_EQ(::stat(options.state_file.c_str(), &state), 0);
    if (std::exchange(file, state.st_ino) != state.st_ino) ++rewritten;
  }
  EXPECT_LT(rewritten, 20) << "the file is written anew when it has doubled";
  JobBook next(clock_, options);
  ASSERT_TRUE(next.Load().ok());
  EXPECT_EQ(next.List().size(), 1000);
}

TEST_F(JobStepsTest, AfterARebootJobsHaveEndedNobodyKnowsHow) {
  Start(50, 1);
  {
    JobBook book(clock_, WithFile("a"));
    ASSERT_TRUE(book.Register(Spec()).ok());
    Book(book, 40);
    book.SetCounter("GPU-1", Joules(1000));
    book.SaveEnergy();
  }
  JobBook book(clock_, WithFile("b"));
  ASSERT_TRUE(book.Load().ok());
  EXPECT_EQ(book.SavedCounter("GPU-1"), std::nullopt) << "the counter began again";
  EXPECT_EQ(book.Find("slurm:7")->end_reason, "unknown");
  EXPECT_NEAR(book.Find("slurm:7")->devices.at(0).energy.value(), 40, kRounding);
}

TEST_F(JobStepsTest, AJobThatTheDaemonLearnsOfLateSaysHowMuchIsMissing) {
  ASSERT_TRUE(book_.Register(Spec(), clock_.WallNow() - std::chrono::seconds(30)).ok());
  EXPECT_NEAR(book_.Find("slurm:7")->unrecorded.count(), 30, 1e-3);
  EXPECT_NEAR(book_.Find("slurm:7")->duration.count(), 30, 1e-3);
}

TEST(StepSpecTest, StepsAreReadOrRefused) {
  const auto parse = [](const char* json) { return ParseStepSpec(ParseJson(json).value()); };
  EXPECT_EQ(parse(R"({"step": "batch", "pid": 7})").value().pid, 7);
  for (const char* json :
       {R"({"step": "", "pid": 7})", R"({"step": "../x", "pid": 7})", R"({"step": "0", "pid": 0})",
        R"({"pid": 7})", R"({"step": "0", "pid": 7, "user": 1})"})
    EXPECT_FALSE(parse(json).ok()) << json;
}

TEST(JobSpecTest, AJobByPositionsHasALimit) {
  const auto spec = ParseJobSpec(
      ParseJson(
          R"({"id": "slurm:zeus.1", "uid": 0, "gpu_positions": [1, 0], "power_limit_watts": 150})")
          .value());
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_THAT(spec.value().gpu_positions, ElementsAre(1, 0));
  EXPECT_EQ(spec.value().power_limit, Watts(150));
  EXPECT_FALSE(ParseJobSpec(ParseJson(R"({"id": "a", "uid": 0, "devices": [],
                                          "power_limit_watts": -1})")
                                .value())
                   .ok());
}

}  // namespace job_steps_test
}  // namespace zeus::daemon
