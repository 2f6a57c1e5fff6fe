#include "apps/zeus/monitor/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/json_lines.h"
#include "zeus/export/perfetto_trace.h"
#include "zeus/export/sample.h"

namespace zeus::cli {
namespace {

class JsonOnStandardOutput final : public SampleOutput {
 public:
  Status Write(const Sample& sample) override {
    fmt::print("{}\n", JsonText(ToJson(sample)));
    return FlushOutput();
  }
};

class CsvOnStandardOutput final : public SampleOutput {
 public:
  CsvOnStandardOutput() { fmt::print("{}\n", SampleCsvHeader()); }
  Status Write(const Sample& sample) override {
    fmt::print("{}\n", fmt::join(SampleCsvRows(sample), "\n"));
    return FlushOutput();
  }
};

class JsonInFile final : public SampleOutput {
 public:
  explicit JsonInFile(std::unique_ptr<JsonLines> file) : file_(std::move(file)) {}
  Status Write(const Sample& sample) override { return file_->Write(sample); }

 private:
  const std::unique_ptr<JsonLines> file_;
};

class CsvInFile final : public SampleOutput {
 public:
  explicit CsvInFile(std::unique_ptr<AppendOnlyFile> file) : file_(std::move(file)) {}
  // All rows of a sample are appended as one record, so that either all or none of them are in the
  // file.
  Status Write(const Sample& sample) override {
    return file_->Append(fmt::format("{}", fmt::join(SampleCsvRows(sample), "\n")));
  }

 private:
  const std::unique_ptr<AppendOnlyFile> file_;
};

}  // namespace

std::unique_ptr<SampleOutput> LinesOnStandardOutput(LineFormat format) {
  if (format == LineFormat::kJson) return std::make_unique<JsonOnStandardOutput>();
  return std::make_unique<CsvOnStandardOutput>();
}

Result<std::unique_ptr<SampleOutput>> LinesInFile(const std::filesystem::path& path,
                                                  LineFormat format) {
  std::unique_ptr<SampleOutput> output;
  if (format == LineFormat::kJson) {
    ZEUS_TRY(auto file, JsonLines::Open(path));
    output = std::make_unique<JsonInFile>(std::move(file));
  } else {
    ZEUS_TRY(auto file, AppendOnlyFile::Open(path, SampleCsvHeader()));
    output = std::make_unique<CsvInFile>(std::move(file));
  }
  return output;
}

Status TolerantOutput::Completeness() const {
  if (notice_.failures() == 0) return Ok();
  return Error{ErrorCode::kUnavailable, fmt::format("{} lacks {} samples that could not be written",
                                                    path_, notice_.failures())};
}

namespace {

using Quantity = EnergyMonitor::Quantity;

struct Counter {
  Quantity quantity;
  const char* name;
  const char* unit;
  double scale;  // From SI units to this one.
};
constexpr std::array kCounters = {
    Counter{Quantity::kPower, "power", "W", 1},
    Counter{Quantity::kTemperature, "temperature", "°C", 1},
    Counter{Quantity::kGraphicsClock, "graphics clock", "MHz", 1e-6},
    Counter{Quantity::kPowerLimit, "power limit", "W", 1},
    Counter{Quantity::kUtilization, "utilisation", "%", 100},
};

// Windows that the monitor has refined and the trace does not have yet. Thread-safe.
class RefinedWindows {
 public:
  void Add(const Measurement& window) {
    const std::lock_guard lock(mutex_);
    windows_.push_back(window);
  }
  // Returns everything that was added since the last call.
  std::vector<Measurement> Drain() {
    const std::lock_guard lock(mutex_);
    return std::exchange(windows_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Measurement> windows_;
};

// Copies everything that the monitor recorded since the last sample, windows included, so that the
// trace is as fine as the recording, however rare the samples.
class TraceOutput final : public SampleOutput {
 public:
  TraceOutput(std::unique_ptr<PerfettoTrace> trace, TimePoint start, EnergyMonitor& monitor)
      : trace_(std::move(trace)), start_(start), monitor_(monitor) {
    monitor.OnRefined([windows = windows_](const Measurement& window) { windows->Add(window); });
  }

  Status Write(const Sample& sample) override {
    for (std::size_t device = 0; device < sample.devices.size(); ++device) {
      const DeviceIdentity& identity = sample.devices[device].identity;
      const EnergyMonitor::Present& present = sample.devices[device].present;
      for (const Counter& counter : kCounters)
        ZEUS_RETURN_IF_ERROR(Copy(device, identity.name, counter, sample.at));
      if (!present.total.ok()) continue;
      ZEUS_RETURN_IF_ERROR(trace_->AddCounter(identity.name, {"energy", "J"}, sample.at,
                                              present.total.value().value()));
    }
    for (const Measurement& window : windows_->Drain())
      if (window.begin >= start_) ZEUS_RETURN_IF_ERROR(trace_->AddWindow(window));
    return Ok();
  }

 private:
  Status Copy(std::size_t device, const std::string& name, const Counter& counter, TimePoint now) {
    std::optional<TimePoint>& copied = copied_[{device, counter.name}];
    for (const Timeline::Sample& value :
         monitor_.History(device, counter.quantity, copied.value_or(start_), now)) {
      const TimePoint time = std::max(value.time, start_);
      if (copied && time <= *copied) continue;
      ZEUS_RETURN_IF_ERROR(trace_->AddCounter(name, {counter.name, counter.unit}, time,
                                              counter.scale * value.value));
      copied = time;
    }
    return Ok();
  }

  const std::unique_ptr<PerfettoTrace> trace_;
  const TimePoint start_;
  EnergyMonitor& monitor_;
  // The monitor may refine a window after the trace is closed.
  const std::shared_ptr<RefinedWindows> windows_ = std::make_shared<RefinedWindows>();
  // Time of the last copied reading, by device and counter.
  std::map<std::pair<std::size_t, std::string>, std::optional<TimePoint>> copied_;
};

}  // namespace

Result<std::unique_ptr<SampleOutput>> TraceInFile(const std::filesystem::path& path,
                                                  const std::vector<DeviceIdentity>& devices,
                                                  EnergyMonitor& monitor) {
  const TimePoint start = monitor.clock().Now();
  ZEUS_TRY(auto trace, PerfettoTrace::Create(path, start));
  for (const DeviceIdentity& device : devices)
    ZEUS_RETURN_IF_ERROR(trace->AddDevice(device.name, device.model));
  return std::unique_ptr<SampleOutput>(
      std::make_unique<TraceOutput>(std::move(trace), start, monitor));
}

}  // namespace zeus::cli
