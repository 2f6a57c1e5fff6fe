#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/carbon/shift_report.h"
#include "zeus/job/start_advice.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/shift/follow_planner.h"

namespace zeus {

// A run whose power limit followed carbon or price, when it is over: beside the best constant
// limit, which would have done the same work, by the values that really came.
struct FollowReport {
  std::string unit{};  // "g" of CO2e, or a currency.
  ShiftReport::Amount actual{};
  ShiftReport::Amount constant{};
  Watts constant_limit{};
  Seconds time{};  // From the first to the last moment that was followed.
  Seconds constant_time{};
  int changes = 0;
};
// "the power limit followed …: 1.21 kg CO2e instead of 1.24 kg at 175 W, -2.4 %, in +1.1 % time".
std::string ToSentence(const FollowReport& report);

// Chooses the power limit of each moment from the profile of a job and a forecast. It is used from
// one thread at a time; clock and forecasts must outlive it.
class LimitFollower {
 public:
  struct Parts {
    const Clock& clock;
    const CarbonAccounting& forecasts;
  };
  // `estimate` says how long the run will take; nullopt: a day.
  LimitFollower(const Parts& parts, const StartWish& wish, std::optional<RunEstimate> estimate)
      : parts_(parts), wish_(wish), estimate_(estimate), begun_(parts.clock.WallNow()) {}

  // Returns the limit for now; the best constant one when there is no forecast. nullopt when the
  // profile has nothing to choose from. `best` is the point that was chosen without following.
  std::optional<Watts> LimitNow(const Profile& profile, std::size_t best, double eta);

  // The energy of all devices since an arbitrary origin, and the limit from now on.
  void Note(Joules energy, Watts limit);

  // nullopt when nothing was followed, or when the values of that time are not known.
  std::optional<FollowReport> Judge(const CarbonAccounting& actual) const;

 private:
  std::optional<LimitPoint> PointAt(Watts limit) const;

  Parts parts_;
  const StartWish wish_;
  const std::optional<RunEstimate> estimate_;
  const WallTime begun_;
  std::vector<LimitPoint> points_{};
  LimitPoint best_{};
  struct Noted {
    WallTime time;
    Joules energy;
    Watts limit;
  };
  std::optional<Noted> last_{};
  EnergyUse use_{};
  double work_ = 0;     // In steps of the profile.
  Joules predicted_{};  // By the profile, for the same times and limits.
  int changes_ = 0;
};

}  // namespace zeus
