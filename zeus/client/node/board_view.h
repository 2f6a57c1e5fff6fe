#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/reading_feed.h"
#include "zeus/wire/node/board_layout.h"

namespace zeus::client {

// One device of a board in memory that another process writes. Nothing that it says is trusted:
// every answer is a reading or none. Readers cost the writer nothing. Thread-safe; the memory must
// outlive it.
class DeviceView {
 public:
  explicit DeviceView(const wire::board::Device& device) : device_(&device) {}

  // The number of the newest update, counted from 1; 0 before the first one.
  std::uint64_t updates() const { return device_->updates.load(std::memory_order_acquire); }

  // The update with this number, with its telemetry as far as that is still there. nullopt when it
  // has been overwritten, or is being.
  std::optional<TimedReading> UpdateAt(std::uint64_t number) const;

  // The newest reading without telemetry. nullopt before the first one.
  std::optional<wire::board::DecodedUpdate> Newest() const;
  // The same as words, for programs that count nanoseconds.
  std::optional<wire::board::Update::Words> NewestWords() const;
  // nullopt before the first one, and for what is no GPU.
  std::optional<wire::board::DecodedTelemetry> NewestTelemetry() const;

 private:
  const wire::board::Device* device_;
};

// A whole board in memory, checked: its header says what it must. The memory must outlive it and
// have the size that was given, whatever its writer does.
class BoardView {
 public:
  // kInvalidArgument says what is wrong, kNotSupported is for another version. `memory` is aligned
  // as a page is.
  static Result<BoardView> Check(const void* memory, std::size_t size);

  std::uint64_t generation() const { return generation_; }
  const std::vector<DeviceView>& devices() const { return devices_; }

 private:
  BoardView(std::uint64_t generation, std::vector<DeviceView> devices)
      : generation_(generation), devices_(std::move(devices)) {}

  std::uint64_t generation_;
  std::vector<DeviceView> devices_;
};

// The updates of one device in their order. One that was overwritten before it was read is left
// out, and the next one says so. One owner.
class UpdateCursor {
 public:
  // Begins with at most `history` updates that are there already.
  explicit UpdateCursor(DeviceView device, std::uint64_t history = kHistory);

  // Enough to learn the phase and the averaging of a sensor.
  static constexpr std::uint64_t kHistory = 1024;

  bool HasNext() const { return device_.updates() >= next_; }
  // One of a time after `now` is kept for later, unless no clock can be that far ahead.
  std::optional<TimedReading> Next(TimePoint now);

 private:
  void SkipOverwritten(std::uint64_t updates);

  DeviceView device_;
  std::uint64_t next_ = 1;
  bool gap_ = false;
};

}  // namespace zeus::client
