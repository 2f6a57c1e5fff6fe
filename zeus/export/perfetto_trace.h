#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// A trace that ui.perfetto.dev and chrome://tracing open: windows as slices, and power, energy,
// clocks, limits and temperatures as counters, one group of counters per device.
//
// The file is a complete JSON document after every call, also when the process is killed or the
// disk is full: each event is written over the closing brackets, which follow it again.
// One owner.
class PerfettoTrace {
 public:
  // `start` is the trace's zero. An existing file is replaced.
  static Result<std::unique_ptr<PerfettoTrace>> Create(const std::filesystem::path& path,
                                                       TimePoint start);

  struct Counter {
    std::string name{};  // "power"
    std::string unit{};  // "W"
  };

  // Adds a group of counters for a device ("gpu:0") with a title. Call once per device.
  Status AddDevice(const std::string& device, std::string_view title);

  // Sets a counter from `time` until its next value. Viewers show it as "power W". Its times do not
  // go back: what is older than the last value, or than the trace, is refused with
  // kInvalidArgument, and so is what is no number. kNotFound for a device that was not added.
  Status AddCounter(const std::string& device, const Counter& counter, TimePoint time,
                    double value);

  // Windows may overlap in any way and come in any order. kInvalidArgument when one began before
  // the trace.
  Status AddWindow(const Measurement& measurement);

 private:
  PerfettoTrace(std::filesystem::path path, int descriptor, TimePoint start)
      : path_(std::move(path)), file_(descriptor), start_(start) {}

  double Microseconds(TimePoint time) const { return (time - start_).count() * 1e6; }
  // Writes all events or none.
  Status Write(const std::vector<Json>& events);
  Status WriteAt(std::string_view text, std::int64_t offset);
  Status Restore();

  const std::filesystem::path path_;
  const FileDescriptor file_;
  const TimePoint start_;
  std::int64_t end_ = 0;  // Offset of the closing brackets.
  bool empty_ = true;
  std::map<std::string, int> processes_;                             // The key is the device.
  std::map<std::pair<std::string, std::string>, TimePoint> latest_;  // By device and counter.
};

}  // namespace zeus
