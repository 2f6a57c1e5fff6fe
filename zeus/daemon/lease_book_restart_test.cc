#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/testing/lease_book_fixture.h"

namespace zeus::daemon::lease_book_restart_test {
namespace {

using namespace zeus::daemon::testing;
using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using wire::AtMost;
using wire::Exactly;
using wire::LeaseState;
using Kind = wire::LeaseRefusal::Kind;

using LeaseBookRestartTest = LeaseBookFixture;

TEST_F(LeaseBookRestartTest, ACrashLosesNoLeaseWithALivingHolder) {
  const LeaseView alive = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  const LeaseView dead = Granted(book_->Create(bob_, control_, SpecOf({{kLimit2, AtMost{200_W}}})));
  const LeaseView connection = Create(SpecOf({{kLimit2, AtMost{210_W}}}, HolderKind::kConnection));
  Kill();
  running_ = {100};  // Process 101 has ended.
  Restart();
  const auto adopted = book_->Load();
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  ASSERT_EQ(adopted.value().size(), 1U);
  EXPECT_EQ(adopted.value()[0].lease, alive.id);
  EXPECT_EQ(adopted.value()[0].process, *ann_.process);
  EXPECT_EQ(ViewOf(alive.id).state, LeaseState::kApplying);
  EXPECT_EQ(ViewOf(alive.id).since, alive.since);
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(alive.id).state, LeaseState::kActive);
  for (const LeaseView& gone : {dead, connection}) {
    EXPECT_EQ(ViewOf(gone.id).state, LeaseState::kEnded);
    EXPECT_EQ(ViewOf(gone.id).end_reason, "holder gone");
  }
  EXPECT_EQ(book_->ClaimedKnobs(), std::vector<KnobKey>{kLimit1});
  EXPECT_EQ(RefusalOf(book_->Heartbeat(bob_, control_, dead.id)).kind, Kind::kEnded);
}

TEST_F(LeaseBookRestartTest, HeartbeatsHaveATtlOfGraceAfterARestart) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kTtl));
  Kill();
  clock_.Advance(20s);
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  clock_.Advance(14s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).end_reason, "");
  Granted(book_->Heartbeat(ann_, control_, lease.id));
  clock_.Advance(15s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).end_reason, "expired");
}

// A budget of 200 W that is valid for 10 s, and 120 W after that.
LeaseSpec BudgetSpec() {
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kTtl);
  spec.lease_class = wire::LeaseClass::kSite;
  spec.ttl = 10s;
  spec.fallback = {{kLimit1, AtMost{120_W}}};
  return spec;
}

TEST_F(LeaseBookRestartTest, ABudgetThatIsNotRenewedFallsBackAndStays) {
  const LeaseView lease = Granted(book_->Create(root_, admin_, BudgetSpec()));
  desk_.SettleAll(*book_);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(200_W)));
  clock_.Advance(10s);
  book_->Step();
  desk_.SettleAll(*book_);
  LeaseView fallen = ViewOf(lease.id);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(120_W)));
  EXPECT_TRUE(fallen.fell_back);
  EXPECT_FALSE(fallen.expires_in);
  EXPECT_EQ(fallen.state, LeaseState::kActive);
  Granted(book_->Heartbeat(root_, admin_, lease.id));  // Renews nothing.
  clock_.Advance(3600s);
  book_->Step();
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kActive);

  Kill();
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  desk_.SettleAll(*book_);
  EXPECT_TRUE(ViewOf(lease.id).fell_back);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(120_W)));

  const LeaseBook::Renewal renewal{.ttl = 20s, .fallback = {{kLimit1, AtMost{110_W}}}};
  const LeaseView renewed =
      Granted(book_->Replace(root_, admin_, lease.id, {{kLimit1, AtMost{180_W}}}, renewal));
  desk_.SettleAll(*book_);
  EXPECT_FALSE(renewed.fell_back);
  EXPECT_EQ(renewed.expires_in, Seconds(20));
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(180_W)));
  clock_.Advance(20s);
  book_->Step();
  desk_.SettleAll(*book_);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(110_W)));
}

TEST_F(LeaseBookRestartTest, ABudgetThatEndedWhileTheDaemonWasAwayFallsBackAtOnce) {
  const LeaseView lease = Granted(book_->Create(root_, admin_, BudgetSpec()));
  desk_.SettleAll(*book_);
  Kill();
  clock_.Advance(11s);
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_TRUE(ViewOf(lease.id).fell_back);
  desk_.SettleAll(*book_);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(120_W)));
}

TEST_F(LeaseBookRestartTest, ABudgetIsNoneTheLongerValidForARestart) {
  const LeaseView lease = Granted(book_->Create(root_, admin_, BudgetSpec()));
  desk_.SettleAll(*book_);
  Kill();
  clock_.Advance(9s);
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  book_->Step();
  EXPECT_FALSE(ViewOf(lease.id).fell_back);
  clock_.Advance(1s);
  book_->Step();
  desk_.SettleAll(*book_);
  EXPECT_TRUE(ViewOf(lease.id).fell_back);
  EXPECT_EQ(PresentOf(kLimit1), KnobValue(Setting(120_W)));
}

TEST_F(LeaseBookRestartTest, AFallbackOutOfBoundsIsRefusedAtOnce) {
  LeaseSpec spec = BudgetSpec();
  spec.fallback = {{kLimit1, AtMost{1_W}}};
  EXPECT_EQ(RefusalOf(book_->Create(root_, admin_, spec)).kind, Kind::kOutOfBounds);
}

TEST_F(LeaseBookRestartTest, AnotherBootForgetsAllButStandingLeases) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  const LeaseView standing = Granted(
      book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  Kill();
  boot_ = "boot-2";
  running_ = {100};
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_EQ(RefusalOf(book_->View(root_, admin_, lease.id)).kind, Kind::kUnknown);
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(standing.id).state, LeaseState::kActive);
  EXPECT_EQ(PresentOf(kLimit2), KnobValue(Setting(220_W)));
}

TEST_F(LeaseBookRestartTest, AnEndedLeaseDoesNotComeBack) {
  const LeaseView standing = Granted(
      book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  Granted(book_->End(ann_, control_, lease.id));
  Granted(book_->End(root_, admin_, standing.id));
  Kill();
  running_ = {100};
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_TRUE(book_->ClaimedKnobs().empty());
}

TEST_F(LeaseBookRestartTest, ARepeatedRequestFindsItsLeaseAfterARestart) {
  LeaseSpec spec = SpecOf({{kLimit1, Exactly{200_W}}});
  spec.request_id = "once";
  const LeaseView lease = Create(spec);
  Kill();
  running_ = {100};
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_EQ(Create(spec).id, lease.id);
}

TEST_F(LeaseBookRestartTest, ADamagedFileIsNamedAndStandingLeasesHoldAllTheSame) {
  Granted(book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  Kill();
  ASSERT_TRUE(ReplaceFile(folder_.path() / "leases.json", "{\"schema\": 7").ok());
  Restart();
  const auto loaded = book_->Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("leases.json"));
  EXPECT_EQ(book_->ClaimedKnobs(), std::vector<KnobKey>{kLimit2});
}

TEST_F(LeaseBookRestartTest, AFileThatIsEmptyAfterAPowerLossIsNoReasonNotToStart) {
  Granted(book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  Kill();
  ASSERT_TRUE(ReplaceFile(folder_.path() / "leases.json", "").ok());
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_EQ(book_->ClaimedKnobs(), std::vector<KnobKey>{kLimit2});
}

TEST_F(LeaseBookRestartTest, TheIdentityOfAnOwnerOutlastsTheDaemon) {
  Caller ann = ann_;
  ann.gid = 100;
  ann.groups = {27, 2000};
  ann.contained = true;
  ann.cgroup = "/slurm/uid_1001/job_7";
  Caller token{.transport = Caller::Transport::kTcp, .subject = "ci"};
  token.token_scopes = ScopeSet{Scope::kGpuControl, Scope::kBudget};
  Granted(book_->Create(ann, control_, SpecOf({{kLimit1, AtMost{200_W}}})));
  Granted(book_->Create(token, control_, SpecOf({{kLimit2, AtMost{200_W}}}, HolderKind::kTtl)));
  Kill();
  running_ = {100};
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  int seen = 0;
  book_->Revoke([&](const Caller& owner, const LeaseView& view) {
    ++seen;
    EXPECT_EQ(view.subject, owner.subject);
    const Caller& before = view.subject == "ci" ? token : ann;
    EXPECT_EQ(owner.transport, before.transport);
    EXPECT_EQ(owner.uid, before.uid);
    EXPECT_EQ(owner.gid, before.gid);
    EXPECT_EQ(owner.groups, before.groups);
    EXPECT_EQ(owner.contained, before.contained);
    EXPECT_EQ(owner.cgroup, before.cgroup);
    EXPECT_EQ(owner.process, before.process);
    EXPECT_EQ(owner.token_scopes, before.token_scopes);
    return true;
  });
  EXPECT_EQ(seen, 2);
}

TEST_F(LeaseBookRestartTest, ALeaseOfAJobThatIsGoneEnds) {
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kJob);
  spec.job = "slurm:1";
  const Grant scheduler = GrantOf({Scope::kGpuControl, Scope::kJob});
  jobs_ = {"slurm:1"};
  const LeaseView lease = Granted(book_->Create(ann_, scheduler, spec));
  spec.job = "slurm:2";
  EXPECT_EQ(RefusalOf(book_->Create(ann_, scheduler, spec)).kind, Kind::kMalformed);
  Kill();
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_EQ(ViewOf(lease.id).end_reason, "");
  Kill();
  jobs_->clear();
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  desk_.SettleAll(*book_);
  EXPECT_EQ(ViewOf(lease.id).end_reason, "job ended");
  EXPECT_TRUE(book_->ClaimedKnobs().empty());
}

TEST_F(LeaseBookRestartTest, HeartbeatsWriteTheFileOnceASecondAtMost) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kTtl));
  clock_.Advance(1s);
  Granted(book_->Heartbeat(ann_, control_, lease.id));
  book_->Step();
  const auto content = [this] { return ReadSmallFile(folder_.path() / "leases.json").value(); };
  const std::string before = content();
  for (int i = 0; i < 9; ++i) {
    clock_.Advance(0.1s);
    Granted(book_->Heartbeat(ann_, control_, lease.id));
    book_->Step();
    EXPECT_EQ(content(), before);
  }
  clock_.Advance(0.1s);
  book_->Step();
  EXPECT_NE(content(), before);
}

}  // namespace
}  // namespace zeus::daemon::lease_book_restart_test
