#include "zeus/client/node/board_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zeus::client {
namespace {

using wire::board::Device;
using wire::board::Header;
using wire::board::kTelemetry;
using wire::board::kUpdates;

// A writer that was stopped in the middle of a record, or died there, must not hold a reader.
constexpr int kAttempts = 64;

// Clocks of one machine agree; a process may have taken its time just before the reading's.
constexpr Seconds kFurthestAhead{1};

// Room between the oldest update that is read and the one that is written next.
constexpr std::uint64_t kMargin = 16;

template <class Record>
auto ReadPatiently(const Record& record) {
  auto words = record.Read();
  for (int attempt = 1; !words && attempt < kAttempts; ++attempt) words = record.Read();
  return words;
}

Error Malformed(const char* why) {
  return {ErrorCode::kInvalidArgument, fmt::format("the board of the node daemon {}", why)};
}

}  // namespace

std::optional<TimedReading> DeviceView::UpdateAt(std::uint64_t number) const {
  if (number == 0) return std::nullopt;
  const auto words = device_->ring[(number - 1) % kUpdates].Read();
  if (!words || words->front() != number) return std::nullopt;
  auto update = wire::board::Decode(*words);
  TimedReading reading{.time = update.time, .reading = std::move(update.reading)};
  if (update.telemetry == 0) return reading;
  const auto telemetry = device_->telemetry[(update.telemetry - 1) % kTelemetry].Read();
  if (telemetry && telemetry->front() == update.telemetry)
    reading.reading.telemetry = wire::board::Decode(*telemetry).reading;
  return reading;
}

std::optional<wire::board::Update::Words> DeviceView::NewestWords() const {
  return ReadPatiently(device_->newest);
}

std::optional<wire::board::DecodedUpdate> DeviceView::Newest() const {
  const auto words = NewestWords();
  if (!words) return std::nullopt;
  return wire::board::Decode(*words);
}

std::optional<wire::board::DecodedTelemetry> DeviceView::NewestTelemetry() const {
  const auto words = ReadPatiently(device_->newest_telemetry);
  if (!words) return std::nullopt;
  return wire::board::Decode(*words);
}

Result<BoardView> BoardView::Check(const void* memory, std::size_t size) {
  Header header{};
  if (size < sizeof(header)) return Malformed("has no header");
  std::memcpy(&header, memory, sizeof(header));
  if (header.magic != wire::board::kMagic) return Malformed("is none");
  if (header.version != wire::board::kVersion)
    return Error{ErrorCode::kNotSupported,
                 fmt::format("the board of the node daemon has version {}, and this is for {}",
                             header.version, wire::board::kVersion)};
  if (header.device_size != sizeof(Device) || header.updates != kUpdates ||
      header.telemetry != kTelemetry)
    return Malformed("has records of another size");
  if (header.device_count > wire::board::kMostDevices) return Malformed("has too many devices");
  if (header.size != size || size != wire::board::SizeOf(header.device_count))
    return Malformed("has another size than it says");
  const auto* const devices =
      reinterpret_cast<const Device*>(static_cast<const std::byte*>(memory) + sizeof(Header));
  std::vector<DeviceView> views;
  for (std::size_t i = 0; i < header.device_count; ++i) views.emplace_back(devices[i]);
  return BoardView(header.generation, std::move(views));
}

UpdateCursor::UpdateCursor(DeviceView device, std::uint64_t history) : device_(device) {
  const std::uint64_t updates = device_.updates();
  next_ = updates > history ? updates - history + 1 : 1;
}

void UpdateCursor::SkipOverwritten(std::uint64_t updates) {
  if (updates - next_ < kUpdates) return;
  next_ = updates - kUpdates + 1 + kMargin;
  gap_ = true;
}

std::optional<TimedReading> UpdateCursor::Next(TimePoint now) {
  const std::uint64_t updates = device_.updates();
  // Each turn goes on by one, and there are no more than the ring holds.
  while (next_ <= updates) {
    SkipOverwritten(updates);
    std::optional<TimedReading> reading = device_.UpdateAt(next_);
    const bool sane = reading && reading->time <= now + kFurthestAhead;
    if (sane && reading->time > now) return std::nullopt;
    ++next_;
    if (sane) {
      reading->after_gap = std::exchange(gap_, false);
      return reading;
    }
    gap_ = true;
  }
  return std::nullopt;
}

}  // namespace zeus::client
