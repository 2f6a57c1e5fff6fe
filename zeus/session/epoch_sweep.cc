#include "zeus/session/epoch_sweep.h"

#include <utility>

namespace zeus {
namespace {

// What epochs of one program at one setting differ by; a single one does not tell.
constexpr double kScatterOfEpochs = 0.005;

// How often a setting is looked at while it is tried, and how often it is tried.
constexpr Seconds kLookInterval{1};
constexpr int kEpochTries = 2;

}  // namespace

EpochSweep::EpochSweep(Knob& knob, SliceMeter& meter, std::vector<Setting> settings)
    : knob_(knob), meter_(meter), settings_(std::move(settings)) {}

Status EpochSweep::EpochEnded() {
  if (done()) return Ok();
  if (std::exchange(measuring_, false)) ZEUS_RETURN_IF_ERROR(EndOne());
  return BeginNext();
}

Status EpochSweep::EndOne() {
  const std::size_t setting = next_ - 1;
  CheckInForce(setting);
  if (!disturbed_) {
    ZEUS_TRY(const SliceMeter::Ticket ticket, meter_.End());
    measured_.push_back({setting, ticket});
    tries_ = 0;
    return Ok();
  }
  meter_.Cancel();
  if (++tries_ < kEpochTries) {
    --next_;
  } else {
    skipped_.push_back({setting, disturbed_->message});
    tries_ = 0;
  }
  return Ok();
}

Status EpochSweep::BeginNext() {
  const std::size_t setting = next_++;
  if (setting == settings_.size()) return Ok();
  Status set = knob_.Set(settings_[setting]);
  // Another program has lowered the limit meanwhile: lower settings can still be tried.
  if (!set.ok() && set.error().code == ErrorCode::kConflict) {
    skipped_.push_back({setting, set.error().message});
    return BeginNext();
  }
  if (!set.ok()) return set;
  ZEUS_RETURN_IF_ERROR(meter_.Begin(ToText(settings_[setting])));
  measuring_ = true;
  disturbed_.reset();
  next_look_ = {};
  return Ok();
}

TimePoint EpochSweep::Look(TimePoint now) {
  if (!measuring_) return now + kLookInterval;
  if (now < next_look_) return next_look_;
  CheckInForce(next_ - 1);
  next_look_ = now + kLookInterval;
  return next_look_;
}

void EpochSweep::CheckInForce(std::size_t setting) {
  const Status in_force = knob_.CheckInForce(settings_[setting]);
  if (!in_force.ok() && !disturbed_) disturbed_ = in_force.error();
}

void EpochSweep::EpochsLumped() {
  if (!std::exchange(measuring_, false)) return;
  meter_.Cancel();
  --next_;
}

void EpochSweep::Stop() {
  if (std::exchange(measuring_, false)) meter_.Cancel();
  next_ = settings_.size() + 1;
}

Result<std::vector<MeasuredSlice>> EpochSweep::Slices() {
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    // What is final is given once.
    if (i < slices_.size() && slices_[i].reading.final) continue;
    ZEUS_TRY(const SliceReading reading, meter_.Read(measured_[i].ticket));
    const MeasuredSlice slice{
        .round = 0,
        .setting = measured_[i].setting,
        .reading = reading,
        .rate = StepRate{
            .steps = 1, .time_per_step = reading.time, .sigma = kScatterOfEpochs * reading.time}};
    if (i < slices_.size()) {
      slices_[i] = slice;
    } else {
      slices_.push_back(slice);
    }
  }
  return slices_;
}

}  // namespace zeus
