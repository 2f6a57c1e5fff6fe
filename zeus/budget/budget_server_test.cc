#include "zeus/budget/budget_server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/budget/node_lease.h"
#include "zeus/budget/testing/memory_budget_repository.h"

namespace zeus::budget {
namespace budget_server_test {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using ::testing::HasSubstr;

constexpr const char* kFile = R"(
[budget]
watts = 1000
reserve = 0.0
report_seconds = 2
period_seconds = 1

[[domain]]
name = "rack-1"
watts = 500
nodes = ["n[1-2]"]

[[domain]]
name = "rack-2"
watts = 800
nodes = ["n[3-4]"]

[[class]]
name = "production"
weight = 4
match = { partition = "prod" }
)";

// Nodes of one busy GPU each, that do what they are told at once.
class BudgetServerTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }

  void Start(const char* file = kFile) {
    auto configuration = ParseBudgetConfiguration(file, "budget.toml");
    ASSERT_TRUE(configuration.ok()) << configuration.error().message;
    auto server = BudgetServer::Open(std::move(configuration).value(), repository_, clock_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }

  void Report(const std::string& node) {
    auto [place, added] = leases_.try_emplace(node, node + " session");
    NodeLease& lease = place->second;
    Watts& cap = caps_.try_emplace(node, 100_W).first->second;
    NodeReport report = lease.BeginReport();
    report.node = node;
    report.guarded = true;
    report.devices = {{.id = "GPU-" + node,
                       .model = "V100",
                       .lowest = 100_W,
                       .highest = 300_W,
                       .cap = cap,
                       .fallback = 100_W,
                       .power = cap,
                       .utilization = 1.0}};
    if (node == "n1") report.jobs = {{.id = "slurm:1", .devices = {"GPU-n1"}, .partition = "prod"}};
    const auto grant = server_->Report(report);
    if (!grant.ok()) return;
    if (!lease.Accept(grant.value(), clock_.Now(), clock_.Now())) return;
    cap = grant.value().caps.at(0).cap;
    lease.NoteApplied(grant.value().number);
  }
  void Run(Seconds time, const std::vector<std::string>& nodes = {"n1", "n2", "n3", "n4"}) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) {
      for (const std::string& node : nodes) Report(node);
      server_->Step();
      EXPECT_LE(Domain(0).at("committed_watts"), most_);
      clock_.Advance(1s);
    }
  }
  Json Domain(std::size_t index) { return server_->Show().at("domains").at(index); }
  Watts Sum() const {
    Watts sum{};
    for (const auto& [node, cap] : caps_) sum += cap;
    return sum;
  }

  VirtualClock clock_;
  testing::MemoryBudgetRepository repository_;
  std::unique_ptr<BudgetServer> server_;
  std::map<std::string, NodeLease> leases_;
  std::map<std::string, Watts> caps_;
  double most_ = 1000.001;
};

TEST_F(BudgetServerTest, AllWattsAreHandedOutWithinEveryDomain) {
  Run(20s);
  EXPECT_NEAR(Sum().value(), 1000, 2);
  EXPECT_LE(caps_["n1"] + caps_["n2"], 500_W);
  EXPECT_GE(caps_["n1"], caps_["n2"]) << "the job of the class with more weight";
}

TEST_F(BudgetServerTest, ALowerBudgetIsThereAfterTwoReports) {
  Run(20s);
  ASSERT_TRUE(server_->SetWatts({.watts = 700_W}).ok());
  Run(3s);
  EXPECT_LE(Domain(0).at("committed_watts"), 700.001);
  EXPECT_LE(Sum(), 700_W);
}

TEST_F(BudgetServerTest, ATargetIsKeptFromItsFirstMomentAlsoByWhoIsCutOff) {
  Run(20s);
  const WallTime start = clock_.WallNow() + std::chrono::seconds(60);
  ASSERT_TRUE(server_
                  ->AddTarget({.start = start,
                               .end = start + std::chrono::seconds(100),
                               .watts = 600_W,
                               .reason = "grid"},
                              false)
                  .ok());
  Run(30s);
  EXPECT_GT(Sum(), 900_W) << "there is time";
  // n4 is not heard of again; its grants end before the target begins.
  Run(30s, {"n1", "n2", "n3"});
  EXPECT_LE(Domain(0).at("committed_watts"), 600.001);
  caps_["n4"] = 100_W;  // It has fallen back by itself.
  most_ = 600.001;
  Run(90s);
  most_ = 1000.001;
  Run(40s);
  EXPECT_GT(Sum(), 900_W) << "the target is over";
}

TEST_F(BudgetServerTest, ABudgetThatWasHardlyMeantNeedsAConfirmation) {
  Run(10s);
  for (const Watts watts : {10000_W, 100_W}) {
    const Status set = server_->SetWatts({.watts = watts});
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code, ErrorCode::kConflict);
    EXPECT_THAT(set.error().message, HasSubstr("confirm"));
  }
  for (const double watts : {0.0, -1.0, 1e300, std::nan("")}) {
    const Status set = server_->SetWatts({.watts = Watts(watts), .confirmed = true});
    ASSERT_FALSE(set.ok()) << watts;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(server_->SetWatts({.watts = 100_W, .confirmed = true}).ok());
  most_ = 1000.001;
  Run(5s);
  EXPECT_TRUE(server_->Show().at("infeasible"));
  EXPECT_NEAR(server_->Show().at("missing_watts"), 300, 1);
  EXPECT_EQ(Sum(), 400_W) << "everybody is at the lowest";
}

TEST_F(BudgetServerTest, ALaterStartGrantsAndAnEarlierOneNoMore) {
  Run(20s);
  const auto earlier = std::move(server_);
  Start();
  clock_.Advance(1s);
  earlier->Step();
  NodeReport report{.node = "n9", .session = "s", .sequence = 1};
  const auto grant = earlier->Report(report);
  ASSERT_FALSE(grant.ok());
  EXPECT_EQ(grant.error().code, ErrorCode::kUnavailable);
  Run(60s);
  EXPECT_NEAR(Sum().value(), 1000, 2);
}

TEST_F(BudgetServerTest, WhatWasSetOutlastsTheServer) {
  Run(5s);
  ASSERT_TRUE(server_->SetWatts({.domain = "rack-2", .watts = 600_W}).ok());
  const WallTime start = clock_.WallNow() + std::chrono::hours(1);
  const auto target = server_->AddTarget(
      {.start = start, .end = start + std::chrono::hours(1), .watts = 700_W}, false);
  ASSERT_TRUE(target.ok());
  Start();
  EXPECT_EQ(Domain(2).at("watts"), 600);
  EXPECT_EQ(server_->ShowSchedule().at("targets").size(), 1U);
  EXPECT_TRUE(server_->RemoveTarget(target.value().id).ok());
  EXPECT_FALSE(server_->RemoveTarget(target.value().id).ok());
}

TEST_F(BudgetServerTest, ANodeThatReportsIsNotForgotten) {
  Run(5s);
  EXPECT_EQ(server_->Forget("n1").error().code, ErrorCode::kConflict);
  EXPECT_EQ(server_->Forget("n7").error().code, ErrorCode::kNotFound);
  Run(10s, {"n1"});
  EXPECT_TRUE(server_->Forget("n2").ok());
}

TEST_F(BudgetServerTest, IdleGpusAreNoJobsAndSlowNobodyDown) {
  const auto report = [&](const std::string& node, double utilization) {
    NodeLease& lease = leases_.try_emplace(node, node + " session").first->second;
    NodeReport told = lease.BeginReport();
    told.node = node;
    told.devices = {{.id = "GPU-" + node,
                     .lowest = 100_W,
                     .highest = 300_W,
                     .cap = 100_W,
                     .fallback = 100_W,
                     .power = 40_W,
                     .utilization = utilization}};
    (void)server_->Report(told);
  };
  report("n1", 1);
  report("n3", 0);
  server_->Step();
  const Json jobs = server_->ShowJobs();
  ASSERT_EQ(jobs.at("jobs").size(), 1U);
  EXPECT_EQ(jobs.at("jobs").at(0).at("name"), "n1/GPU-n1");
  EXPECT_EQ(jobs.at("idle").at("gpus"), 1);
  // The one that works has all it can use, so nobody pays, however low the idle one is kept.
  EXPECT_EQ(server_->Show().at("mean_slowdown"), jobs.at("jobs").at(0).at("slowdown"));
  const auto effect = server_->Effect({.watts = 900_W});
  ASSERT_TRUE(effect.ok());
  EXPECT_THAT(effect.value(), ::testing::Contains(HasSubstr("of 1 jobs")));
}

TEST_F(BudgetServerTest, WattsReservedForSilentNodesAreMissedToo) {
  Run(20s);
  most_ = 1e9;
  Run(10s, {"n1"});
  // The other three keep what they had: more than the whole budget of now.
  const double reserved = Domain(0).at("committed_watts").get<double>() - caps_["n1"].value();
  ASSERT_TRUE(server_->SetWatts({.watts = 300_W, .confirmed = true}).ok());
  EXPECT_GT(reserved, 300);
  EXPECT_NEAR(server_->Show().at("missing_watts").get<double>(), reserved + 100 - 300, 1);
}

TEST_F(BudgetServerTest, AWishShowsInTheNextLook) {
  Run(20s);
  ASSERT_TRUE(server_->SetWatts({.watts = 700_W}).ok());
  EXPECT_EQ(Domain(0).at("watts"), 700);
  EXPECT_EQ(Domain(0).at("limit_watts"), 700);
  EXPECT_EQ(Domain(0).at("free_watts"), 0);
  ASSERT_TRUE(server_->SetWatts({.watts = 390_W, .confirmed = true}).ok());
  EXPECT_TRUE(server_->Show().at("infeasible"));
}

TEST_F(BudgetServerTest, ABudgetWithADigitTooManyIsDoubted) {
  Run(5s);
  EXPECT_TRUE(server_->Show().at("doubts").empty());
  const auto effect = server_->Effect({.watts = 10000_W});
  ASSERT_TRUE(effect.ok());
  EXPECT_THAT(effect.value(), ::testing::Contains(HasSubstr("is there a digit too many?")));
  most_ = 1e9;
  ASSERT_TRUE(server_->SetWatts({.watts = 10000_W, .confirmed = true}).ok());
  EXPECT_THAT(server_->Show().at("doubts").dump(), HasSubstr("is there a digit too many?"));
}

TEST_F(BudgetServerTest, AStartThatWasShutOutSaysThatItsPictureIsOld) {
  Run(5s);
  const auto earlier = std::move(server_);
  Start();
  earlier->Step();
  EXPECT_FALSE(earlier->Show().at("current"));
  EXPECT_THAT(earlier->Show().at("troubles").dump(), HasSubstr("what it shows is old"));
  EXPECT_TRUE(server_->Show().at("current"));
}

TEST_F(BudgetServerTest, ABudgetFollowsCarbonAndPeopleWin) {
  const std::string file = std::string(kFile).replace(
      std::string(kFile).find("reserve"), 0, "follow = \"carbon\"\nbetween = [0.6, 1.0]\n");
  Start(file.c_str());
  Run(20s);
  EXPECT_GT(Sum(), 900_W) << "nothing is known yet";
  const WallTime now = clock_.WallNow();
  const auto in = [now](int seconds) { return now + std::chrono::seconds(seconds); };
  server_->Follow({{in(0), 100}, {in(100), 300}, {in(200), 500}}, in(300));
  EXPECT_EQ(server_->ShowSchedule().at("targets").size(), 3U);
  Run(60s);
  EXPECT_GT(Sum(), 900_W);
  Run(60s);
  EXPECT_EQ(Domain(0).at("watts"), 800);
  EXPECT_LE(Sum(), 800_W);
  ASSERT_TRUE(server_->AddTarget({.start = in(130), .end = in(220), .watts = 700_W}, false).ok());
  Run(40s);
  EXPECT_EQ(Domain(0).at("watts"), 700);
  Run(80s);
  EXPECT_EQ(Domain(0).at("watts"), 600);
  EXPECT_LE(Sum(), 600_W);
  Run(80s);
  EXPECT_EQ(Domain(0).at("watts"), 1000) << "the forecast is over";
}

// Four GPUs, each of a node and a job of its own, of which n1 and n3 never draw more than 120 W.
class DrawnBudgetTest : public BudgetServerTest {
 protected:
  void SetUp() override {
    const std::string limits = kFile;
    Start(std::string(limits).replace(limits.find("reserve"), 0, "mode = \"drawn\"\n").c_str());
  }

  void Report(const std::string& node, Watts demand) {
    NodeLease& lease = leases_.try_emplace(node, node + " session").first->second;
    Watts& cap = caps_.try_emplace(node, 100_W).first->second;
    NodeReport report = lease.BeginReport();
    report.node = node;
    report.guarded = true;
    report.devices = {{.id = "GPU-" + node,
                       .lowest = 100_W,
                       .highest = 300_W,
                       .cap = cap,
                       .fallback = 100_W,
                       .power = std::min(cap, demand),
                       .utilization = 1.0}};
    report.jobs = {{.id = "job of " + node, .devices = {"GPU-" + node}}};
    const auto grant = server_->Report(report);
    if (!grant.ok() || !lease.Accept(grant.value(), clock_.Now(), clock_.Now())) return;
    cap = grant.value().caps.at(0).cap;
    lease.NoteApplied(grant.value().number);
  }
  void Run(Seconds time, Watts modest) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) {
      for (const std::string node : {"n1", "n2", "n3", "n4"})
        Report(node, node == "n1" || node == "n3" ? modest : 300_W);
      server_->Step();
      EXPECT_LE(Domain(0).at("committed_watts"), most_);
      clock_.Advance(1s);
    }
  }
};

TEST_F(DrawnBudgetTest, WattsThatAreLeftUnusedAreHandedOut) {
  Run(120s, 120_W);
  EXPECT_GE(caps_["n2"] + caps_["n4"], 590_W) << "those that can use them have all they can take";
  EXPECT_GE(caps_["n1"], 140_W) << "a cap that does not bind";
  EXPECT_LE(Domain(0).at("drawn_watts"), 1000);
}

TEST_F(DrawnBudgetTest, MoreDrawThanExpectedMakesCapsAloneCount) {
  Run(120s, 120_W);
  most_ = 1e9;  // Nodes take a moment to hear of their lower caps.
  Run(5s, 300_W);
  EXPECT_LE(Domain(0).at("drawn_watts"), 1000.001);
  EXPECT_LE(Domain(1).at("drawn_watts"), 500.001);
  most_ = 1000.001;
  Run(40s, 300_W);
  EXPECT_LE(Sum(), 1000_W);
  EXPECT_LE(caps_["n1"] + caps_["n2"], 500_W);
}

TEST_F(DrawnBudgetTest, ASilentNodeCountsWithItsCap) {
  Run(120s, 120_W);
  const Watts kept = caps_["n1"];
  clock_.Advance(6s);
  EXPECT_EQ(server_->Show().at("nodes").at(0).at("committed_watts"), kept.value());
}

TEST(BudgetConfigurationTest, StepsOfASignalBecomeSharesOfTheBudget) {
  const auto at = [](int seconds) { return WallTime{} + std::chrono::seconds(seconds); };
  const FollowSpec follow{.lowest = 0.5, .highest = 0.9};
  // The second and the third are the same per cent; a negative price is a good one.
  const auto targets = TargetsFollowing(
      follow, 1000_W, {{at(0), -10}, {at(10), 90}, {at(20), 90.1}, {at(30), 40}}, at(40));
  ASSERT_EQ(targets.size(), 4U);
  EXPECT_EQ(WattsAt(at(-5), 1000_W, "", targets), 900_W);
  EXPECT_EQ(WattsAt(at(5), 1000_W, "", targets), 900_W);
  EXPECT_EQ(WattsAt(at(15), 1000_W, "", targets), 500_W);
  EXPECT_EQ(WattsAt(at(25), 1000_W, "", targets), 500_W);
  EXPECT_EQ(WattsAt(at(35), 1000_W, "", targets), 700_W);
  EXPECT_EQ(WattsAt(at(40), 1000_W, "", targets), 900_W);
  EXPECT_EQ(TargetsFollowing(follow, 1000_W, {{at(0), 5}, {at(9), 5}}, at(20)).size(), 1U);
}

TEST(NodeNameTest, NamesAreFitForAddressesAndFiles) {
  for (const char* good : {"n1", "head", "rack3-n01.example.org", "GPU_7"})
    EXPECT_TRUE(CheckNodeName(good).ok()) << good;
  for (const char* bad : {"", ".", "..", "a/../b", "-n", "n 1", "n\n", "ä", "n?x=1"})
    EXPECT_FALSE(CheckNodeName(bad).ok()) << bad;
  EXPECT_FALSE(CheckNodeName(std::string(257, 'n')).ok());
}

TEST(BudgetConfigurationTest, APipeIsRefusedAtOnce) {
  const std::filesystem::path pipe =
      std::filesystem::path(::testing::TempDir()) / "budget_configuration_test_pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto read = ReadBudgetConfiguration(pipe);
  std::filesystem::remove(pipe);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("regular file"));
}

TEST(BudgetConfigurationTest, MistakesAreNamedWithTheirLine) {
  struct Case {
    const char* text;
    const char* expected;
  };
  for (const Case& one :
       {Case{"", "there is no [budget]"}, Case{"[budget]\n", "needs watts"},
        Case{"[budget]\nwatts = 1\nwats = 2", "did you mean watts?"},
        Case{"[budget]\nwatts = nan", "from 0"}, Case{"[budget]\nwatts = -1", "from 0"},
        Case{"[budget]\nwatts = 1\nmode = \"guess\"", "mode"},
        Case{"[budget]\nwatts = 1\nvalid_seconds = 10\nreport_seconds = 5", "three times"},
        Case{"[budget]\nwatts = 1\n[[domain]]\nname = \"a\"", "needs watts"},
        Case{"[budget]\nwatts = 1\n[[domain]]\nname = \"a\"\nwatts = 1\nnodes = [\"n[2-1]\"]",
             "no pattern"},
        Case{"[budget]\nwatts = 1\n[[domain]]\nname = \"a\"\nwatts = 1\nparent = \"b\"", "parent"},
        Case{"[budget]\nwatts = 1\n[[schedule]]\nstart = 2026-11-20T17:00:00Z\nend = "
             "2026-11-20T16:00:00Z",
             "after start"},
        Case{"[budget]\nwatts = 1\n[[domain]]\nname = \"site\"\nwatts = 1", "all domains together"},
        Case{"[budget]\nwatts = 1\n[[domain]]\nname = \"a\"\nwatts = 1\nnodes = [\"a/../b\"]",
             "no name of a node"},
        Case{"[budget]\nwatts = 100\nreserve = 0\n[[domain]]\nname = \"a\"\nwatts = 50\n"
             "nodes = [\"n[1-4]\"]\nnode_watts = 20",
             "reserve 80.0 W for nodes of \"a\""},
        Case{"[budget]\nwatts = 100\nreserve = 0\n[[domain]]\nname = \"a\"\nwatts = 90\n"
             "nodes = [\"n[1-4]\"]\nnode_watts = 20\n[[domain]]\nname = \"b\"\nwatts = 90\n"
             "nodes = [\"m[1-2]\"]\nnode_watts = 20",
             "reserve 120.0 W for nodes of \"site\""},
        Case{"[budget]\nwatts = 1\nfollow = \"wind\"", "follow is"},
        Case{"[budget]\nwatts = 1\nfollow = \"carbon\"\nbetween = [1.0, 0.5]", "between must be"},
        Case{"[budget]\nwatts = 1\nbetween = [0.5, 1.0]", "follow is"},
        Case{"[budget", "budget.toml:1"}}) {
    const auto parsed = ParseBudgetConfiguration(one.text, "budget.toml");
    ASSERT_FALSE(parsed.ok()) << one.text;
    EXPECT_THAT(parsed.error().message, HasSubstr(one.expected));
    EXPECT_THAT(parsed.error().message, HasSubstr("budget.toml:"));
  }
}

TEST(BudgetConfigurationTest, PatternsStandForNames) {
  EXPECT_THAT(ExpandNodes("n[1-2,4]").value(), ::testing::ElementsAre("n1", "n2", "n4"));
  EXPECT_THAT(ExpandNodes("r[08-10]n").value(), ::testing::ElementsAre("r08n", "r09n", "r10n"));
  EXPECT_THAT(ExpandNodes("head").value(), ::testing::ElementsAre("head"));
  for (const char* bad : {"", "n[", "n[a]", "n[3-1]", "n[1-999999999]"})
    EXPECT_FALSE(ExpandNodes(bad).ok()) << bad;
}

TEST(BudgetConfigurationTest, TheLatestTargetOfAMomentHoldsAndItsFallIsSeenAhead) {
  const WallTime zero{};
  const auto at = [&](int seconds) { return zero + std::chrono::seconds(seconds); };
  const std::vector<Target> targets = {{.start = at(100), .end = at(200), .watts = 500_W},
                                       {.start = at(150), .end = at(160)}};
  EXPECT_EQ(WattsAt(at(99), 900_W, "", targets), 900_W);
  EXPECT_EQ(WattsAt(at(100), 900_W, "", targets), 500_W);
  EXPECT_EQ(WattsAt(at(155), 900_W, "", targets), 900_W);
  EXPECT_EQ(WattsAt(at(200), 900_W, "", targets), 900_W);
  EXPECT_EQ(LowestAhead(at(70), 900_W, "", targets, {.lead = 23s}), 900_W);
  EXPECT_EQ(LowestAhead(at(77), 900_W, "", targets, {.lead = 23s}), 500_W);
  EXPECT_EQ(LowestAhead(at(57), 900_W, "", targets, {.lead = 23s, .ramp = 10_W}), 700_W);
}

}  // namespace
}  // namespace budget_server_test
}  // namespace zeus::budget
