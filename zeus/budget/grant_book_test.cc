#include "zeus/budget/grant_book.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/budget/node_lease.h"

namespace zeus::budget {
namespace grant_book_test {
namespace {

using namespace std::chrono_literals;
using namespace literals;

NodeReport ReportOf(const std::string& node, std::uint64_t sequence, std::uint64_t applied,
                    Watts cap) {
  return {
      .node = node,
      .session = node + " first",
      .sequence = sequence,
      .applied = applied,
      .guarded = true,
      .devices = {
          {.id = "GPU-" + node, .lowest = 100_W, .highest = 300_W, .cap = cap, .fallback = 100_W}}};
}

class GrantBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    book_.SetLimits({500_W});
    for (const std::string node : {"a", "b"}) Report(node, 0, 100_W);
  }

  void Report(const std::string& node, std::uint64_t applied, Watts cap) {
    EXPECT_TRUE(book_.Hear(ReportOf(node, ++sequence_, applied, cap), 0, now_));
  }
  // A report of both nodes and their grants, which they apply at once.
  void Round() {
    for (const std::string node : {"a", "b"}) {
      Report(node, applied_[node], caps_[node]);
      const auto grant = book_.Answer(node, now_);
      if (!grant) continue;
      applied_[node] = grant->number;
      caps_[node] = grant->caps.at(0).cap;
    }
    Step();
    now_ += 2s;
  }
  void Step() {
    const GrantBook::Plan plan = book_.MakePlan(now_);
    for (const StoredNode& stored : plan.to_store) stored_[stored.name] = stored;
    book_.Adopt(plan, now_);
  }
  Watts Committed() { return book_.committed(0, now_); }

  GrantBook book_{{{.name = "site"}}, {}};
  TimePoint now_{1000s};
  std::uint64_t sequence_ = 0;
  std::map<std::string, std::uint64_t> applied_;
  std::map<std::string, Watts> caps_{{"a", 100_W}, {"b", 100_W}};
  std::map<std::string, StoredNode> stored_;
};

TEST_F(GrantBookTest, NothingIsGrantedBeforeItIsStored) {
  EXPECT_FALSE(book_.Answer("a", now_));
  Step();
  EXPECT_EQ(stored_["a"].devices.at(0).ceiling, 100_W);
  EXPECT_TRUE(book_.Answer("a", now_));
}

TEST_F(GrantBookTest, WattsMoveByLoweringFirstAndRaisingAfterTheConfirmation) {
  book_.Want("a", "GPU-a", 300_W);
  book_.Want("b", "GPU-b", 200_W);
  Round();
  Round();
  EXPECT_EQ(caps_["a"], 300_W);
  EXPECT_EQ(caps_["b"], 200_W);
  book_.Want("a", "GPU-a", 200_W);
  book_.Want("b", "GPU-b", 300_W);
  Step();
  // The answers say so at once to the one, and not yet to the other.
  Report("a", applied_["a"], 300_W);
  Report("b", applied_["b"], 200_W);
  const auto lowered = book_.Answer("a", now_);
  EXPECT_EQ(lowered->caps.at(0).cap, 200_W);
  EXPECT_EQ(book_.Answer("b", now_)->caps.at(0).cap, 200_W);
  EXPECT_EQ(Committed(), 500_W);
  Step();
  EXPECT_EQ(book_.Answer("b", now_)->caps.at(0).cap, 200_W) << "a has not confirmed";
  Report("a", lowered->number, 200_W);
  Step();
  EXPECT_EQ(book_.Answer("b", now_)->caps.at(0).cap, 300_W);
  EXPECT_EQ(Committed(), 500_W);
}

TEST_F(GrantBookTest, ACutOffNodeCostsItsCapUntilItExpiresAndThenItsFallback) {
  book_.Want("a", "GPU-a", 300_W);
  book_.Want("b", "GPU-b", 300_W);
  Round();
  Round();
  EXPECT_EQ(Committed(), 500_W);
  const Watts kept = caps_["a"];
  const TimePoint cut = now_ - 2s;
  while (now_ - cut < 22s) {
    Report("b", applied_["b"], caps_["b"]);
    applied_["b"] = book_.Answer("b", now_)->number;
    Step();
    EXPECT_EQ(book_.CommittedOf("a", now_), kept);
    now_ += 1s;
  }
  now_ += 2s;
  Step();
  EXPECT_EQ(book_.CommittedOf("a", now_), 100_W);
}

TEST_F(GrantBookTest, ANodeWithoutAGuardKeepsItsWattsHoweverLongItIsSilent) {
  NodeReport report = ReportOf("a", ++sequence_, 0, 250_W);
  report.guarded = false;
  ASSERT_TRUE(book_.Hear(report, 0, now_));
  now_ += 3600s;
  Step();
  EXPECT_EQ(book_.CommittedOf("a", now_), 250_W);
  EXPECT_TRUE(book_.Forget("a"));
  EXPECT_EQ(book_.CommittedOf("a", now_), 0_W);
}

TEST_F(GrantBookTest, WhatWasAnsweredToADeadNodeStaysReservedAndWhatWasOnlyPlannedDoesNot) {
  const auto unguarded = [this](const std::string& node, std::uint64_t applied, Watts cap) {
    NodeReport report = ReportOf(node, ++sequence_, applied, cap);
    report.guarded = false;
    EXPECT_TRUE(book_.Hear(report, 0, now_));
  };
  // A book without the reports of SetUp(), whose nodes are guarded.
  book_ = GrantBook({{.name = "site"}}, {});
  book_.SetLimits({500_W});
  unguarded("a", 0, 100_W);
  unguarded("b", 0, 100_W);
  book_.Want("a", "GPU-a", 250_W);
  book_.Want("b", "GPU-b", 250_W);
  Step();
  EXPECT_EQ(book_.CommittedOf("a", now_), 250_W);
  EXPECT_EQ(book_.CommittedOf("b", now_), 250_W);
  // The answer to a is on its way when both daemons die: a may have applied it. Nothing was ever
  // said to b.
  ASSERT_EQ(book_.Answer("a", now_)->caps.at(0).cap, 250_W);
  for (int minute = 0; minute < 60; ++minute) {
    now_ += 60s;
    Step();
    EXPECT_EQ(book_.CommittedOf("a", now_), 250_W) << minute;
    EXPECT_EQ(book_.CommittedOf("b", now_), 100_W) << minute;
  }
  // A third node may have b's watts, and never a's.
  unguarded("c", 0, 100_W);
  book_.Want("c", "GPU-c", 300_W);
  Step();
  EXPECT_EQ(book_.Answer("c", now_)->caps.at(0).cap, 150_W);
  EXPECT_EQ(Committed(), 500_W);
}

TEST_F(GrantBookTest, ARestartedServerTakesStoredCeilingsForGrantsOfThatMoment) {
  book_.Want("a", "GPU-a", 300_W);
  book_.Want("b", "GPU-b", 200_W);
  Round();
  Round();
  GrantBook next({{.name = "site"}}, {.incarnation = 2});
  next.SetLimits({500_W});
  for (const auto& [name, stored] : stored_) next.Restore(stored, 0, now_);
  EXPECT_EQ(next.committed(0, now_), 500_W);
  next.Want("b", "GPU-b", 300_W);
  ASSERT_TRUE(next.Hear(ReportOf("b", ++sequence_, applied_["b"], 200_W), 0, now_));
  const GrantBook::Plan plan = next.MakePlan(now_);
  next.Adopt(plan, now_);
  const auto grant = next.Answer("b", now_);
  EXPECT_EQ(grant->caps.at(0).cap, 200_W) << "nothing is known of a's 300 W";
  EXPECT_GT(grant->number, applied_["b"]);
  now_ += 23s;
  ASSERT_TRUE(next.Hear(ReportOf("b", ++sequence_, grant->number, 200_W), 0, now_));
  // The first plan takes back what would have been answered to the silent node.
  next.Adopt(next.MakePlan(now_), now_);
  next.Adopt(next.MakePlan(now_), now_);
  EXPECT_EQ(next.Answer("b", now_)->caps.at(0).cap, 300_W) << "a has fallen back";
}

TEST_F(GrantBookTest, ALowerLimitLowersEverybodyWhateverIsWanted) {
  book_.Want("a", "GPU-a", 300_W);
  book_.Want("b", "GPU-b", 200_W);
  Round();
  Round();
  book_.SetLimits({350_W});
  Step();
  // Both start from what they have reported: nobody knows yet whether they have taken their grants.
  Round();
  Round();
  Round();
  EXPECT_EQ(Committed(), 350_W);
  EXPECT_EQ(caps_["a"], 200_W);
  EXPECT_EQ(caps_["b"], 150_W);
}

TEST_F(GrantBookTest, WhenNothingCanBeStoredNothingIsRaised) {
  Step();
  book_.Want("a", "GPU-a", 300_W);
  const GrantBook::Plan plan = book_.MakePlan(now_, GrantBook::Raises::kNone);
  EXPECT_TRUE(plan.to_store.empty());
  book_.Adopt(plan, now_);
  EXPECT_EQ(book_.Answer("a", now_)->caps.at(0).cap, 100_W);
}

TEST_F(GrantBookTest, AnOldReportConfirmsAndSaysNothingElse) {
  Step();
  const std::uint64_t newest = sequence_;
  EXPECT_FALSE(book_.Hear(ReportOf("b", newest, 0, 300_W), 0, now_));
  EXPECT_EQ(book_.CommittedOf("b", now_), 100_W);
}

TEST_F(GrantBookTest, ANodeThatIsToComeCountsWithWhatIsExpected) {
  book_.Expect("c", 0, 300_W);
  EXPECT_EQ(Committed(), 500_W);
  Report("c", 0, 100_W);
  EXPECT_EQ(Committed(), 300_W);
}

TEST_F(GrantBookTest, ADomainWithinADomainHoldsItsOwnLimit) {
  GrantBook book({{.name = "site"}, {.name = "rack", .parent = 0}}, {});
  book.SetLimits({1000_W, 250_W});
  ASSERT_TRUE(book.Hear(ReportOf("a", 1, 0, 100_W), 1, now_));
  ASSERT_TRUE(book.Hear(ReportOf("b", 1, 0, 100_W), 0, now_));
  book.Want("a", "GPU-a", 300_W);
  book.Want("b", "GPU-b", 300_W);
  book.Adopt(book.MakePlan(now_), now_);
  EXPECT_EQ(book.Answer("a", now_)->caps.at(0).cap, 250_W);
  EXPECT_EQ(book.Answer("b", now_)->caps.at(0).cap, 300_W);
  EXPECT_EQ(book.committed(1, now_), 250_W);
  EXPECT_EQ(book.committed(0, now_), 550_W);
}

TEST(NodeLeaseTest, AGrantCountsFromTheReportThatItAnswers) {
  NodeLease lease("first");
  const TimePoint sent{100s};
  const Grant grant{.number = 7, .valid = 20s};
  EXPECT_EQ(lease.Accept(grant, sent, sent + 5s), Seconds(15));
  EXPECT_FALSE(lease.Accept(grant, sent, sent + 6s)) << "it came twice";
  EXPECT_FALSE(lease.Accept({.number = 6, .valid = 20s}, sent, sent + 6s)) << "it is older";
  EXPECT_FALSE(lease.Accept({.number = 8, .valid = 20s}, sent, sent + 20s)) << "it came too late";
  lease.NoteApplied(7);
  EXPECT_EQ(lease.BeginReport().applied, 7U);
}

TEST(MessagesTest, ReportsAndGrantsSurviveTheirJson) {
  NodeReport report = ReportOf("", 3, 5, 200_W);
  report.devices[0].power = 180_W;
  report.jobs = {{.id = "slurm:zeus.1",
                  .name = "bert",
                  .devices = {"GPU-"},
                  .partition = "prod",
                  .max_slowdown = 1.05,
                  .curve = {{.limit = 200_W, .draw = 190_W, .slowdown = 1.1, .sigma = 0.01}}}};
  EXPECT_EQ(ParseNodeReport(ToJson(report)).value(), report);
  const Grant grant{.number = 9,
                    .valid = 20s,
                    .next_report = 2s,
                    .caps = {{.device = "GPU-a", .cap = 200_W, .fallback = 100_W}}};
  EXPECT_EQ(ParseGrant(ToJson(grant)).value(), grant);
}

TEST(MessagesTest, ACurveStandsInALabel) {
  const auto curve = ParseCurveText(" 100:96:1.31  250:203:1:0.02 ");
  ASSERT_TRUE(curve.ok()) << curve.error().message;
  EXPECT_EQ(curve.value(), (std::vector<CurveReport>{
                               {.limit = 100_W, .draw = 96_W, .slowdown = 1.31},
                               {.limit = 250_W, .draw = 203_W, .slowdown = 1, .sigma = 0.02}}));
  EXPECT_TRUE(ParseCurveText("").value().empty());
  for (const char* bad : {"100", "100:96", "100:96:x", "100:96:1:0:0", "-1:2:3", "100:96:nan"})
    EXPECT_FALSE(ParseCurveText(bad).ok()) << bad;
}

TEST(MessagesTest, NumbersThatAreNoPowerAreRefusedByName) {
  struct Case {
    const char* field;
    Json value;
  };
  for (const Case& one : {Case{"cap_watts", -1}, Case{"cap_watts", 1e9}, Case{"highest_watts", 50},
                          Case{"power_watts", "much"}, Case{"lowest_watts", nullptr}}) {
    Json json = ToJson(ReportOf("a", 1, 0, 100_W));
    json["devices"][0][one.field] = one.value;
    const auto parsed = ParseNodeReport(json);
    ASSERT_FALSE(parsed.ok()) << one.field;
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("devices[0]")) << one.field;
  }
}

}  // namespace
}  // namespace grant_book_test
}  // namespace zeus::budget
