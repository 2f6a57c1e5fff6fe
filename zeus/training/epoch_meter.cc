#include "zeus/training/epoch_meter.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/training/counted_devices.h"

namespace zeus {
namespace {

std::vector<std::string> Counted(const EnergyMonitor& monitor) {
  std::vector<std::string> names;
  for (const std::size_t device : CountedDevices(monitor))
    names.push_back(monitor.device_name(device));
  return names;
}

// Converts exceptions into errors: at the edges of windows a monitor calls the user's synchronize
// function, which may throw.
template <class Function>
auto WithoutExceptions(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, Printable(exception.what())};
  }
}

}  // namespace

EpochMeter::EpochMeter(EnergyMonitor& monitor, std::string window)
    : monitor_(monitor), window_(std::move(window)), counted_(Counted(monitor)) {}

EpochMeter::~EpochMeter() {
  if (open_) (void)monitor_.CancelWindow(window_);
}

void EpochMeter::Begin() {
  open_.reset();
  begun_ = clock().Now();
  const auto id = WithoutExceptions([&] { return monitor_.BeginWindow(window_); });
  if (id.ok()) {
    open_ = id.value();
  } else {
    (void)Unknown(id.error());
  }
}

EpochReading EpochMeter::Peek() {
  if (!open_) return Unknown({ErrorCode::kUnavailable, "the epoch has no window"});
  auto measured = WithoutExceptions([&] { return monitor_.PeekWindow(window_); });
  return measured.ok() ? Read(std::move(measured).value()) : Unknown(measured.error());
}

EpochReading EpochMeter::End() {
  const std::optional<WindowId> id = std::exchange(open_, std::nullopt);
  if (!id) return Unknown({ErrorCode::kUnavailable, "the epoch has no window"});
  auto measured = WithoutExceptions([&] { return monitor_.EndWindow(window_); });
  if (!measured.ok()) {
    (void)monitor_.CancelWindow(window_);
    return Unknown(measured.error());
  }
  EpochReading reading = Read(std::move(measured).value());
  reading.unrefined = id;
  return reading;
}

void EpochMeter::Refine(EpochReading& reading, Seconds timeout) {
  if (!reading.unrefined) return;
  auto measured = monitor_.Refine(*reading.unrefined, timeout);
  if (!measured.ok()) {  // The monitor has dropped the window, so the reading stays as it is.
    reading.unrefined.reset();
    return;
  }
  const bool refined = measured.value().stage == Measurement::Stage::kRefined;
  const std::optional<WindowId> id = reading.unrefined;
  reading = Read(std::move(measured).value());
  if (!refined) reading.unrefined = id;
}

EpochReading EpochMeter::Read(Measurement measured) const {
  std::erase_if(measured.devices, [&](const DeviceMeasurement& device) {
    return std::ranges::find(counted_, device.device) == counted_.end();
  });
  const Measurement::Total total = measured.Sum();
  const double all = total.sigma.value();
  const double shared = total.shared_sigma.value();
  return {.time = measured.time,
          .energy = total.energy,
          .own_sigma = Joules(std::sqrt(std::max(0.0, all * all - shared * shared))),
          .shared_sigma = total.shared_sigma,
          .missing = total.missing};
}

EpochReading EpochMeter::Unknown(const Error& error) {
  if (!std::exchange(failed_, true))
    log::Warning("the energy of the training is not known: {}", error.message);
  return {.time = clock().Now() - begun_, .missing = counted_};
}

}  // namespace zeus
