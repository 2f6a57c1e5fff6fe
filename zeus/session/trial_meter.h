#pragma once

#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"
#include "zeus/session/epoch_report.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/run_power_limit.h"

namespace zeus {

// The service takes only finite metrics: a training that diverged gets the worst one there is.
double FiniteMetric(double metric, const JobSpec& spec);

// Time and energy of a run since its start, as the reports of its epochs need them. What the
// command says of itself counts; the rest is measured. One owner; the parts must outlive it.
class TrialMeter {
 public:
  struct Parts {
    Clock& clock;
    ProfiledDevices* devices;  // Null when there is nothing to measure.
    RunPowerLimit* limit;      // Null likewise.
  };

  TrialMeter(const Parts& parts, const Trial& trial, const JobSpec& spec);

  Status Begin();

  // Returns nullopt for an epoch that was reported before, and kUnavailable when the energy counts
  // and is not known.
  Result<std::optional<TrialReport>> Epoch(const EpochReport& said, EpochTiming timing);

  int epochs() const { return last_.epoch; }
  const TrialReport& last() const { return last_; }

 private:
  struct OneEpoch {
    Seconds time{};
    Joules energy{};
  };

  Status Measure(const EpochReport& said, TrialReport& report);
  // The part of the GPUs' energy that is this run's.
  double OwnPart();
  void MeasureEpoch(const EpochReport& said, TrialReport& report);
  // Returns the mean of the epochs between two reports.
  static std::optional<OneEpoch> MeanEpoch(const std::optional<TrialReport>& since,
                                           const TrialReport& report);
  // At the best limit; nullopt when that is not known, or not what is seen.
  std::optional<OneEpoch> EpochAtBest(const TrialReport& report);

  Parts parts_;
  const JobSpec& spec_;
  const bool baseline_;  // An undisturbed run of the default, which the command was told.
  std::optional<MonitorSliceMeter> meter_;
  std::optional<OwnShare> share_;
  TimePoint begun_{};
  TrialReport last_{};
  std::optional<TrialReport> first_{};
  std::optional<TrialReport> timed_{};  // The first, or the last whose end was seen.
  bool steady_ = false;  // The limit was the same during the whole of the next epoch.
  bool lumped_ = false;  // Epochs have come in lumps.
  bool doubted_ = false;
  bool back_said_ = false;
};

}  // namespace zeus
