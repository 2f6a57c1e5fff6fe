#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/testing/lease_book_fixture.h"

namespace zeus::daemon::lease_book_rights_test {
namespace {

using namespace zeus::daemon::testing;
using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using wire::AtMost;
using wire::Demand;
using wire::Exactly;
using wire::InRange;
using wire::LeaseClass;
using wire::LeaseState;
using Kind = wire::LeaseRefusal::Kind;

using LeaseBookRightsTest = LeaseBookFixture;

TEST_F(LeaseBookRightsTest, OtherPeoplesLeasesDoNotExist) {
  const LeaseView lease = CreateActive(SpecOf({{kLimit1, Exactly{200_W}}}));
  EXPECT_EQ(RefusalOf(book_->View(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->End(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->Replace(bob_, control_, lease.id, {})).kind, Kind::kUnknown);
  EXPECT_EQ(RefusalOf(book_->Heartbeat(bob_, control_, lease.id)).kind, Kind::kUnknown);
  EXPECT_TRUE(book_->List(bob_, control_).empty());
  EXPECT_EQ(book_->List(root_, admin_).size(), 1U);
}

TEST_F(LeaseBookRightsTest, RootOfAContainerIsNotTheOwnerOfRootsLeases) {
  const LeaseView lease = Granted(book_->Create(root_, admin_, SpecOf({{kLimit1, AtMost{200_W}}})));
  Caller contained = UserCaller(0, 5);
  contained.contained = true;
  EXPECT_EQ(RefusalOf(book_->End(contained, control_, lease.id)).kind, Kind::kUnknown);
  Caller token{.transport = Caller::Transport::kTcp, .subject = "uid:0"};
  EXPECT_EQ(RefusalOf(book_->End(token, control_, lease.id)).kind, Kind::kUnknown);
}

TEST_F(LeaseBookRightsTest, ALeaseIsHandedToProcessesOfTheSameUserOnly) {
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

TEST_F(LeaseBookRightsTest, EveryRightIsChecked) {
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

TEST_F(LeaseBookRightsTest, TheCallersOwnBoundsHold) {
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

TEST_F(LeaseBookRightsTest, DevicesOfJobsAreThoseOfTheCallersJobs) {
  Grant grant = GrantOf({Scope::kGpuControl});
  grant.all_devices = false;
  grant.devices_of_jobs = true;
  const LeaseSpec spec = SpecOf({{kLimit1, Exactly{200_W}}});
  EXPECT_EQ(RefusalOf(book_->Create(ann_, grant, spec)).kind, Kind::kForbidden);
  devices_of_jobs_ = {"GPU-1"};
  Granted(book_->Create(ann_, grant, spec));
}

TEST_F(LeaseBookRightsTest, AStuckDeviceTakesNoNewRequests) {
  desk_.not_ready.insert("GPU-1");
  const LeaseRefusal refusal =
      RefusalOf(book_->Create(ann_, control_, SpecOf({{kLimit1, Exactly{200_W}}})));
  EXPECT_EQ(refusal.kind, Kind::kUnavailable);
  EXPECT_EQ(refusal.message, "GPU-1 is stuck");
}

TEST_F(LeaseBookRightsTest, LeasesAtOnceAreLimited) {
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

TEST_F(LeaseBookRightsTest, SetsPerSecondAreLimitedForEachKnob) {
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

TEST_F(LeaseBookRightsTest, AStandingLeaseIsEndedByAnAdministratorOnly) {
  const LeaseView lease = Granted(
      book_->Create(ann_, admin_, SpecOf({{kLimit1, AtMost{200_W}}}, HolderKind::kStanding)));
  EXPECT_EQ(RefusalOf(book_->End(ann_, control_, lease.id)).kind, Kind::kForbidden);
  EXPECT_EQ(Granted(book_->End(root_, admin_, lease.id)).state, LeaseState::kRestoring);
}

TEST_F(LeaseBookRightsTest, AProcessThatCannotBeSeenHoldsNothing) {
  Caller unseen = ann_;
  unseen.process.reset();
  EXPECT_EQ(RefusalOf(book_->Create(unseen, control_, SpecOf({}))).kind, Kind::kMalformed);
  Granted(book_->Create(unseen, control_, SpecOf({}, HolderKind::kConnection)));
}

TEST_F(LeaseBookRightsTest, TheDefaultHolderOverTcpIsATtl) {
  const Caller remote{.transport = Caller::Transport::kTcp, .subject = "ci"};
  LeaseSpec spec = SpecOf({{kLimit1, AtMost{200_W}}});
  spec.holder.reset();
  EXPECT_EQ(Granted(book_->Create(remote, control_, spec)).holder, HolderKind::kTtl);
  EXPECT_EQ(Create(spec).holder, HolderKind::kProcess);
}

}  // namespace
}  // namespace zeus::daemon::lease_book_rights_test
