#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/agreement.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/profile_builder.h"
#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/optimizer/power_limit/slice_rule.h"

namespace zeus {

enum class OptimizerMode {
  kOptimize,
  kObserve,  // Profile, but leave the knob at its original value afterwards (Zeus §5).
};

// Finds the best setting of one knob while a job trains (Zeus §4.2): tries every setting for a
// slice of time at iteration boundaries, decides, and leaves the best one set.
//
// All ranks of a job make the same calls in the same order. What cannot be done (a knob that cannot
// be turned, a meter that fails, a rank that is gone) never stops the training: the knob is
// restored, the state is Done, and trouble() tells why. A setting that was not in force all the
// time it was measured (a cap from outside, a reload of the driver) is tried once more and then
// left out: left_out() tells why, and the profile is not complete. One owner. What it is given must
// outlive it. Once it is done a step costs a nanosecond.
class PowerLimitOptimizer {
 public:
  // Nothing is touched yet.
  struct Ready {
    std::int64_t steps_left;
  };
  // `current` counts the settings that are tried, fastest first.
  struct Warmup {
    std::size_t current;
    std::int64_t steps = 0;
    Seconds time{0};
  };
  struct Profiling {
    std::size_t current;
    std::int64_t steps = 0;
    Seconds time{0};
    bool measuring = false;  // False between epochs.
  };
  // The sensors have yet to show the end of the last slice; until then the best as of now is set.
  struct Settling {
    Seconds time{0};
  };
  struct Done {};
  using State = std::variant<Ready, Warmup, Profiling, Settling, Done>;

  struct Options {
    Selector selector = ZeusCost(0.5);
    OptimizerMode mode = OptimizerMode::kOptimize;
    SliceRule rule{};
    // What to try: these, or what the knob offers at this stride (25 W, or some twelve clocks). The
    // setting that the knob has is always tried; those above the ceiling of the knob never are.
    std::vector<Setting> settings{};
    std::optional<Setting> stride{};
    ProfileContext context{};
    // Of the same job, measured before: nothing is measured again.
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
  PowerLimitOptimizer(const PowerLimitOptimizer&) = delete;
  PowerLimitOptimizer& operator=(const PowerLimitOptimizer&) = delete;

  void OnEpochBegin() {}
  void OnStepBegin() {
    ++steps_;
    if (!done_) Advance();
  }
  void OnStepEnd() {}
  void OnEpochEnd() {
    if (!done_) Pause();
  }

  const State& state() const { return state_; }
  // The setting that is being tried; nullopt before the first and after the last one.
  std::optional<Setting> trying() const;
  bool done() const { return done_; }
  std::int64_t steps() const { return steps_; }

  // What was measured, or known before; complete when it is done.
  const Profile& profile() const { return builder_.profile(); }
  // Where the knob was when the job began, and the best setting, as positions in profile().points.
  std::optional<std::size_t> original() const;
  std::optional<std::size_t> best() const;
  // How many steps were begun at each point of the profile.
  std::vector<std::int64_t> StepsAtPoints() const;
  // Settings that could not be measured.
  struct LeftOut {
    Setting setting;
    std::string reason;
  };
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  // Takes what was measured so far into the profile, for a job that ends before it is done. Turns
  // nothing: the knob may have been restored.
  void Conclude();
  // Sets again what was in force when somebody restored the knob.
  Status Resume();
  // Why it is not optimising; nullopt if it is.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  // What a transition may do: turn the knob at any time, begin to measure only before a step.
  enum class Moment { kBeforeStep, kBetweenEpochs };

  Status Start();
  Status CheckAlike(const Setting& present);
  Result<Profile> ShareKnownProfile();
  Result<std::vector<Setting>> SettingsToTry(const Setting& present, const Profile& known);

  void Advance();
  void Pause();
  void CompleteStep();
  Status Move(Moment moment);
  Status MoveOn(const Ready& ready, Moment moment);
  Status MoveOn(const Warmup& warmup, Moment moment);
  Status MoveOn(const Profiling& profiling, Moment moment);
  Status MoveOn(const Settling& settling);
  Status TryFrom(std::size_t setting);
  // Whether the knob was turned on all ranks; not, when it may not be turned that high any more.
  Result<bool> Turn(std::size_t setting);
  Status TryAgainOrLeaveOut(std::size_t setting);
  void LeaveOut(std::size_t setting, std::string reason);
  void LookWhetherInForce(std::size_t setting);
  Result<bool> WasInForce(std::size_t setting);
  Status BeginSlice(std::size_t setting);
  Status EndSlice();
  Result<bool> IsOver(const SliceRule::Length& length, std::int64_t steps, Seconds time,
                      std::int64_t least_steps);
  Result<bool> PreciseEnough(std::size_t setting);
  Status Decide();
  Result<std::size_t> Selected() const;
  Result<std::size_t> SelectTogether();
  void Finish();
  void Fail(const Error& error);
  std::optional<std::size_t> SettingInForce() const { return in_force_ ? in_force_ : original_; }

  Parts parts_;
  Agreement ranks_;
  Options options_;
  State state_;
  bool done_ = false;
  bool stepping_ = false;  // A step is under way since step_begin_.
  TimePoint step_begin_{};
  std::int64_t steps_ = 0;
  std::int64_t next_check_ = 0;  // Of the precision, at so many steps of the slice.
  ProfileBuilder builder_;
  std::optional<std::size_t> original_;  // All of these count settings. None if it is not known.
  std::optional<std::size_t> in_force_;  // None while the knob is as it was.
  std::optional<std::size_t> best_;
  std::vector<std::int64_t> steps_at_;  // Begun before it was done.
  std::optional<Error> disturbed_;      // Why the slice under way tells nothing; of this rank.
  TimePoint next_look_{};               // Whether the setting is in force.
  int tries_ = 0;                       // Tries of the present setting.
  std::vector<LeftOut> left_out_;
  std::optional<Error> trouble_;
};

}  // namespace zeus
