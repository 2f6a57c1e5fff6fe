#include "zeus/daemon/job_book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace job_book_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr double kRounding = 1e-9;

// The processes of a machine, as a tree like /proc.
class JobBookTest : public ::testing::Test {
 protected:
  JobBookTest() {
    procfs_.AddLink("self/ns/pid", "here");
    Start(1, "/init.scope");
    procfs_.AddLink("self/stat", procfs_.path() / "1/stat");
  }

  // `used` is its CPU time in ticks, half of it in the kernel.
  void Start(std::int64_t pid, const std::string& cgroup, std::uint64_t start_ticks = 100,
             std::uint64_t used = 0) {
    const auto zeros = [](int count) {
      std::string text;
      for (int i = 0; i < count; ++i) text += " 0";
      return text;
    };
    procfs_.AddFile(fmt::format("{}/stat", pid),
                    fmt::format("{} (a) b) S{} {} {}{} {} 0\n", pid, zeros(10), used - used / 2,
                                used / 2, zeros(6), start_ticks));
    procfs_.AddFile(fmt::format("{}/cgroup", pid), "0::" + cgroup + "\n");
  }
  void End(std::int64_t pid) { std::filesystem::remove_all(procfs_.path() / std::to_string(pid)); }

  JobBook::Options WithFile() {
    JobBook::Options options = options_;
    options.state_file = state_.path() / "jobs.json";
    return options;
  }
  JobBook::DeviceShare Share(const std::string& id, std::size_t device = 0) const {
    return book_.Find(id)->devices.at(device);
  }

  zeus::testing::TemporaryDirectory procfs_;
  zeus::testing::TemporaryDirectory state_;
  VirtualClock clock_;
  std::vector<std::string> ended_;
  JobBook::Options options_{.ended = [this](const std::string& job) { ended_.push_back(job); },
                            .procfs = procfs_.path()};
  JobBook book_{clock_, options_};
};

Caller Process(uid_t uid, const std::string& cgroup, std::int64_t pid = 0,
               std::uint64_t start_ticks = 100) {
  Caller caller{.uid = uid, .cgroup = cgroup};
  if (pid > 0) caller.process = ProcessIdentity{pid, start_ticks, "here"};
  return caller;
}

Error Refusal(const char* json) {
  const auto spec = ParseJobSpec(ParseJson(json).value());
  EXPECT_FALSE(spec.ok()) << json;
  return spec.ok() ? Error{ErrorCode::kInternal, "accepted"} : spec.error();
}

TEST(JobSpecTest, WhatASchedulerSendsIsRead) {
  const auto spec = ParseJobSpec(ParseJson(R"({"id": "slurm:1234", "uid": 1001,
    "devices": ["GPU-1"], "cgroup": "/slurm_n1/uid_1001/job_1234", "pids": [7],
    "labels": {"partition": "a100"}})")
                                     .value());
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec.value().id, "slurm:1234");
  EXPECT_EQ(spec.value().uid, 1001u);
  EXPECT_EQ(ParseJobSpec(ToJson(spec.value())).value(), spec.value());
}

TEST(JobSpecTest, MistakesAreNamedByTheirField) {
  EXPECT_THAT(Refusal(R"({"uid": 1, "devices": []})").message, HasSubstr("id: "));
  EXPECT_THAT(Refusal(R"({"id": "", "uid": 1, "devices": []})").message, HasSubstr("id: "));
  EXPECT_THAT(Refusal(R"({"id": "a/b", "uid": 1, "devices": []})").message, HasSubstr("id: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": -1, "devices": []})").message, HasSubstr("uid: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": 4294967295, "devices": []})").message,
              HasSubstr("uid: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "devices": []})").message, HasSubstr("uid: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": 1})").message, HasSubstr("devices: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": 1, "devices": [""]})").message, HasSubstr("devices: "));
  for (const char* path : {"/", "//", "relative", "/a/../b", "/.."})
    EXPECT_THAT(
        Refusal(
            fmt::format(R"({{"id": "a", "uid": 1, "devices": [], "cgroup": "{}"}})", path).c_str())
            .message,
        HasSubstr("cgroup: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": 1, "devices": [], "pids": [0]})").message,
              HasSubstr("pids: "));
  EXPECT_THAT(Refusal(R"({"id": "a", "uid": 1, "devices": [], "user": 1})").message,
              HasSubstr("user: "));
}

TEST(JobSpecTest, ContainersOfKubernetesHaveSlashesInTheirIdsAndPerhapsAPlace) {
  JobSpec spec{.id = "k8s:team-a/" + std::string(253, 'p') + "/main", .place = "pod:7b1c"};
  EXPECT_EQ(ParseJobSpec(ToJson(spec)).value(), spec);
  spec.place = "";
  EXPECT_EQ(ParseJobSpec(ToJson(spec)).value(), spec);
  for (const char* id : {"k8s:a/b/c/d", "k8s:a//b", "k8s:a/", "k8s:a/b c"})
    EXPECT_THAT(Refusal(fmt::format(R"({{"id": "{}", "devices": []}})", id).c_str()).message,
                HasSubstr("id: must be like k8s:namespace/pod/container"));
}

TEST_F(JobBookTest, ProcessesOfAPlaceBelongToItsJobAndToNobodyWhereTwoClaimThem) {
  const std::string uid = "7b1c2d3e-0011-2233-4455-66778899aabb";
  const std::string group = "/kubepods/pod" + uid + "/x";
  Start(10, group, 100, 0);
  Start(20, "/kubepods/pod0123456789abcdef0123456789abcdef/x");
  const auto job = [](const std::string& name, const std::string& device, const std::string& pod) {
    return JobSpec{.id = "k8s:n/p/" + name, .devices = {device}, .place = "pod:" + pod};
  };
  ASSERT_TRUE(book_.Register(job("a", "GPU-1", uid)).ok());
  ASSERT_TRUE(book_.Register(job("b", "GPU-2", uid)).ok());
  ASSERT_TRUE(book_.Register(job("c", "GPU-1", "0123456789abcdef0123456789abcdef")).ok());
  EXPECT_THAT(book_.DevicesOf(Process(5, group)), UnorderedElementsAre("GPU-1", "GPU-2"));
  book_.Book({"GPU-1", Joules(100), Joules(10), Joules(20), {{10, 0.3}, {20, 0.1}}});
  EXPECT_NEAR(Share("k8s:n/p/a").energy.value(), 60, kRounding);
  EXPECT_NEAR(Share("k8s:n/p/c").energy.value(), 20, kRounding);
  ASSERT_TRUE(book_.Register(job("d", "GPU-1", uid)).ok());
  book_.Book({"GPU-1", Joules(100), Joules(10), Joules(20), {{10, 0.3}, {20, 0.1}}});
  EXPECT_NEAR(Share("k8s:n/p/a").energy.value(), 60, kRounding) << "or it was d";
  EXPECT_NEAR(Share("k8s:n/p/d").energy.value(), 0, kRounding);
  EXPECT_NEAR(Share("k8s:n/p/c").energy.value(), 40, kRounding);
  EXPECT_NEAR(book_.Totals().at("GPU-1").shared_idle.value(), 20 + 20 + 60, kRounding);
  book_.Step();
  Start(10, group, 100, 500);
  clock_.Advance(2s);
  book_.Step();
  EXPECT_EQ(book_.Find("k8s:n/p/a")->cpu_time, Seconds(0)) << "its time is not counted twice";
  EXPECT_FALSE(book_.Find("k8s:n/p/d")->ended);
  End(10);
  clock_.Advance(11s);
  book_.Step();
  EXPECT_TRUE(book_.Find("k8s:n/p/d")->ended);
  EXPECT_FALSE(book_.Find("k8s:n/p/c")->ended);
}

TEST_F(JobBookTest, ACallerBelongsByUserAndPlace) {
  ASSERT_TRUE(book_.Register({.id = "slurm:7", .uid = 1001, .devices = {"GPU-1", "GPU-2"}}).ok());
  ASSERT_TRUE(
      book_.Register({.id = "mine", .uid = 1001, .devices = {"GPU-3"}, .cgroup = "/x"}).ok());
  const std::string slurm = "/system.slice/slurmstepd.scope/job_7/step_0";
  EXPECT_THAT(book_.DevicesOf(Process(1001, slurm)), UnorderedElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(book_.JobsOf(Process(1001, "/x/below")), ElementsAre("mine"));
  EXPECT_TRUE(book_.DevicesOf(Process(1002, slurm)).empty()) << "another user";
  EXPECT_TRUE(book_.DevicesOf(Process(0, slurm)).empty()) << "root is another user";
  EXPECT_TRUE(book_.DevicesOf(Process(1001, "/xy")).empty());
  EXPECT_TRUE(book_.DevicesOf(Process(1001, "")).empty());
  EXPECT_TRUE(book_
                  .DevicesOf(Process(1001,
                                     "/user.slice/user-1001.slice/user@1001.service/"
                                     "slurmstepd.scope/job_7/step_0"))
                  .empty())
      << "a group that the user has made";
  EXPECT_TRUE(book_.DevicesOf(Caller{.transport = Caller::Transport::kTcp}).empty());
}

TEST_F(JobBookTest, ACallerBelongsByItsPidUnlessTheNumberWasGivenAgain) {
  Start(50, "/a");
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 5, .devices = {"GPU-1"}, .pids = {50}}).ok());
  EXPECT_THAT(book_.JobsOf(Process(5, "/a", 50)), ElementsAre("j"));
  EXPECT_TRUE(book_.JobsOf(Process(5, "/a", 51)).empty());
  EXPECT_TRUE(book_.JobsOf(Process(5, "/a", 50, 101)).empty());
  EXPECT_EQ(book_.Register({.id = "k", .uid = 5, .pids = {99}}).error().code, ErrorCode::kNotFound);
}

TEST_F(JobBookTest, AJobWithoutAUserIsThatOfItsCgroup) {
  ASSERT_TRUE(book_.Register({.id = "pod", .devices = {"GPU-1"}, .cgroup = "/kubepods/a"}).ok());
  EXPECT_THAT(book_.JobsOf(Process(0, "/kubepods/a/b")), ElementsAre("pod"));
  EXPECT_TRUE(book_.JobsOf(Process(0, "/kubepods/ab")).empty());
}

TEST_F(JobBookTest, TheSameJobMayBeRegisteredAgainAndAnotherMayNotTakeItsId) {
  const JobSpec spec{.id = "j", .uid = 1};
  ASSERT_TRUE(book_.Register(spec).ok());
  EXPECT_TRUE(book_.Register(spec).ok());
  EXPECT_EQ(book_.Register({.id = "j", .uid = 2}).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(book_.End("j").ok());
  EXPECT_TRUE(book_.Register({.id = "j", .uid = 2}).ok());
  EXPECT_EQ(book_.List().size(), 1u);
}

TEST_F(JobBookTest, AJobEndsWhenItIsDeletedAndIsKeptForAWhile) {
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .devices = {"GPU-1"}, .cgroup = "/j"}).ok());
  clock_.Advance(5s);
  ASSERT_TRUE(book_.End("j").ok());
  EXPECT_THAT(ended_, ElementsAre("j"));
  EXPECT_EQ(book_.End("j").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(book_.JobsOf(Process(1, "/j")).empty()) << "nobody belongs to an ended job";
  clock_.Advance(599s);
  book_.Step();
  ASSERT_TRUE(book_.Find("j"));
  EXPECT_TRUE(book_.Find("j")->ended);
  EXPECT_EQ(book_.Find("j")->duration, 5s);
  clock_.Advance(1s);
  book_.Step();
  EXPECT_FALSE(book_.Find("j"));
}

TEST_F(JobBookTest, AJobEndsTenSecondsAfterTheLastProcessHasLeftItsCgroup) {
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .cgroup = "/j"}).ok());
  clock_.Advance(3600s);
  book_.Step();
  EXPECT_FALSE(book_.Find("j")->ended) << "nobody has come yet";
  Start(10, "/j/step");
  book_.Step();
  clock_.Advance(60s);
  book_.Step();
  End(10);
  clock_.Advance(9s);
  book_.Step();
  EXPECT_FALSE(book_.Find("j")->ended);
  Start(11, "/j");
  book_.Step();
  End(11);
  clock_.Advance(9s);
  book_.Step();
  EXPECT_FALSE(book_.Find("j")->ended) << "the ten seconds begin anew";
  clock_.Advance(1s);
  EXPECT_EQ(book_.Step(), clock_.Now() + 2s);
  EXPECT_TRUE(book_.Find("j")->ended);
  EXPECT_EQ(book_.Find("j")->end_reason, "nobody left");
  EXPECT_THAT(ended_, ElementsAre("j"));
}

TEST_F(JobBookTest, AJobEndsTenSecondsAfterItsPidsAlsoWhenTheirNumbersAreGivenAgain) {
  Start(10, "/a");
  Start(20, "/a");
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .pids = {10, 20}}).ok());
  clock_.Advance(100s);
  book_.Step();
  EXPECT_FALSE(book_.Find("j")->ended);
  End(10);
  Start(20, "/a", 999);
  clock_.Advance(10s);
  book_.Step();
  EXPECT_TRUE(book_.Find("j")->ended);
}

TEST_F(JobBookTest, ASlurmJobIsWatchedByItsIdAlone) {
  Start(10, "/slurm/uid_1/job_7/step_0");
  ASSERT_TRUE(book_.Register({.id = "slurm:7", .uid = 1}).ok());
  book_.Step();
  End(10);
  Start(11, "/slurm/uid_1/job_77/step_0");
  clock_.Advance(10s);
  book_.Step();
  EXPECT_THAT(ended_, ElementsAre("slurm:7"));
}

TEST_F(JobBookTest, ProcessesOfGroupsWithAlikeNamesKeepNoJobAlive) {
  Start(10, "/j/step");
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .cgroup = "/j"}).ok());
  book_.Step();
  Start(10, "/j-1/step");
  Start(11, "/j.1");
  Start(12, "/jj");
  clock_.Advance(10s);
  book_.Step();
  EXPECT_THAT(ended_, ElementsAre("j"));
}

TEST_F(JobBookTest, AGroupBelowIsFoundBesideAlikeNames) {
  Start(10, "/j-1/step");
  Start(11, "/j/step");
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .cgroup = "/j"}).ok());
  for (int i = 0; i < 5; ++i) {
    book_.Step();
    clock_.Advance(10s);
  }
  EXPECT_TRUE(ended_.empty());
}

TEST_F(JobBookTest, ThereAreOnlySoManyJobs) {
  for (int i = 0; i < 1024; ++i)
    ASSERT_TRUE(book_.Register({.id = fmt::format("j{}", i), .uid = 1}).ok());
  EXPECT_EQ(book_.Register({.id = "more", .uid = 1}).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(book_.Register({.id = "j5", .uid = 1}).ok()) << "it is there already";
  ASSERT_TRUE(book_.End("j0").ok());
  EXPECT_TRUE(book_.Register({.id = "more", .uid = 1}).ok());
}

TEST_F(JobBookTest, EndedJobsAreBoundedToo) {
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(book_.Register({.id = fmt::format("j{}", i), .uid = 1}).ok());
    clock_.Advance(1ms);
    ASSERT_TRUE(book_.End(fmt::format("j{}", i)).ok());
  }
  EXPECT_EQ(book_.List().size(), 1024u);
  EXPECT_FALSE(book_.Find("j0")) << "the oldest goes first";
  EXPECT_TRUE(book_.Find("j1999"));
}

TEST_F(JobBookTest, AJobHasAllEnergyOfADeviceOfItsOwn) {
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .devices = {"GPU-1", "GPU-2"}}).ok());
  Start(10, "/elsewhere");
  book_.Book({"GPU-1", Joules(100), Joules(2), Joules(30), {{10, 0.5}}});
  book_.Book({"GPU-1", Joules(50), Joules(1), Joules(30), {}});
  book_.Book({"GPU-2", Joules(7), Joules(4), Joules(0), {}});
  EXPECT_EQ(Share("j").energy, Joules(150));
  EXPECT_EQ(Share("j").sigma, Joules(3));
  EXPECT_FALSE(Share("j").shared);
  const Json json = ToJson(*book_.Find("j"));
  EXPECT_DOUBLE_EQ(json["energy_joules"].get<double>(), 157);
  EXPECT_DOUBLE_EQ(json["sigma_joules"].get<double>(), 5);
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["shares"][1]["device"], "GPU-2");
}

TEST_F(JobBookTest, SharedDevicesAreSplitByUtilisationAndIdlePowerIsNobodys) {
  Start(10, "/a/x");
  Start(20, "/b");
  Start(30, "/other");
  ASSERT_TRUE(book_.Register({.id = "a", .uid = 1, .devices = {"GPU-1"}, .cgroup = "/a"}).ok());
  ASSERT_TRUE(book_.Register({.id = "b", .uid = 2, .devices = {"GPU-1"}, .cgroup = "/b"}).ok());
  book_.Book({"GPU-1", Joules(100), Joules(10), Joules(20), {{10, 0.3}, {20, 0.1}, {30, 0.4}}});
  EXPECT_NEAR(Share("a").energy.value(), 30, kRounding);
  EXPECT_NEAR(Share("a").sigma.value(), 3, kRounding);
  EXPECT_NEAR(Share("b").energy.value(), 10, kRounding);
  EXPECT_TRUE(Share("b").shared);
  const auto total = book_.Totals().at("GPU-1");
  EXPECT_NEAR(total.shared_idle.value(), 20, kRounding);
  EXPECT_NEAR(total.no_job.value(), 40, kRounding);
  book_.Book({"GPU-1", Joules(15), Joules(1), Joules(20), {{10, 0.3}}});
  book_.Book({"GPU-1", Joules(25), Joules(1), Joules(20), {}});
  EXPECT_NEAR(Share("a").energy.value(), 30, kRounding) << "all of both was idle";
  EXPECT_NEAR(book_.Totals().at("GPU-1").shared_idle.value(), 60, kRounding);
}

TEST_F(JobBookTest, ANumberThatWasGivenAgainHasNoPartOfTheJob) {
  Start(10, "/elsewhere");
  Start(20, "/elsewhere");
  ASSERT_TRUE(book_.Register({.id = "a", .uid = 1, .devices = {"GPU-1"}, .pids = {10}}).ok());
  ASSERT_TRUE(book_.Register({.id = "b", .uid = 1, .devices = {"GPU-1"}, .pids = {20}}).ok());
  book_.Book({"GPU-1", Joules(10), Joules(0), Joules(0), {{10, 0.5}, {20, 0.5}}});
  Start(20, "/elsewhere", 999);
  book_.Book({"GPU-1", Joules(10), Joules(0), Joules(0), {{10, 0.5}, {20, 0.5}}});
  EXPECT_EQ(Share("a").energy, Joules(10));
  EXPECT_EQ(Share("b").energy, Joules(5));
  EXPECT_EQ(book_.Totals().at("GPU-1").no_job, Joules(5));
}

TEST_F(JobBookTest, EnergyWithoutAJobIsNobodys) {
  book_.Book({"GPU-1", Joules(5), Joules(1), Joules(0), {}});
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .devices = {"GPU-1"}}).ok());
  ASSERT_TRUE(book_.End("j").ok());
  book_.Book({"GPU-1", Joules(6), Joules(1), Joules(0), {}});
  EXPECT_EQ(book_.Totals().at("GPU-1").no_job, Joules(11));
  EXPECT_EQ(Share("j").energy, Joules(0));
}

TEST_F(JobBookTest, StepsOfASlurmJobHaveTheirParts) {
  Start(10, "/slurm/uid_1/job_7/step_0/task_0");
  Start(11, "/slurm/uid_1/job_7/step_1/task_0");
  ASSERT_TRUE(book_.Register({.id = "slurm:7", .uid = 1, .devices = {"GPU-1"}}).ok());
  book_.Book({"GPU-1", Joules(100), Joules(0), Joules(0), {{10, 0.6}, {11, 0.2}}});
  book_.Book({"GPU-1", Joules(9), Joules(0), Joules(0), {}});
  const auto steps = book_.Find("slurm:7")->steps;
  EXPECT_NEAR(steps.at("0").value(), 75, kRounding);
  EXPECT_NEAR(steps.at("1").value(), 25, kRounding);
  EXPECT_NEAR(steps.at("").value(), 9, kRounding);
}

TEST_F(JobBookTest, NumbersThatAreNoneAreIgnored) {
  ASSERT_TRUE(book_.Register({.id = "j", .uid = 1, .devices = {"GPU-1"}}).ok());
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double energy : {-1.0, infinite, std::nan("")}) {
    book_.Book({"GPU-1", Joules(energy), Joules(0), Joules(0), {}});
    book_.Book({"GPU-1", Joules(1), Joules(energy), Joules(0), {}});
    book_.Book({"GPU-1", Joules(1), Joules(0), Joules(energy), {}});
  }
  EXPECT_EQ(Share("j").energy, Joules(0));
  ASSERT_TRUE(book_.Register({.id = "k", .uid = 1, .devices = {"GPU-1"}}).ok());
  book_.Book({"GPU-1", Joules(8), Joules(0), Joules(0), {{1, std::nan("")}, {2, -5.0}}});
  EXPECT_EQ(book_.Totals().at("GPU-1").shared_idle, Joules(8));
}

// Random jobs, processes and slices: the parts add up to the device whatever happens.
TEST_F(JobBookTest, ThePartsAddUpToTheDevice) {
  std::mt19937_64 random(20);
  const auto number = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  for (int pid = 1; pid <= 12; ++pid)
    Start(pid, fmt::format("/slurm/uid_1/job_{}/step_{}", pid % 5, pid % 3));
  std::map<std::string, double> booked;
  std::map<std::string, double> of_jobs;
  const auto collect = [&](const std::string& id) {
    const auto view = book_.Find(id);
    if (!view) return;
    double sum = 0.0;
    for (const auto& share : view->devices) {
      of_jobs[share.device] += share.energy.value();
      sum += share.energy.value();
      ASSERT_LE(share.sigma, share.energy) << "no share is less certain than its device";
    }
    double steps = 0.0;
    for (const auto& [step, energy] : view->steps) steps += energy.value();
    EXPECT_NEAR(steps, sum, kRounding * (1.0 + sum));
  };
  for (int round = 0; round < 3000; ++round) {
    const std::string id = fmt::format("slurm:{}", number(4));
    if (number(9) == 0 && book_.End(id).ok()) collect(id);
    if (number(4) == 0)
      (void)book_.Register(
          {.id = id, .uid = 1, .devices = {"GPU-0", fmt::format("GPU-{}", number(2))}});
    JobBook::Slice slice{.device = fmt::format("GPU-{}", number(2)),
                         .energy = Joules(number(3) == 0 ? 0.0 : number(100000) / 7.0),
                         .idle = Joules(number(5000) / 3.0)};
    slice.sigma = 0.01 * slice.energy;
    for (int i = number(6); i > 0; --i) slice.samples.push_back({number(14), number(100) / 100.0});
    book_.Book(slice);
    booked[slice.device] += slice.energy.value();
  }
  for (const auto& view : book_.List())
    if (!view.ended) collect(view.spec.id);
  for (const auto& [device, total] : book_.Totals()) {
    const double close = kRounding * (1.0 + booked[device]);
    EXPECT_NEAR(total.total.value(), booked[device], close);
    EXPECT_NEAR((total.of_jobs + total.shared_idle + total.no_job).value(), booked[device], close);
    EXPECT_NEAR(total.of_jobs.value(), of_jobs[device], close) << "jobs have what is theirs";
    EXPECT_GT(total.shared_idle, Joules(0));
  }
  EXPECT_EQ(booked.size(), 3u);
}

TEST_F(JobBookTest, JobsSurviveARestart) {
  Start(10, "/a");
  {
    JobBook book(clock_, WithFile());
    ASSERT_TRUE(book.Register({.id = "a", .uid = 1, .devices = {"GPU-1"}, .pids = {10}}).ok());
    ASSERT_TRUE(book.Register({.id = "b", .cgroup = "/b", .labels = {{"x", "y"}}}).ok());
    ASSERT_TRUE(book.Register({.id = "c", .uid = 1}).ok());
    ASSERT_TRUE(book.End("c").ok());
    clock_.Advance(30s);
  }
  JobBook book(clock_, WithFile());
  ASSERT_TRUE(book.Load().ok());
  EXPECT_EQ(book.List().size(), 2u);
  EXPECT_THAT(book.JobsOf(Process(1, "", 10)), ElementsAre("a"));
  EXPECT_EQ(book.Find("b")->spec.labels.at("x"), "y");
  EXPECT_EQ(book.Find("a")->duration, 30s);
  End(10);
  clock_.Advance(10s);
  book.Step();
  EXPECT_TRUE(book.Find("a")->ended) << "its process had been seen";
  EXPECT_FALSE(book.Find("b")->ended);
}

TEST_F(JobBookTest, AStateThatCannotBeReadIsSaidSo) {
  JobBook book(clock_, WithFile());
  EXPECT_TRUE(book.Load().ok()) << "there is none";
  for (const char* state : {"", "{", "[]", "{}", R"({"jobs": 1})", R"({"jobs": [1]})",
                            R"({"jobs": [{"job": {"id": "a"}}]})"}) {
    ASSERT_TRUE(std::filesystem::exists(state_.AddFile("jobs.json", state)));
    std::filesystem::permissions(state_.path() / "jobs.json", std::filesystem::perms(0600));
    EXPECT_FALSE(book.Load().ok()) << state;
  }
  EXPECT_TRUE(book.List().empty());
}

// Ticks are 10 ms.
TEST_F(JobBookTest, CpuTimeIsThatOfTheProcessesAndSplitsTheEnergyOfThePackages) {
  const auto machine = [this](int busy) {
    procfs_.AddFile("stat", fmt::format("cpu  {} 0 0 5000 70 0 0 0 9 9\ncpu0 1 2 3\n", busy));
  };
  machine(1000);
  Start(7, "/a/job", 100, 500);
  ASSERT_TRUE(book_.Register({.id = "a", .cgroup = "/a"}).ok());
  ASSERT_TRUE(book_.Register({.id = "b", .cgroup = "/b"}).ok());
  book_.Step();  // Process 7 used its time before its job began.
  EXPECT_EQ(book_.Find("a")->cpu_time, Seconds(0));
  EXPECT_FALSE(book_.Find("a")->cpu_energy);

  machine(1400);
  Start(7, "/a/job", 100, 600);
  Start(8, "/a/job/child", 200, 50);
  Start(9, "/b", 200, 100);
  book_.BookCpu(Joules(30));
  book_.BookCpu(Joules(10));
  book_.Step();
  EXPECT_NEAR(book_.Find("a")->cpu_time.count(), 1.5, kRounding);
  EXPECT_NEAR(book_.Find("b")->cpu_time.count(), 1.0, kRounding);
  EXPECT_NEAR(book_.Find("a")->cpu_energy->value(), 15, kRounding);  // 1.5 s of 4 s.
  EXPECT_NEAR(book_.Find("b")->cpu_energy->value(), 10, kRounding);

  // Another process with the number of one that has ended begins at 0.
  machine(1500);
  Start(9, "/b", 300, 20);
  book_.BookCpu(Joules(10));
  book_.Step();
  EXPECT_NEAR(book_.Find("b")->cpu_time.count(), 1.2, kRounding);
  EXPECT_NEAR(book_.Find("b")->cpu_energy->value(), 12, kRounding);
  EXPECT_NEAR(book_.Find("a")->cpu_time.count(), 1.5, kRounding);
  const Json json = ToJson(*book_.Find("a"));
  EXPECT_NEAR(json["cpu"]["seconds"].get<double>(), 1.5, kRounding);
}

TEST_F(JobBookTest, SamplesAreWantedWhereJobsShareADeviceOrHaveSteps) {
  ASSERT_TRUE(book_.Register({.id = "a", .devices = {"GPU-1", "GPU-2"}, .cgroup = "/a"}).ok());
  EXPECT_TRUE(book_.DevicesWithSamples().empty());
  ASSERT_TRUE(book_.Register({.id = "b", .devices = {"GPU-2"}, .cgroup = "/b"}).ok());
  ASSERT_TRUE(book_.Register({.id = "slurm:7", .devices = {"GPU-3"}, .cgroup = "/c"}).ok());
  EXPECT_THAT(book_.DevicesWithSamples(), ElementsAre("GPU-2", "GPU-3"));
  ASSERT_TRUE(book_.End("a").ok());
  EXPECT_THAT(book_.DevicesWithSamples(), ElementsAre("GPU-3"));
}

}  // namespace job_book_test
}  // namespace zeus::daemon
