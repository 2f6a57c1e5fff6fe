#include "zeus/daemon/resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/testing/sanitized.h"

namespace zeus::daemon::resolver_test {
namespace {

using namespace zeus::literals;
using wire::AtMost;
using wire::Demand;
using wire::Exactly;
using wire::InRange;
using wire::KnobValue;
using wire::LeaseClass;
using wire::SwitchedOn;

const KnobChoices kLimits{.lowest = 100_W, .highest = 300_W};
const KnobChoices kClocks{.lowest = 600_MHz,
                          .highest = 1000_MHz,
                          .steps = {Setting(600_MHz), Setting(700_MHz), Setting(800_MHz),
                                    Setting(900_MHz), Setting(1000_MHz)}};
const KnobValue kBaseline = Setting(300_W);

// The claims of a test are named by their class: "user", "job", "site".
Claim By(LeaseClass lease_class, Demand demand, std::uint64_t order = 1) {
  Claim claim{.lease = std::string(Name(lease_class)), .lease_class = lease_class};
  claim.demand = demand;
  claim.order = order;
  return claim;
}
Claim User(Demand demand) { return By(LeaseClass::kUser, demand); }
Claim Job(Demand demand) { return By(LeaseClass::kJob, demand); }
Claim Site(Demand demand) { return By(LeaseClass::kSite, demand); }
Claim Named(std::string name, Claim claim) {
  claim.lease = std::move(name);
  return claim;
}

Resolution Limits(const std::vector<Claim>& claims, KnobValue baseline = kBaseline) {
  return Resolve(baseline, kLimits, claims);
}
Resolution ClocksOf(const std::vector<Claim>& claims,
                    const std::optional<KnobValue>& baseline = std::nullopt) {
  return Resolve(baseline, kClocks, claims);
}

TEST(ResolverTest, TheTableOfTheDocumentationHolds) {
  EXPECT_EQ(Limits({}), Resolution());
  EXPECT_EQ(Limits({User(Exactly{200_W})}),
            (Resolution{.effective = Setting(200_W), .bound_by = "user"}));
  EXPECT_EQ(Limits({User(AtMost{250_W}), Job(AtMost{220_W})}),
            (Resolution{.effective = Setting(220_W), .bound_by = "job"}));
  EXPECT_EQ(Limits({User(Exactly{200_W}), Named("cap", User(AtMost{260_W})), Job(AtMost{220_W}),
                    Site(AtMost{180_W})}),
            (Resolution{.effective = Setting(180_W), .bound_by = "site"}));
  EXPECT_EQ(Limits({User(AtMost{280_W})}, Setting(250_W)), Resolution());
}

TEST(ResolverTest, AHigherClassOverrulesALowerOne) {
  const Resolution resolution =
      Limits({User(Exactly{200_W}), Site(Exactly{150_W}), Job(Exactly{250_W})});
  EXPECT_EQ(resolution.effective, KnobValue(Setting(150_W)));
  EXPECT_EQ(resolution.bound_by, "site");
  EXPECT_EQ(resolution.overruled, (std::set<std::string>{"user", "job"}));
}

TEST(ResolverTest, ALaterClaimNeverDisplacesItsClass) {
  const Resolution resolution = Limits({Named("late", By(LeaseClass::kUser, Exactly{200_W}, 9)),
                                        Named("early", By(LeaseClass::kUser, Exactly{150_W}, 3))});
  EXPECT_EQ(resolution.bound_by, "early");
  EXPECT_EQ(resolution.overruled, std::set<std::string>{"late"});
}

TEST(ResolverTest, NothingIsOutsideTheRangeOfTheDevice) {
  EXPECT_EQ(Limits({User(AtMost{20_W})}).effective, KnobValue(Setting(100_W)));
  EXPECT_EQ(Limits({User(Exactly{900_W})}).effective, KnobValue(Setting(300_W)));
  EXPECT_EQ(ClocksOf({User(Exactly{5000_MHz})}).effective, KnobValue(Setting(1000_MHz)));
}

TEST(ResolverTest, ClocksAreRoundedDownToSteps) {
  EXPECT_EQ(ClocksOf({User(Exactly{750_MHz})}).effective, KnobValue(Setting(700_MHz)));
  EXPECT_EQ(ClocksOf({User(AtMost{899_MHz})}).effective, KnobValue(ClockRange{600_MHz, 800_MHz}));
}

TEST(ResolverTest, RangesOfClocksIntersect) {
  const Resolution both = ClocksOf(
      {Named("a", User(InRange{650_MHz, 900_MHz})), Named("b", User(InRange{800_MHz, 1000_MHz}))});
  EXPECT_EQ(both.effective, KnobValue(ClockRange{800_MHz, 900_MHz}));
  EXPECT_EQ(both.bound_by, "a");
}

TEST(ResolverTest, ACapHoldsBelowARangeAndBelowAnExclusiveClock) {
  EXPECT_EQ(ClocksOf({User(InRange{800_MHz, 900_MHz}), Site(AtMost{700_MHz})}),
            (Resolution{.effective = ClockRange{700_MHz, 700_MHz}, .bound_by = "site"}));
  EXPECT_EQ(ClocksOf({User(Exactly{900_MHz}), Site(AtMost{700_MHz})}),
            (Resolution{.effective = Setting(700_MHz), .bound_by = "site"}));
}

TEST(ResolverTest, AnExclusiveClockGivesWayToARangeOfAHigherClass) {
  const Resolution resolution = ClocksOf({User(Exactly{900_MHz}), Job(InRange{600_MHz, 700_MHz})});
  EXPECT_EQ(resolution.effective, KnobValue(ClockRange{600_MHz, 700_MHz}));
  EXPECT_EQ(resolution.overruled, std::set<std::string>{"user"});
}

TEST(ResolverTest, ACapOnALockedClockKeepsItLocked) {
  EXPECT_EQ(ClocksOf({User(AtMost{800_MHz})}, Setting(900_MHz)).effective,
            KnobValue(Setting(800_MHz)));
  EXPECT_EQ(ClocksOf({User(AtMost{900_MHz})}, Setting(800_MHz)), Resolution());
  EXPECT_EQ(ClocksOf({User(AtMost{1000_MHz})}), Resolution());
}

TEST(ResolverTest, PersistenceIsOnAsLongAsSomebodyAsks) {
  const Resolution on =
      Resolve(Persistence::kOff, std::nullopt, {User(SwitchedOn{}), Job(SwitchedOn{})});
  EXPECT_EQ(on.effective, KnobValue(Persistence::kOn));
  EXPECT_EQ(on.bound_by, "job");
  EXPECT_EQ(Resolve(Persistence::kOff, std::nullopt, {}), Resolution());
}

TEST(FindConflictTest, AClassHoldsAKnobExclusively) {
  const std::vector<Claim> claims = {Job(Exactly{200_W})};
  EXPECT_EQ(FindConflict(claims, Named("x", Job(Exactly{200_W}))), &claims[0]);
  EXPECT_EQ(FindConflict(claims, Named("x", User(Exactly{200_W}))), &claims[0]);
  EXPECT_EQ(FindConflict(claims, Named("x", Site(Exactly{200_W}))), nullptr);
  EXPECT_EQ(FindConflict(claims, Named("x", Job(AtMost{200_W}))), nullptr);
  EXPECT_EQ(FindConflict(claims, Job(Exactly{150_W})), nullptr) << "its own claim";
}

TEST(FindConflictTest, CapsStandInNobodysWay) {
  EXPECT_EQ(FindConflict({Site(AtMost{100_W})}, User(Exactly{200_W})), nullptr);
}

TEST(FindConflictTest, RangesNeedClocksInCommon) {
  const std::vector<Claim> claims = {Job(InRange{700_MHz, 800_MHz})};
  EXPECT_EQ(FindConflict(claims, User(InRange{800_MHz, 900_MHz})), nullptr);
  EXPECT_EQ(FindConflict(claims, User(InRange{801_MHz, 900_MHz})), &claims[0]);
  EXPECT_EQ(FindConflict(claims, User(Exactly{900_MHz})), &claims[0]);
  EXPECT_EQ(FindConflict(claims, Site(InRange{900_MHz, 950_MHz})), nullptr);
}

// The rule for power limits, said in another way: try every value, and take the highest one that
// nobody forbids.
struct Answer {
  double watts;
  bool turned;
};

bool Allows(const Claim& claim, double watts) {
  const auto* cap = std::get_if<AtMost>(&claim.demand);
  return cap == nullptr || watts <= ToNumber(cap->value);
}

Answer SlowOracle(double baseline, const std::vector<Claim>& claims) {
  double target = baseline;
  bool turned = false;
  for (const LeaseClass lease_class : {LeaseClass::kUser, LeaseClass::kJob, LeaseClass::kSite})
    for (const Claim& claim : claims)
      if (const auto* exactly = std::get_if<Exactly>(&claim.demand);
          exactly != nullptr && claim.lease_class == lease_class) {
        target = ToNumber(exactly->value);
        turned = true;
      }
  // The highest of all values that anybody named which is allowed to everybody.
  double watts = 100;
  const auto consider = [&](double value) {
    if (value > target || value < watts) return;
    for (const Claim& claim : claims)
      if (!Allows(claim, value)) return;
    watts = value;
  };
  consider(target);
  for (const Claim& claim : claims)
    if (const auto* cap = std::get_if<AtMost>(&claim.demand)) consider(ToNumber(cap->value));
  return {.watts = watts, .turned = turned || watts < target};
}

Claim RandomClaim(Random& random, std::uint64_t number) {
  const auto lease_class = static_cast<LeaseClass>(random.Below(3));
  const Watts value(static_cast<double>(100 + random.Below(201)));
  Claim claim = By(lease_class, Exactly{value}, number);
  if (random.Below(3) != 0) claim.demand = AtMost{value};
  claim.lease = "lease" + std::to_string(number);
  return claim;
}

void Check(double baseline, const std::vector<Claim>& claims) {
  const Resolution resolution = Limits(claims, Setting(Watts(baseline)));
  const Answer answer = SlowOracle(baseline, claims);
  ASSERT_EQ(resolution.effective.has_value(), answer.turned);
  ASSERT_EQ(resolution.bound_by.empty(), !answer.turned);
  if (!answer.turned) return;
  const double watts = ToNumber(std::get<Setting>(*resolution.effective));
  ASSERT_EQ(watts, answer.watts);
  ASSERT_GE(watts, 100);
  ASSERT_LE(watts, 300);
}

// A history: claims come unless they are refused, and go in any order.
void RunHistory(Random& random) {
  const double baseline = static_cast<double>(100 + random.Below(201));
  std::vector<Claim> claims;
  for (std::uint64_t number = 1; number <= 6; ++number) {
    Claim claim = RandomClaim(random, number);
    if (FindConflict(claims, claim) == nullptr) claims.push_back(claim);
    if (random.Below(4) == 0 && !claims.empty())
      claims.erase(claims.begin() + static_cast<std::ptrdiff_t>(random.Below(claims.size())));
    Check(baseline, claims);
  }
  const Resolution before = Limits(claims, Setting(Watts(baseline)));
  std::shuffle(claims.begin(), claims.end(), random);
  for (Claim& claim : claims)
    if (std::holds_alternative<AtMost>(claim.demand)) claim.order = random.Below(100);
  ASSERT_EQ(Limits(claims, Setting(Watts(baseline))), before) << "the order of caps matters";
  while (!claims.empty()) {
    claims.pop_back();
    Check(baseline, claims);
  }
  ASSERT_EQ(Limits(claims, Setting(Watts(baseline))), Resolution());
}

TEST(ResolverPropertyTest, AgreesWithASlowOracleInAHundredThousandHistories) {
  Random random(20);
  const int histories = zeus::testing::kSanitized ? 5'000 : 100'000;
  for (int i = 0; i < histories; ++i) {
    RunHistory(random);
    ASSERT_FALSE(HasFatalFailure()) << "in history " << i;
  }
}

// The steps that a clock may have by all claims that hold, found one by one.
TEST(ResolverPropertyTest, ClocksStayOnStepsAndInsideOfEveryRangeThatHolds) {
  Random random(21);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<Claim> claims;
    double cap = 1000;
    for (std::uint64_t number = 1; number <= 5; ++number) {
      const Hertz low = Hertz::FromMega(static_cast<double>(550 + random.Below(500)));
      const Hertz high = low + Hertz::FromMega(static_cast<double>(random.Below(300)));
      Claim claim = By(static_cast<LeaseClass>(random.Below(3)), InRange{low, high}, number);
      if (random.Below(3) == 0) claim.demand = AtMost{std::max(low, 600_MHz)};
      if (random.Below(4) == 0) claim.demand = Exactly{low};
      claim.lease = std::to_string(number);
      if (FindConflict(claims, claim) != nullptr) continue;
      if (const auto* at_most = std::get_if<AtMost>(&claim.demand))
        cap = std::min(cap, ToNumber(at_most->value));
      claims.push_back(claim);
    }
    const Resolution resolution = ClocksOf(claims);
    if (!resolution.effective) continue;
    const auto* range = std::get_if<ClockRange>(&*resolution.effective);
    const auto* fixed = std::get_if<Setting>(&*resolution.effective);
    const Hertz min = range != nullptr ? range->min : std::get<Hertz>(*fixed);
    const Hertz max = range != nullptr ? range->max : std::get<Hertz>(*fixed);
    ASSERT_LE(min, max);
    ASSERT_LE(max.ToMega(), cap);
    for (const Hertz end : {min, max}) {
      ASSERT_TRUE(std::ranges::find(kClocks.steps, Setting(end)) != kClocks.steps.end())
          << end.ToMega();
    }
    for (const Claim& claim : claims) {
      const auto* wanted = std::get_if<InRange>(&claim.demand);
      if (wanted == nullptr || resolution.overruled.contains(claim.lease)) continue;
      ASSERT_LE(max, wanted->highest);
      // A cap below the range holds all the same.
      if (min.ToMega() < cap - 100) {
        ASSERT_GE(min, wanted->lowest);
      }
    }
  }
}

}  // namespace
}  // namespace zeus::daemon::resolver_test
