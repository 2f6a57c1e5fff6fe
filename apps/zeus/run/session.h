#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/run/report.h"
#include "apps/zeus/run/run_meter.h"
#include "apps/zeus/run/run_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

// Decides when GPUs are as cool as they were before the first run, or cannot get any cooler: a warm
// chip leaks more current, so a run that starts warm uses more energy. One owner.
class Cooldown {
 public:
  // `start` are the temperatures before the first run.
  explicit Cooldown(std::vector<Celsius> start);

  // Temperatures in the same order. True when the next run may begin: each is at most kTolerance
  // above its start, or none has changed by more than kSteady during the last kSteadyTime.
  // Without any temperature there is nothing to wait for.
  bool MayBegin(TimePoint now, const std::vector<Celsius>& temperatures);

  static constexpr Celsius kTolerance{1.5};
  static constexpr Celsius kSteady{1.0};  // Sensors show whole degrees.
  static constexpr Seconds kSteadyTime{20};

 private:
  bool BackAtStart(const std::vector<Celsius>& temperatures) const;
  bool Steady() const;

  std::vector<Celsius> start_;
  std::deque<std::pair<TimePoint, std::vector<Celsius>>> recent_;
};

// One invocation of `zeus run`: idle power, warm-ups, runs and the pauses between them, and what
// is written after each. One owner.
class RunSession {
 public:
  // All of them must outlive the session.
  RunSession(const RunOptions& options, Clock& clock, SignalWatch& signals, RunMeter& meter,
             const CarbonAccounting& carbon);

  // The exit code for the user. Errors are those of a command that could not be started, see
  // Child::Start(), and only before the first run.
  Result<int> Execute();

 private:
  Status GiveIdle();
  // These are false when the user asked to end meanwhile; then the exit code says so.
  bool MeasureIdle();
  bool Pause(Seconds time);
  bool AskedToEnd();
  bool CoolDown(const std::vector<Celsius>& start);
  Result<ChildOutcome> Once(Measurement& measurement);
  // A warm-up or a run; false when it was the last one.
  Result<bool> Round(unsigned round);
  void WriteResults();
  int Finish();

  const RunOptions& options_;
  Clock& clock_;
  SignalWatch& signals_;
  RunMeter& meter_;
  const CarbonAccounting& carbon_;
  RunReport report_;
  std::vector<Celsius> start_;  // Temperatures before the first measured run.
  int exit_code_ = 0;
  std::optional<Error> not_written_;
};

}  // namespace zeus::cli
