#include "zeus/session/trial_devices.h"

#include <chrono>
#include <optional>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// An epoch that was measured later than both after its end is not known well enough.
constexpr Seconds kLateMeasurement = 500ms;
constexpr double kLatePart = 0.05;  // As a part of the time of the run.

}  // namespace

void DeviceSteps::Start(std::function<void()> step) {
  begun_ = clock_.Now();
  call_ = std::make_unique<DetachedCall<bool>>([step = std::move(step)]() mutable {
    step();
    step = nullptr;  // Before the owner learns that the step has returned.
    return true;
  });
}

TrialDevices::TrialDevices(Parts parts) : parts_(std::move(parts)) {
  if (parts_.devices != nullptr) {
    limit_ = std::make_unique<RunPowerLimit>(
        RunPowerLimit::Parts{parts_.clock, *parts_.devices, parts_.sources->progress()},
        parts_.plan, RunPowerLimit::Run{parts_.spec.id, parts_.trial.batch_size, parts_.spec.eta});
  }
  meter_ = std::make_unique<TrialMeter>(
      TrialMeter::Parts{parts_.clock, parts_.devices.get(), limit_.get()}, parts_.trial,
      parts_.spec);
}

TrialDevices::~TrialDevices() {
  if (doubted_ && limit_ != nullptr) limit_->Forget();
}

Status TrialDevices::Begin() {
  if (limit_ != nullptr) limit_->Begin();
  return meter_->Begin();
}

Result<std::optional<TrialReport>> TrialDevices::Epoch(const EpochReport& said,
                                                       EpochTiming timing) {
  const TimePoint arrived = said.arrived.value_or(parts_.clock.Now());
  const bool late = parts_.clock.Now() - arrived > kLateMeasurement;
  auto report = meter_->Epoch(said, late ? EpochTiming::kLumped : timing);
  if (!report.ok() || !report.value()) return report;
  const Seconds lateness = parts_.clock.Now() - arrived;
  if (lateness > kLateMeasurement && lateness > kLatePart * report.value()->time) {
    late_ = true;
    if (limit_ != nullptr) limit_->Forget();
  }
  report.value()->unmeasured |= late_;
  return report;
}

}  // namespace zeus
