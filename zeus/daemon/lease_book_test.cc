#include "zeus/daemon/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "zeus/daemon/testing/lease_book_fixture.h"

namespace zeus::daemon::lease_book_test {
namespace {

using namespace zeus::daemon::testing;
using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using wire::AtMost;
using wire::Exactly;
using wire::LeaseClass;
using wire::LeaseState;
using Kind = wire::LeaseRefusal::Kind;

using LeaseBookTest = LeaseBookFixture;

TEST_F(LeaseBookTest, ALeaseIsAppliedActiveAndPutBack) {
  const LeaseView created = Create(SpecOf({{kLimit1, Exactly{200_W}}}));
  EXPECT_EQ(created.state, LeaseState::kApplying);
  EXPECT_EQ(created.pid, 100);
  EXPECT_EQ(desk_.woken, std::set<KnobKey>{kLimit1});

  desk_.SettleAll(*book_);
  const LeaseView active = ViewOf(created.id);
  EXPECT_EQ(active.state, LeaseState::kActive);
  EXPECT_GT(active.version, created.version);
  EXPECT_EQ(active.knobs.at(0).effective, KnobValue(Setting(200_W)));
  EXPECT_EQ(active.knobs.at(0).enforced, KnobValue(Setting(200_W)));

  const LeaseView ending = Granted(book_->End(ann_, control_, created.id));
  EXPECT_EQ(ending.state, LeaseState::kRestoring);
  EXPECT_EQ(ending.end_reason, "deleted");
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(created.id).state, LeaseState::kEnded);
  EXPECT_EQ(ViewOf(created.id).knobs.at(0).effective, KnobValue(Setting(300_W)));
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(300_W)));
  EXPECT_TRUE(book_->ClaimedKnobs().empty());
}

TEST_F(LeaseBookTest, ALeaseWithoutRequestsIsActiveAndEndsAtOnce) {
  const LeaseView created = Create(SpecOf({}));
  EXPECT_EQ(created.state, LeaseState::kActive);
  EXPECT_EQ(Granted(book_->End(ann_, control_, created.id)).state, LeaseState::kEnded);
}

TEST_F(LeaseBookTest, AProcessThatEndsEndsItsLease) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  book_->ProcessEnded(lease.id);
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(lease.id).end_reason, "holder gone");
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(300_W)));
}

TEST_F(LeaseBookTest, AConnectionThatClosesEndsItsLeasesOnly) {
  const LeaseView mine = Create(SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kConnection));
  const LeaseView other = Granted(
      book_->Create(bob_, control_, SpecOf({{kLimit1, AtMost{250_W}}}, HolderKind::kConnection)));
  book_->ConnectionClosed(ann_.connection);
  EXPECT_EQ(ViewOf(mine.id).state, LeaseState::kRestoring);
  EXPECT_EQ(ViewOf(other.id).state, LeaseState::kApplying);
}

TEST_F(LeaseBookTest, AJobThatEndsEndsItsLeases) {
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kJob);
  spec.job = "slurm:1";
  EXPECT_EQ(RefusalOf(book_->Create(ann_, control_, spec)).kind, Kind::kForbidden);
  const Grant scheduler = GrantOf({Scope::kGpuControl, Scope::kJob});
  const LeaseView lease = Granted(book_->Create(ann_, scheduler, spec));
  book_->JobEnded("slurm:2");
  EXPECT_EQ(ViewOf(lease.id).end_reason, "");
  book_->JobEnded("slurm:1");
  EXPECT_EQ(ViewOf(lease.id).end_reason, "job ended");
}

TEST_F(LeaseBookTest, AHeartbeatMovesTheDeadlineAndIsTooLateAtIt) {
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kTtl);
  spec.ttl = 10s;
  const LeaseView lease = CreateActive(spec);
  EXPECT_EQ(lease.expires_in, Seconds(10));
  clock_.Advance(9s);
  Granted(book_->Heartbeat(ann_, control_, lease.id));
  clock_.Advance(9s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kActive);
  clock_.Advance(1s);
  const LeaseRefusal late = RefusalOf(book_->Heartbeat(ann_, control_, lease.id));
  EXPECT_EQ(late.kind, Kind::kEnded);
  EXPECT_THAT(late.message, HasSubstr("expired"));
}

TEST_F(LeaseBookTest, StepEndsALeaseExactlyAtItsDeadline) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kTtl));
  EXPECT_EQ(lease.expires_in, Seconds(15)) << "the default";
  clock_.Advance(14.5s);
  EXPECT_EQ(book_->Step(), clock_.Now() + 0.5s);
  EXPECT_EQ(ViewOf(lease.id).end_reason, "");
  clock_.Advance(0.5s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).end_reason, "expired");
}

TEST_F(LeaseBookTest, AnEndedLeaseIsForgottenAfterTenMinutes) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  Granted(book_->End(ann_, control_, lease.id));
  desk_.SettleAll(*book_);
  clock_.Advance(599s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
  clock_.Advance(1s);
  book_->Step();
  EXPECT_EQ(RefusalOf(book_->View(ann_, control_, lease.id)).kind, Kind::kUnknown);
}

TEST_F(LeaseBookTest, AKnobIsHeldAndTheRefusalNamesTheLeaseButNotItsUser) {
  CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  const LeaseRefusal held =
      RefusalOf(book_->Create(bob_, control_, SpecOf({{kLimit1, Exactly{150_W}}})));
  EXPECT_EQ(held.kind, Kind::kHeld);
  EXPECT_EQ(held.message,
            "the power limit of GPU-1 is held by lease \"bert\" of another user since 00:00 UTC; "
            "ask again or take an at_most request");
  EXPECT_EQ(held.key, kLimit1);
  EXPECT_EQ(held.lease_class, "user");
  EXPECT_FALSE(held.since.empty());
  const LeaseRefusal to_root =
      RefusalOf(book_->Create(root_, admin_, SpecOf({{kLimit1, Exactly{150_W}}})));
  EXPECT_THAT(to_root.message, HasSubstr("of uid:1001 since"));
}

TEST_F(LeaseBookTest, ARefusedRequestChangesNothing) {
  CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  RefusalOf(book_->Create(bob_, control_,
                          SpecOf({{kLimit2, Exactly{150_W}}, {kLimit1, Exactly{150_W}}})));
  EXPECT_TRUE(desk_.woken.empty());
  EXPECT_EQ(book_->CountOf("uid:1002"), 0U);
  EXPECT_TRUE(book_->ClaimsOn(kLimit2).claims.empty());
}

TEST_F(LeaseBookTest, AHigherClassOverrulesAndBothAreTold) {
  const LeaseView user = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{150_W}}});
  spec.name = "cluster budget";
  spec.lease_class = LeaseClass::kSite;
  const LeaseView site = Granted(book_->Create(bob_, GrantOf({Scope::kBudget}), spec));
  desk_.SettleAll(*book_);
  LeaseView bound = ViewOf(user.id);
  EXPECT_GT(bound.version, user.version);
  EXPECT_EQ(bound.knobs.at(0).effective, KnobValue(Setting(150_W)));
  EXPECT_EQ(bound.knobs.at(0).bound_by, site.id);
  EXPECT_EQ(bound.knobs.at(0).bound_by_class, "site");
  EXPECT_EQ(bound.knobs.at(0).bound_by_name, "cluster budget");
  EXPECT_FALSE(bound.knobs.at(0).overruled);

  spec.requests = {{kLimit1, Exactly{250_W}}};
  spec.name = "operator";
  Granted(book_->Create(root_, admin_, spec));
  desk_.SettleAll(*book_);
  bound = ViewOf(user.id);
  EXPECT_TRUE(bound.knobs.at(0).overruled);
  EXPECT_EQ(bound.state, LeaseState::kActive);
}

TEST_F(LeaseBookTest, TheVersionStaysWhileNothingChanges) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  changed_.clear();
  desk_.Settle(*book_, kLimit1);
  EXPECT_EQ(ViewOf(lease.id).version, lease.version);
  EXPECT_TRUE(changed_.empty());
}

TEST_F(LeaseBookTest, AForeignChangeShowsInTheView) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  desk_.foreign.insert(kLimit1);
  desk_.Settle(*book_, kLimit1);
  EXPECT_TRUE(ViewOf(lease.id).knobs.at(0).foreign);
  EXPECT_EQ(ViewOf(lease.id).version, lease.version + 1);
}

TEST_F(LeaseBookTest, ADeviceThatRefusesRollsAllRequestsBack) {
  desk_.refusing.insert(kLimit2);
  const LeaseView lease = Create(SpecOf({{kLimit1, Exactly{200_W}}, {kLimit2, Exactly{200_W}}}));
  desk_.SettleAll(*book_);
  const LeaseView failed = ViewOf(lease.id);
  EXPECT_EQ(failed.end_reason, "failed");
  EXPECT_EQ(failed.state, LeaseState::kRestoring);
  EXPECT_EQ(book_->TroubleOf(lease.id)->message, "the driver refuses");
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(300_W)));
  EXPECT_EQ(book_->CountLeases().restore_pending, 1U);
  EXPECT_TRUE(book_->ClaimedKnobs().empty());
  EXPECT_EQ(book_->TurnedKnobs(), std::vector<KnobKey>{kLimit2}) << "it is not back yet";

  desk_.refusing.clear();
  desk_.Settle(*book_, kLimit2);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
  EXPECT_EQ(book_->CountLeases().restore_pending, 0U);
  EXPECT_TRUE(book_->TurnedKnobs().empty());
}

TEST_F(LeaseBookTest, ALeaseStaysRestoringUntilItsKnobIsBack) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  desk_.refusing.insert(kLimit1);
  Granted(book_->End(ann_, control_, lease.id));
  desk_.SettleAll(*book_);
  clock_.Advance(1h);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kRestoring);
  EXPECT_EQ(book_->CountOf("uid:1001"), 1U);
  desk_.refusing.clear();
  desk_.Settle(*book_, kLimit1);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
  EXPECT_EQ(book_->CountOf("uid:1001"), 0U);
}

TEST_F(LeaseBookTest, AReportOfEarlierClaimsSettlesNothing) {
  const LeaseView lease = Create(SpecOf({{kLimit1, Exactly{200_W}}}));
  book_->Settled(kLimit1, {.version = book_->ClaimsOn(kLimit1).version - 1});
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kApplying);
}

TEST_F(LeaseBookTest, MaintenanceSuspendsALeaseAndItIsAppliedAgain) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  desk_.suspended.insert("GPU-1");
  desk_.Settle(*book_, kLimit1);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kSuspended);
  desk_.suspended.clear();
  desk_.Settle(*book_, kLimit1);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kActive);
}

TEST_F(LeaseBookTest, ALeaseThatEndsWhileSuspendedRestoresAfterwards) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  desk_.suspended.insert("GPU-1");
  desk_.Settle(*book_, kLimit1);
  Granted(book_->End(ann_, control_, lease.id));
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kRestoring);
  desk_.suspended.clear();
  desk_.Settle(*book_, kLimit1);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
}

TEST_F(LeaseBookTest, ReplacingTurnsTheNewKnobsAndPutsTheOldOnesBack) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  const LeaseView replaced =
      Granted(book_->Replace(ann_, control_, lease.id, {{kLimit2, Exactly{150_W}}}));
  EXPECT_EQ(replaced.state, LeaseState::kApplying);
  EXPECT_GT(replaced.version, lease.version);
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kActive);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(300_W)));
  EXPECT_EQ(PresentOf(kLimit2), KnobValue(Setting(150_W)));
}

TEST_F(LeaseBookTest, AReplacementThatFailsIsTakenBack) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  desk_.refusing.insert(kLimit2);
  Granted(book_->Replace(ann_, control_, lease.id, {{kLimit2, Exactly{150_W}}}));
  // The knob that may have to be taken back is still held.
  EXPECT_EQ(RefusalOf(book_->Create(bob_, control_, SpecOf({{kLimit1, Exactly{120_W}}}))).kind,
            Kind::kHeld);
  desk_.SettleAll(*book_);
  const LeaseView after = ViewOf(lease.id);
  EXPECT_EQ(after.state, LeaseState::kActive);
  ASSERT_EQ(after.knobs.size(), 1U);
  EXPECT_EQ(after.knobs.at(0).request.key, kLimit1);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(200_W)));
  EXPECT_EQ(book_->TroubleOf(lease.id)->message, "the driver refuses");
}

TEST_F(LeaseBookTest, AKnobThatAReplacementGaveUpIsFreeAfterwards) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  Granted(book_->Replace(ann_, control_, lease.id, {}));
  desk_.SettleAll(*book_);
  Granted(book_->Create(bob_, control_, SpecOf({{kLimit1, Exactly{120_W}}})));
}

TEST_F(LeaseBookTest, ARefusedReplacementChangesNothing) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  RefusalOf(book_->Replace(ann_, control_, lease.id, {{kLimit1, Exactly{20_W}}}));
  EXPECT_EQ(ViewOf(lease.id), lease);
  EXPECT_TRUE(desk_.woken.empty());
}

TEST_F(LeaseBookTest, TheSameRequestIdFindsTheSameLease) {
  LeaseSpec spec = SpecOf({{kLimit1, Exactly{200_W}}});
  spec.request_id = "once";
  const LeaseView first = Create(spec);
  EXPECT_EQ(Create(spec).id, first.id);
  EXPECT_EQ(RefusalOf(book_->Create(bob_, control_, spec)).kind, Kind::kHeld)
      << "another subject's id is another one";
}

TEST_F(LeaseBookTest, HandingOverChangesTheHolder) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kConnection));
  Holder child{.kind = HolderKind::kProcess, .process = ProcessIdentity{.pid = 200}};
  const LeaseView handed = Granted(book_->HandOver(ann_, control_, lease.id, child));
  EXPECT_EQ(handed.holder, HolderKind::kProcess);
  EXPECT_EQ(handed.pid, 200);
  book_->ConnectionClosed(ann_.connection);
  EXPECT_EQ(ViewOf(lease.id).end_reason, "");
  book_->ProcessEnded(lease.id);
  EXPECT_EQ(ViewOf(lease.id).end_reason, "holder gone");
}

TEST_F(LeaseBookTest, ClassesOfLeasesCanBeEndedTogether) {
  const LeaseView one = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  const LeaseView two = CreateActive(SpecOf({{kLimit2, AtMost{200_W}}}));
  const LeaseView standing = Granted(
      book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  EXPECT_EQ(book_->EndAll({.device = "GPU-1"}, EndReason::kRevoked), 1U);
  EXPECT_EQ(ViewOf(one.id).end_reason, "revoked");
  EXPECT_EQ(book_->EndAll({}, EndReason::kStopped), 1U);
  EXPECT_EQ(ViewOf(two.id).end_reason, "stopped");
  EXPECT_EQ(ViewOf(standing.id).end_reason, "");
  EXPECT_EQ(book_->CountLeases().ended.at(EndReason::kStopped), 1U);
}

TEST_F(LeaseBookTest, LeasesThatTheRulesForbidAreRevoked) {
  const LeaseView one = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  const LeaseView two = Granted(book_->Create(bob_, control_, SpecOf({{kLimit1, AtMost{200_W}}})));
  EXPECT_EQ(book_->Revoke([](const Caller& owner, const LeaseView&) { return owner.uid == 1002u; }),
            1U);
  EXPECT_EQ(ViewOf(one.id).end_reason, "revoked");
  EXPECT_EQ(ViewOf(two.id).end_reason, "");
}

TEST_F(LeaseBookTest, TheListenerMayAskTheBook) {
  book_.reset();
  LeaseBook::Options options = OptionsOf();
  std::vector<LeaseState> seen;
  options.changed = [&](const std::string& id) { seen.push_back(ViewOf(id).state); };
  book_ = std::make_unique<LeaseBook>(clock_, desk_, nullptr, options);
  CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  EXPECT_EQ(seen, (std::vector{LeaseState::kApplying, LeaseState::kActive}));
}

// For the thread sanitizer: everything at once, on a clock that stands still.
TEST_F(LeaseBookTest, ManyThreadsShareABook) {
  book_.reset();
  LeaseBook::Options options = OptionsOf();
  options.entropy = SystemEntropy;
  std::atomic<int> changes = 0;
  options.changed = [&changes](const std::string&) { ++changes; };
  book_ = std::make_unique<LeaseBook>(clock_, desk_, nullptr, options);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const Caller caller = UserCaller(static_cast<uid_t>(2000 + i), 300 + i);
      for (int round = 0; round < 20; ++round) {
        const auto made = book_->Create(caller, admin_, SpecOf({}));
        const std::string id = std::get<LeaseView>(made).id;
        (void)book_->Heartbeat(caller, admin_, id);
        (void)book_->List(caller, admin_);
        (void)book_->CountLeases();
        book_->Settled(kLimit1, {.version = 1});
        (void)book_->End(caller, admin_, id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(book_->CountLeases().ended.at(EndReason::kDeleted), 80U);
  EXPECT_GE(changes, 160);
}

}  // namespace
}  // namespace zeus::daemon::lease_book_test
