#include "apps/zeus/train/epoch_sweep.h"

#include <utility>

namespace zeus::cli {
namespace {

// What epochs of one program at one setting differ by; a single one does not tell.
constexpr double kScatterOfEpochs = 0.005;

}  // namespace

EpochSweep::EpochSweep(Knob& knob, SliceMeter& meter, std::vector<Setting> settings)
    : knob_(knob), meter_(meter), settings_(std::move(settings)) {}

Status EpochSweep::EpochEnded() {
  if (done()) return Ok();
  if (std::exchange(measuring_, false)) {
    ZEUS_TRY(const SliceMeter::Ticket ticket, meter_.End());
    tickets_.push_back(ticket);
  }
  const std::size_t setting = next_++;
  if (setting == settings_.size()) return Ok();
  ZEUS_RETURN_IF_ERROR(knob_.Set(settings_[setting]));
  ZEUS_RETURN_IF_ERROR(meter_.Begin(ToText(settings_[setting])));
  measuring_ = true;
  return Ok();
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
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    // What is final is given once.
    if (i < slices_.size() && slices_[i].reading.final) continue;
    ZEUS_TRY(const SliceReading reading, meter_.Read(tickets_[i]));
    const MeasuredSlice slice{
        .round = 0,
        .setting = i,
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

}  // namespace zeus::cli
