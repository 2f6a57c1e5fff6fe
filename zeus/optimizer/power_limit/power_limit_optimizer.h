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
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/profile_builder.h"
#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/optimizer/power_limit/slice_rule.h"
#include "zeus/optimizer/power_limit/step_source.h"

namespace zeus {

enum class OptimizerMode {
  kOptimize,
  kObserve,  // Profile, but leave the knob at its original value afterwards (Zeus §5).
  kMeasure,  // The same, and choose nothing.
};

// Finds the best setting of one knob while a job trains (Zeus §4.2): tries every setting for a
// slice of time, decides, and leaves the best one set.
//
// A job that knows its steps calls OnStepBegin(): slices begin and end at steps. A foreign command
// is observed from outside (Parts::steps): the caller polls, slices begin and end at any time, and
// the source tells how many steps lie in between. If such a command tells only of its epochs, each
// epoch is a step, and Poll() is called as well.
//
// All ranks of a job make the same calls in the same order. Trouble (a knob that cannot be turned,
// a meter that fails, a rank that is gone) never stops the training: the knob is restored, the
// state is Done, and trouble() has the reason. A setting that was not in force all the time it was
// measured (a cap from outside, a reload of the driver) is measured once more and then left out of
// this round: left_out() has the reason. One owner. Everything it is given must outlive it. Once it
// is done a step costs a nanosecond.
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
  struct Confirming {
    Seconds time{0};
  };
  struct Done {};
  using State = std::variant<Ready, Warmup, Profiling, Confirming, Done>;

  struct Options {
    Selector selector = ZeusCost(0.5);
    OptimizerMode mode = OptimizerMode::kOptimize;
    SliceRule rule{};
    // The settings to try: these, or those that the knob offers at this stride (25 W, or some
    // twelve clocks). Settings above the ceiling of the knob are never tried.
    std::vector<Setting> settings{};
    std::optional<Setting> stride{};
    bool try_present = true;  // Try also the setting that the knob has.
    // Every setting is measured once per round; every other round goes back the way the one before
    // came, so that a job that becomes slower does so equally at all settings. nullopt: until
    // Stop().
    std::optional<unsigned> rounds = 1;
    // The relative scatter of steps is at least this, where few steps are measured.
    double least_scatter = 0;
    ProfileContext context{};
    // Points of the same job that were measured before are not measured again.
    std::optional<Profile> known{};
    // Whether to log settings that are left out, and trouble; the caller may report them itself.
    bool log = true;
  };

  struct Parts {
    Clock& clock;
    Knob& knob;
    SliceMeter& meter;
    Collective& collective;
    StepSource* steps = nullptr;  // Null when the job calls OnStepBegin().
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

  // Does what is due and returns when to call it again.
  TimePoint Poll();
  // Drops the step under way, whose begin or end is not known: its setting is measured again.
  void DropStep();
  // Ends the search for a job that has ended: drops the slice under way, brings the profile up to
  // date and restores the knob.
  void Stop();

  const State& state() const { return state_; }
  // The setting that is being tried; nullopt before the first and after the last one.
  std::optional<Setting> trying() const;
  bool done() const { return done_; }
  std::int64_t steps() const { return steps_; }

  // The measured points, and those known before; complete when the search is done.
  const Profile& profile() const { return builder_.profile(); }
  // Takes everything that was measured so far into the profile.
  Status UpdateProfile();
  // The settings that are tried, fastest first, without those above the ceiling of the knob.
  std::vector<Setting> settings() const;
  // The slices so far, in the order of time.
  struct MeasuredSlice {
    std::size_t setting;  // Position in settings().
    unsigned round;
    SliceReading reading;
    std::optional<StepRate> rate;  // Where the steps are observed from outside.
  };
  std::vector<MeasuredSlice> Slices() const;
  // Where the knob was when the job began, and the best setting, as positions in profile().points.
  std::optional<std::size_t> original() const;
  std::optional<std::size_t> best() const;
  // How many steps were begun at each point of the profile.
  std::vector<std::int64_t> StepsAtPoints() const;
  // Settings that could not be measured in a round.
  struct LeftOut {
    Setting setting;
    std::string reason;
  };
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  // Takes what was measured so far into the profile, for a job that ends before it is done. Turns
  // nothing: the knob may have been restored.
  void Conclude();
  // Sets again the setting that was in force when the knob was restored from outside.
  Status Resume();
  // Why it is not optimising; nullopt if it is.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  // The rights of a transition: it may turn the knob at any time, but begin to measure only before
  // a step.
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
  Status MoveOn(const Confirming& confirming);
  // Goes on to the next setting, or to Confirming after the last one.
  Status TryNext();
  Status Try(std::size_t setting);
  // Whether the knob was turned on all ranks; not, when it may not be turned that high any more.
  Result<bool> Turn(std::size_t setting);
  Status TryAgainOrLeaveOut(std::size_t setting);
  void LeaveOut(std::size_t setting, std::string reason);
  void CheckWhetherInForce(std::size_t setting);
  Result<bool> WasInForce(std::size_t setting);
  Status BeginSlice(std::size_t setting);
  Status EndSlice();
  bool observed() const { return parts_.steps != nullptr; }
  void PassTime(Seconds time);
  TimePoint NextPoll() const;
  Result<bool> UpdateBuilder();
  Result<bool> IsOver(const SliceRule::Length& length, std::int64_t steps, Seconds time,
                      std::int64_t least_steps);
  bool PrecisionIsDue(const Profiling& profiling);
  Result<bool> PreciseEnough(std::size_t setting);
  Result<bool> ObservedPreciselyEnough();
  Status Decide();
  Status SetBest();
  Result<std::size_t> Selected(const Profile& from) const;
  Result<std::size_t> SelectTogether(const Profile& from);
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
  std::int64_t next_check_ = 0;      // Step of the slice at which its precision is checked next.
  Seconds next_check_time_{0};       // The same for observed jobs, as time of the slice.
  std::optional<TimePoint> polled_;  // Last call of Poll().
  TimePoint slice_begin_{};
  std::size_t slices_ = 0;          // Measured so far.
  std::vector<std::size_t> order_;  // Settings to measure in each round.
  std::size_t visit_ = 0;           // Number of the next visit of a setting, over all rounds.
  unsigned round_ = 0;
  std::size_t left_out_in_a_row_ = 0;
  ProfileBuilder builder_;
  std::optional<std::size_t> original_;  // All of these count settings. None if it is not known.
  std::optional<std::size_t> in_force_;  // None while the knob is as it was.
  std::optional<std::size_t> best_;
  std::vector<std::int64_t> steps_at_;  // Begun before it was done.
  std::optional<Error> disturbed_;      // Why the slice under way is useless on this rank.
  TimePoint next_setting_check_{};      // When to check whether the setting is in force.
  int tries_ = 0;                       // Tries of the present visit.
  std::vector<LeftOut> left_out_;
  std::optional<Error> trouble_;
};

}  // namespace zeus
