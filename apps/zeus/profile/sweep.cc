#include "apps/zeus/profile/sweep.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLookForProgress = 20ms;
constexpr Seconds kLookForSensors = 20ms;
// Sensors show the end of a slice one or two updates later; the slowest update once a second.
constexpr Seconds kPatience = 2s;

}  // namespace

Sweep::Sweep(const Parts& parts, std::vector<Setting> settings, const SweepPlan& plan)
    : parts_(parts), settings_(std::move(settings)), plan_(plan) {}

Sweep::~Sweep() { Stop(); }

TimePoint Sweep::Step() {
  auto next = Advance();
  if (next.ok()) return next.value();
  Finish(std::move(next).error());
  return TimePoint::max();
}

Result<TimePoint> Sweep::Advance() {
  const TimePoint now = parts_.clock.Now();
  if (waiting()) {
    if (parts_.progress != nullptr && parts_.progress->empty()) return now + kLookForProgress;
    return BeginNext();
  }
  if (const auto* warmup = std::get_if<Warmup>(&state_)) {
    if (now < warmup->end) return warmup->end;
    const SweepPlan::Position position = warmup->position;
    ZEUS_RETURN_IF_ERROR(Settle());
    ZEUS_RETURN_IF_ERROR(parts_.meter.Begin(ToText(settings_[position.setting])));
    const TimePoint begin = parts_.clock.Now();
    state_ = Measuring{position, begin, begin + plan_.slice};
    return begin + plan_.slice;
  }
  if (const auto* measuring = std::get_if<Measuring>(&state_)) {
    if (now < measuring->end) return measuring->end;
    return EndSlice(*measuring);
  }
  if (const auto* settling = std::get_if<Settling>(&state_)) {
    ZEUS_RETURN_IF_ERROR(Settle());
    if (!unsettled_.empty() && now < settling->end) return now + kLookForSensors;
    Finish(std::nullopt);
  }
  return TimePoint::max();
}

Result<TimePoint> Sweep::BeginNext() {
  const TimePoint now = parts_.clock.Now();
  const auto position = plan_.At(next_++);
  if (!position) {
    complete_ = true;
    state_ = Settling{now + kPatience};
    ZEUS_RETURN_IF_ERROR(parts_.knob.Restore());
    return now + kLookForSensors;
  }
  ZEUS_RETURN_IF_ERROR(parts_.knob.Set(settings_[position->setting]));
  state_ = Warmup{*position, now + plan_.warmup};
  return now + plan_.warmup;
}

Result<TimePoint> Sweep::EndSlice(const Measuring& measuring) {
  ZEUS_TRY(const SliceMeter::Ticket ticket, parts_.meter.End());
  unsettled_.push_back({slices_.size(), ticket, measuring.begin, parts_.clock.Now()});
  slices_.push_back({measuring.position.round, measuring.position.setting, {}, std::nullopt});
  return BeginNext();
}

Status Sweep::Settle() {
  for (auto slice = unsettled_.begin(); slice != unsettled_.end();) {
    MeasuredSlice& measured = slices_[slice->slice];
    ZEUS_TRY(measured.reading, parts_.meter.Read(slice->ticket));
    // Asked again although it is known: the last line of a slice may come after its end.
    if (parts_.progress != nullptr)
      measured.rate = parts_.progress->Between(slice->begin, slice->end);
    slice = measured.reading.final ? unsettled_.erase(slice) : slice + 1;
  }
  if (parts_.progress != nullptr && unsettled_.empty())
    parts_.progress->ForgetBefore(parts_.clock.Now());
  return Ok();
}

void Sweep::Stop() {
  if (done()) return;
  if (std::holds_alternative<Measuring>(state_)) parts_.meter.Cancel();
  Status settled = Settle();
  Finish(settled.ok() ? std::nullopt : std::optional(std::move(settled).error()));
}

void Sweep::Finish(std::optional<Error> trouble) {
  if (std::holds_alternative<Measuring>(state_)) parts_.meter.Cancel();
  state_ = Done{};
  if (auto restored = parts_.knob.Restore(); !restored.ok() && !trouble)
    trouble = std::move(restored).error();
  trouble_ = std::move(trouble);
}

}  // namespace zeus::cli
