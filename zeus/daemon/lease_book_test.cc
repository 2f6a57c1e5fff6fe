#include "zeus/daemon/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/daemon/testing/fake_knob_desk.h"

namespace zeus::daemon::lease_book_test {
namespace {

using namespace std::chrono_literals;
using namespace zeus::literals;
using testing::FakeKnobDesk;
using ::testing::HasSubstr;
using wire::AtMost;
using wire::Demand;
using wire::Exactly;
using wire::HolderKind;
using wire::InRange;
using wire::KnobKey;
using wire::KnobRequest;
using wire::KnobValue;
using wire::LeaseClass;
using wire::LeaseKnob;
using wire::LeaseRefusal;
using wire::LeaseSpec;
using wire::LeaseState;
using wire::LeaseView;
using Kind = LeaseRefusal::Kind;

const KnobKey kLimit1{"GPU-1", LeaseKnob::kGpuPowerLimit};
const KnobKey kLimit2{"GPU-2", LeaseKnob::kGpuPowerLimit};
const KnobKey kClock1{"GPU-1", LeaseKnob::kGraphicsClock};
const KnobKey kCpu{"cpu:0", LeaseKnob::kCpuPowerLimit};

Caller UserCaller(uid_t uid, std::int64_t pid = 100) {
  Caller caller{.subject = "uid:" + std::to_string(uid), .uid = uid};
  caller.process = ProcessIdentity{.pid = pid, .start_ticks = 7, .pid_namespace = "pid:[1]"};
  caller.connection = static_cast<std::uint64_t>(pid);
  return caller;
}

Grant GrantOf(ScopeSet scopes) {
  Grant grant{.scopes = scopes, .all_devices = true};
  return grant;
}

LeaseSpec SpecOf(std::vector<KnobRequest> requests, HolderKind holder = HolderKind::kProcess) {
  LeaseSpec spec{.name = "bert", .holder = holder};
  spec.requests = std::move(requests);
  return spec;
}

template <class T>
T Granted(const OrRefusal<T>& outcome) {
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome)) {
    ADD_FAILURE() << "refused: " << refusal->message;
    return T();
  }
  return std::get<T>(outcome);
}

template <class T>
LeaseRefusal RefusalOf(const OrRefusal<T>& outcome) {
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome)) return *refusal;
  ADD_FAILURE() << "not refused";
  return {};
}

class LeaseBookTest : public ::testing::Test {
 protected:
  LeaseBookTest() { Restart(); }

  LeaseBook::Options OptionsOf() {
    LeaseBook::Options options;
    options.state_file = folder_.path() / "leases.json";
    options.standing_file = folder_.path() / "standing.json";
    options.boot_clock = [this] { return BootTime{boot_, clock_.Now().time_since_epoch()}; };
    options.devices_of = [this](const Caller&) { return devices_of_jobs_; };
    options.is_running = [this](const ProcessIdentity& p) { return running_.contains(p.pid); };
    options.owner_of = [this](const ProcessIdentity& p) -> std::optional<uid_t> {
      return p.pid == 200 ? std::optional<uid_t>(1001) : std::nullopt;
    };
    options.entropy = [this] { return ++ids_; };
    options.changed = [this](const std::string& lease) { changed_.push_back(lease); };
    return options;
  }
  // The daemon is killed and starts again: nothing is written on the way out.
  void Kill() {
    std::filesystem::copy(folder_.path(), copy_.path(),
                          std::filesystem::copy_options::overwrite_existing);
    book_.reset();
    std::filesystem::copy(copy_.path(), folder_.path(),
                          std::filesystem::copy_options::overwrite_existing);
  }
  void Restart() {
    book_.reset();
    desk_.woken.clear();
    book_ = std::make_unique<LeaseBook>(clock_, desk_, nullptr, OptionsOf());
  }

  LeaseView Create(const LeaseSpec& spec) { return Granted(book_->Create(ann_, control_, spec)); }
  LeaseView CreateActive(const LeaseSpec& spec) {
    const LeaseView created = Create(spec);
    desk_.SettleAll(*book_);
    return ViewOf(created.id);
  }
  LeaseView ViewOf(const std::string& id) { return Granted(book_->View(root_, admin_, id)); }
  KnobValue PresentOf(const KnobKey& knob) { return *desk_.present.at(knob); }

  zeus::testing::TemporaryDirectory folder_;
  zeus::testing::TemporaryDirectory copy_;
  VirtualClock clock_;
  std::string boot_ = "boot-1";
  FakeKnobDesk desk_;
  std::set<std::string> devices_of_jobs_{};
  std::set<std::int64_t> running_{};
  std::vector<std::string> changed_{};
  std::uint64_t ids_ = 0;
  const Caller ann_ = UserCaller(1001);
  const Caller bob_ = UserCaller(1002, 101);
  const Caller root_ = UserCaller(0, 1);
  const Grant control_ = GrantOf({Scope::kGpuControl, Scope::kCpuControl});
  const Grant admin_ = GrantOf({Scope::kAdmin});
  std::unique_ptr<LeaseBook> book_;
};

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

  desk_.refusing.clear();
  desk_.Settle(*book_, kLimit2);
  EXPECT_EQ(ViewOf(lease.id).state, LeaseState::kEnded);
  EXPECT_EQ(book_->CountLeases().restore_pending, 0U);
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
  // Nobody else gets the knob that may have to be taken back.
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

TEST_F(LeaseBookTest, OtherPeoplesLeasesDoNotExist) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  EXPECT_EQ(RefusalOf(book_->View(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->End(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->Replace(bob_, control_, lease.id, {})).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->Heartbeat(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_TRUE(book_->List(bob_, control_).empty());
  EXPECT_EQ(book_->List(root_, admin_).size(), 1U);
}

TEST_F(LeaseBookTest, RootOfAContainerIsNotTheOwnerOfRootsLeases) {
  const LeaseView lease = Granted(book_->Create(root_, admin_, SpecOf({{kLimit1, AtMost{200_W}}})));
  Caller contained = UserCaller(0, 5);
  contained.contained = true;
  EXPECT_EQ(RefusalOf(book_->End(contained, control_, lease.id)).kind, Kind::kUnknown);
  Caller token{.transport = Caller::Transport::kTcp, .subject = "uid:0"};
  EXPECT_EQ(RefusalOf(book_->End(token, control_, lease.id)).kind, Kind::kUnknown);
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

TEST_F(LeaseBookTest, ALeaseIsHandedToProcessesOfTheSameUserOnly) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, AtMost{200_W}}}));
  Holder stranger{.kind = HolderKind::kProcess, .process = ProcessIdentity{.pid = 201}};
  EXPECT_EQ(RefusalOf(book_->HandOver(ann_, control_, lease.id, stranger)).kind, Kind::kForbidden);
  EXPECT_EQ(RefusalOf(book_->HandOver(ann_, control_, lease.id, {})).kind, Kind::kMalformed);
  EXPECT_EQ(ViewOf(lease.id), lease);
}

struct RefusalCase {
  const char* name;
  Grant grant;
  LeaseSpec spec;
  Kind kind;
  const char* message;
};

TEST_F(LeaseBookTest, EveryRightIsChecked) {
  const KnobRequest power{kLimit1, Exactly{200_W}};
  const KnobRequest cpu{kCpu, Exactly{200_W}};
  const auto of_class = [](LeaseSpec spec, LeaseClass lease_class) {
    spec.lease_class = lease_class;
    return spec;
  };
  Grant one_device = GrantOf({Scope::kGpuControl});
  one_device.all_devices = false;
  one_device.devices = {"GPU-2"};
  const std::vector<RefusalCase> cases = {
      {"gpu scope", GrantOf({Scope::kCpuControl}), SpecOf({power}), Kind::kForbidden,
       "needs the scope gpu-control"},
      {"cpu scope", GrantOf({Scope::kGpuControl}), SpecOf({cpu}), Kind::kForbidden,
       "needs the scope cpu-control"},
      {"job class", control_, of_class(SpecOf({power}), LeaseClass::kJob), Kind::kForbidden,
       "needs the scope job"},
      {"site class", control_, of_class(SpecOf({power}), LeaseClass::kSite), Kind::kForbidden,
       "needs the scope budget"},
      {"budgets only cap", GrantOf({Scope::kBudget}), of_class(SpecOf({power}), LeaseClass::kSite),
       Kind::kForbidden, "needs the scope gpu-control"},
      {"standing", control_, SpecOf({power}, HolderKind::kStanding), Kind::kForbidden, "admin"},
      {"device", one_device, SpecOf({power}), Kind::kForbidden, "GPU-1 is not among the devices"},
      {"unknown device", control_, SpecOf({{{"GPU-9", LeaseKnob::kGpuPowerLimit}, AtMost{150_W}}}),
       Kind::kUnknown, "this machine has no power limit of \"GPU-9\""},
      {"device first", one_device, SpecOf({{{"GPU-9", LeaseKnob::kGpuPowerLimit}, AtMost{150_W}}}),
       Kind::kForbidden, "GPU-9"},
      {"unit", control_, SpecOf({{kLimit1, Exactly{800_MHz}}}), Kind::kMalformed, "watts"},
      {"twice", control_, SpecOf({power, power}), Kind::kMalformed, "twice"},
      {"below", control_, SpecOf({{kLimit1, Exactly{99_W}}}), Kind::kOutOfBounds,
       "the power limit of GPU-1 cannot be 99 W: 100 W to 300 W are possible"},
      {"above", control_, SpecOf({{kLimit1, Exactly{301_W}}}), Kind::kOutOfBounds, "300 W"},
      {"cap below", control_, SpecOf({{kLimit1, AtMost{99_W}}}), Kind::kOutOfBounds,
       "at most 99 W"},
      {"no step", control_, SpecOf({{kClock1, InRange{650_MHz, 750_MHz}}}), Kind::kOutOfBounds,
       "no clock in this range"},
  };
  for (const RefusalCase& test : cases) {
    const LeaseRefusal refusal = RefusalOf(book_->Create(ann_, test.grant, test.spec));
    EXPECT_EQ(refusal.kind, test.kind) << test.name;
    EXPECT_THAT(refusal.message, HasSubstr(test.message)) << test.name;
  }
  EXPECT_TRUE(desk_.woken.empty());
}

TEST_F(LeaseBookTest, TheCallersOwnBoundsHold) {
  Grant grant = control_;
  grant.bounds[LeaseKnob::kGpuPowerLimit] = {.min_watts = 150_W, .max_share = 0.8};
  grant.bounds[LeaseKnob::kGraphicsClock] = {.min_hertz = 800_MHz};
  const auto kind_of = [&](const KnobKey& key, Demand demand) {
    const auto outcome = book_->Create(ann_, grant, SpecOf({{key, demand}}));
    const auto* refusal = std::get_if<LeaseRefusal>(&outcome);
    if (refusal != nullptr) return std::string(refusal->kind == Kind::kOutOfBounds ? "422" : "?");
    Granted(book_->End(ann_, grant, std::get<LeaseView>(outcome).id));
    return std::string("201");
  };
  EXPECT_EQ(kind_of(kLimit1, Exactly{149_W}), "422");
  EXPECT_EQ(kind_of(kLimit1, AtMost{149_W}), "422");
  EXPECT_EQ(kind_of(kLimit1, Exactly{150_W}), "201");
  EXPECT_EQ(kind_of(kLimit1, Exactly{240_W}), "201");
  EXPECT_EQ(kind_of(kLimit1, Exactly{241_W}), "422");
  EXPECT_EQ(kind_of(kLimit1, AtMost{290_W}), "201") << "a cap raises nothing";
  EXPECT_EQ(kind_of(kClock1, Exactly{600_MHz}), "422");
  EXPECT_EQ(kind_of(kClock1, InRange{600_MHz, 800_MHz}), "201");
}

TEST_F(LeaseBookTest, DevicesOfJobsAreThoseOfTheCallersJobs) {
  Grant grant = GrantOf({Scope::kGpuControl});
  grant.all_devices = false;
  grant.devices_of_jobs = true;
  const LeaseSpec spec = SpecOf({{kLimit1, Exactly{200_W}}});
  EXPECT_EQ(RefusalOf(book_->Create(ann_, grant, spec)).kind, Kind::kForbidden);
  devices_of_jobs_ = {"GPU-1"};
  Granted(book_->Create(ann_, grant, spec));
}

TEST_F(LeaseBookTest, AStuckDeviceTakesNoNewRequests) {
  desk_.not_ready.insert("GPU-1");
  const LeaseRefusal refusal =
      RefusalOf(book_->Create(ann_, control_, SpecOf({{kLimit1, Exactly{200_W}}})));
  EXPECT_EQ(refusal.kind, Kind::kUnavailable);
  EXPECT_EQ(refusal.message, "GPU-1 is stuck");
}

TEST_F(LeaseBookTest, LeasesAtOnceAreLimited) {
  Grant grant = control_;
  grant.leases = 1;
  const LeaseView first = Granted(book_->Create(ann_, grant, SpecOf({{kLimit1, AtMost{200_W}}})));
  const LeaseRefusal refusal =
      RefusalOf(book_->Create(ann_, grant, SpecOf({{kLimit2, AtMost{200_W}}})));
  EXPECT_EQ(refusal.kind, Kind::kQuota);
  EXPECT_TRUE(refusal.retry_after.has_value());
  Granted(book_->End(ann_, grant, first.id));
  desk_.SettleAll(*book_);
  Granted(book_->Create(ann_, grant, SpecOf({{kLimit2, AtMost{200_W}}})));
}

TEST_F(LeaseBookTest, SetsPerSecondAreLimitedForEachKnob) {
  Grant grant = control_;
  grant.sets_per_second[LeaseKnob::kGpuPowerLimit] = 2;
  const LeaseView lease = Granted(book_->Create(ann_, grant, SpecOf({{kLimit1, AtMost{200_W}}})));
  for (const double watts : {201, 202, 203})
    Granted(book_->Replace(ann_, grant, lease.id, {{kLimit1, AtMost{Watts(watts)}}}));
  const LeaseRefusal refusal =
      RefusalOf(book_->Replace(ann_, grant, lease.id, {{kLimit1, AtMost{204_W}}}));
  EXPECT_EQ(refusal.kind, Kind::kQuota);
  EXPECT_EQ(refusal.retry_after, Seconds(0.5));
  Granted(
      book_->Replace(ann_, grant, lease.id, {{kLimit1, AtMost{203_W}}, {kLimit2, AtMost{200_W}}}));
  clock_.Advance(0.5s);
  Granted(book_->Replace(ann_, grant, lease.id, {{kLimit1, AtMost{204_W}}}));
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
  EXPECT_EQ(book_->Revoke([](const LeaseView& view) { return view.subject == "uid:1002"; }), 1U);
  EXPECT_EQ(ViewOf(one.id).end_reason, "revoked");
  EXPECT_EQ(ViewOf(two.id).end_reason, "");
}

TEST_F(LeaseBookTest, AStandingLeaseIsEndedByAnAdministratorOnly) {
  const LeaseView lease = Granted(
      book_->Create(ann_, admin_, SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kStanding)));
  EXPECT_EQ(RefusalOf(book_->End(ann_, control_, lease.id)).kind, Kind::kForbidden);
  EXPECT_EQ(Granted(book_->End(root_, admin_, lease.id)).state, LeaseState::kRestoring);
}

TEST_F(LeaseBookTest, AProcessThatCannotBeSeenHoldsNothing) {
  Caller unseen = ann_;
  unseen.process.reset();
  EXPECT_EQ(RefusalOf(book_->Create(unseen, control_, SpecOf({}))).kind, Kind::kMalformed);
  Granted(book_->Create(unseen, control_, SpecOf({}, HolderKind::kConnection)));
}

TEST_F(LeaseBookTest, TheDefaultHolderOverTcpIsATtl) {
  const Caller remote{.transport = Caller::Transport::kTcp, .subject = "ci"};
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}});
  spec.holder.reset();
  EXPECT_EQ(Granted(book_->Create(remote, control_, spec)).holder, HolderKind::kTtl);
  EXPECT_EQ(Create(spec).holder, HolderKind::kProcess);
}

TEST_F(LeaseBookTest, ACrashLosesNoLeaseWithALivingHolder) {
  const LeaseView alive = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  const LeaseView dead = Granted(book_->Create(bob_, control_, SpecOf({{kLimit2, AtMost{200_W}}})));
  const LeaseView connection = Create(SpecOf({{kLimit2, AtMost{210_W}}}, HolderKind::kConnection));
  Kill();
  running_ = {100};  // Of the processes 100 and 101.
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

TEST_F(LeaseBookTest, HeartbeatsHaveATtlOfGraceAfterARestart) {
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

TEST_F(LeaseBookTest, AnotherBootForgetsAllButStandingLeases) {
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

TEST_F(LeaseBookTest, AnEndedLeaseDoesNotComeBack) {
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

TEST_F(LeaseBookTest, ARepeatedRequestFindsItsLeaseAfterARestart) {
  LeaseSpec spec = SpecOf({{kLimit1, Exactly{200_W}}});
  spec.request_id = "once";
  const LeaseView lease = Create(spec);
  Kill();
  running_ = {100};
  Restart();
  ASSERT_TRUE(book_->Load().ok());
  EXPECT_EQ(Create(spec).id, lease.id);
}

TEST_F(LeaseBookTest, ADamagedFileIsNamedAndStandingLeasesHoldAllTheSame) {
  Granted(book_->Create(root_, admin_, SpecOf({{kLimit2, AtMost{220_W}}}, HolderKind::kStanding)));
  Kill();
  ASSERT_TRUE(ReplaceFile(folder_.path() / "leases.json", "{\"schema\": 7").ok());
  Restart();
  const auto loaded = book_->Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("leases.json"));
  EXPECT_EQ(book_->ClaimedKnobs(), std::vector<KnobKey>{kLimit2});
}

TEST_F(LeaseBookTest, HeartbeatsWriteTheFileOnceASecondAtMost) {
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
