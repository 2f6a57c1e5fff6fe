#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knob.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus {

// How long each setting is tried. Steps and times count only while training, across epochs.
struct SliceRule {
  // A phase ends when it had so many steps or so much time, whichever comes first, and at least
  // one step where it has any.
  struct Length {
    std::optional<std::int64_t> steps{};
    std::optional<Seconds> time{};
  };

  std::int64_t wait_steps = 1;  // Before the first setting is tried: the first steps are unusual.
  Length warmup{.time = Seconds(0.5)};   // Not measured after each change.
  Length profile{.time = Seconds(5.0)};  // Zeus §5.

  // A slice ends early once time and energy per step are known this well, relative, one standard
  // deviation; 0: never.
  double enough_precision = 0.002;

  // As the reference implementation does it.
  static SliceRule BySteps(std::int64_t wait = 1, std::int64_t warmup = 10,
                           std::int64_t profile = 40);
};

enum class OptimizerMode {
  kOptimize,
  kObserve,  // Profile, but leave the knob at its original value afterwards (Zeus §5).
};

// Finds the best setting of one knob while a job trains (Zeus §4.2): tries every setting for a
// slice of time at iteration boundaries, decides, and leaves the best one set.
//
// All ranks of a job call the same functions in the same order. What cannot be done (a knob that
// cannot be turned, a meter that fails) never stops the training: the knob is restored, state() is
// Done and trouble() tells why. One owner; calls cost a few nanoseconds once it is done. What it is
// given must outlive it.
class PowerLimitOptimizer {
 public:
  // Positions count the settings that are tried, fastest first.
  struct Ready {
    std::int64_t steps_left;
  };
  struct Warmup {
    std::size_t current;
    std::int64_t steps = 0;
    Seconds time{0};
  };
  struct Profiling {
    std::size_t current;
    std::int64_t steps = 0;
    Seconds time{0};
  };
  // All slices are measured; the sensors have yet to show the end of the last one.
  struct Settling {
    std::size_t current;
    std::int64_t steps = 0;
  };
  struct Done {
    std::optional<std::size_t> best;  // Position in profile().points; none when it failed.
  };
  using State = std::variant<Ready, Warmup, Profiling, Settling, Done>;

  struct Options {
    SliceRule rule{};
    OptimizerMode mode = OptimizerMode::kOptimize;
    // Settings to try: these, fastest first, or those that the knob offers at this stride.
    std::vector<Setting> settings{};
    std::optional<Setting> stride{};  // 25 W, or 15 supported clocks.
    Selector selector = ZeusCost(0.5);
    ProfileContext context{};
    // A profile of the same job, measured before: used instead of measuring again.
    std::optional<Profile> known{};
  };

  struct Parts {
    Clock& clock;
    Knob& knob;
    SliceMeter& meter;
    Collective& collective;
  };

  PowerLimitOptimizer(const Parts& parts, Options options);
  ~PowerLimitOptimizer();  // Restores the knob.

  void OnEpochBegin();
  void OnStepBegin() {
    ++steps_;
    if (!done_) Advance();
  }
  void OnStepEnd() {}
  void OnEpochEnd();

  const State& state() const { return state_; }
  bool done() const { return done_; }
  std::int64_t steps() const { return steps_; }

  // What was measured so far, or known before.
  const Profile& profile() const { return profile_; }
  // Where the knob was when the job began, as a position in profile().points; the fastest if that
  // setting was not tried.
  std::optional<Setting> chosen() const;
  // Several objectives may be asked of one profile.
  Result<std::size_t> Select(const Selector& selector) const { return selector.select(profile_); }
  // Why it is not optimising; nullopt if it is.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  void Advance();

  Parts parts_;
  Options options_;
  State state_;
  bool done_ = false;
  std::int64_t steps_ = 0;
  Profile profile_;
  std::optional<Error> trouble_;
};

}  // namespace zeus
