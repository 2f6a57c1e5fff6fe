#include "zeus/export/perfetto_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/export/json_lines.h"

// The format: "Trace Event Format", the document that the Chromium project keeps for its viewers.
// ph "M": metadata, "C": counter, "b" and "e": begin and end of an asynchronous slice. Windows are
// asynchronous slices because slices of a thread ("X") must nest and windows need not. A counter's
// track gets the event's name and the key of the value, so the key is the unit. Events have their
// process's number as thread: thread 0 is the idle task.
namespace zeus {
namespace {

constexpr mode_t kTraceFileMode = 0644;
constexpr std::string_view kOpening = R"({"displayTimeUnit":"ms","traceEvents":[)";
constexpr std::string_view kClosing = "\n]}\n";
constexpr int kWindowsProcess = 1;  // Viewers take 0 for the idle task.

Json Metadata(int process, const char* what, Json arguments) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", process},
          {"args", std::move(arguments)}};
}

Json WindowArguments(const Measurement& measurement) {
  Json arguments = Json::object();
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.energy.ok()) {
      arguments[device.device] = device.energy.error().message;
      continue;
    }
    const EnergyEstimate& estimate = device.energy.value();
    arguments[device.device] = {{"energy_joules", estimate.energy.value()},
                                {"energy_sigma_joules", estimate.sigma.value()},
                                {"attributed_joules", estimate.attributed.value()},
                                {"source", EnergySourceName(estimate.source)},
                                {"flags", estimate.flags.Names()}};
  }
  const Measurement::Total total = measurement.Sum();
  arguments["total_energy_joules"] = total.energy.value();
  arguments["total_energy_sigma_joules"] = total.sigma.value();
  return arguments;
}

}  // namespace

Result<std::unique_ptr<PerfettoTrace>> PerfettoTrace::Create(const std::filesystem::path& path,
                                                             TimePoint start) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kTraceFileMode);
  if (descriptor < 0) return FileError(path, errno);
  std::unique_ptr<PerfettoTrace> trace(new PerfettoTrace(path, descriptor, start));
  ZEUS_RETURN_IF_ERROR(trace->WriteAt(std::string(kOpening) + std::string(kClosing), 0));
  trace->end_ = static_cast<std::int64_t>(kOpening.size());
  ZEUS_RETURN_IF_ERROR(
      trace->Write({Metadata(kWindowsProcess, "process_name", {{"name", "windows"}}),
                    Metadata(kWindowsProcess, "process_sort_index", {{"sort_index", 0}})}));
  return trace;
}

Status PerfettoTrace::AddDevice(const std::string& device, std::string_view title) {
  const int process = kWindowsProcess + 1 + static_cast<int>(processes_.size());
  if (!processes_.emplace(device, process).second)
    return Error{ErrorCode::kInvalidArgument, fmt::format("the trace has {} already", device)};
  const std::string name = fmt::format("{} {}", device, title);
  return Write({Metadata(process, "process_name", {{"name", std::string(Trim(name))}}),
                Metadata(process, "process_sort_index", {{"sort_index", process}})});
}

Status PerfettoTrace::AddCounter(const std::string& device, const Counter& counter, TimePoint time,
                                 double value) {
  const auto process = processes_.find(device);
  if (process == processes_.end())
    return Error{ErrorCode::kNotFound, fmt::format("the trace has no device {}", device)};
  if (!std::isfinite(value)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} of {} is not a number", counter.name, device)};
  }
  TimePoint& latest = latest_.try_emplace({device, counter.name}, start_).first->second;
  if (time < latest) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} of {} at {:.6f} s lies before what the trace holds up to {:.6f} s",
                    counter.name, device, (time - start_).count(), (latest - start_).count())};
  }
  const Json event = {{"ph", "C"},
                      {"name", counter.name},
                      {"pid", process->second},
                      {"tid", process->second},
                      {"ts", Microseconds(time)},
                      {"args", {{counter.unit, value}}}};
  ZEUS_RETURN_IF_ERROR(Write(std::vector<Json>(1, event)));
  latest = time;
  return Ok();
}

Status PerfettoTrace::AddWindow(const Measurement& measurement) {
  if (measurement.begin < start_ || measurement.time < Seconds(0)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("window {} began before the trace", Quote(measurement.window))};
  }
  const auto edge = [&](const char* phase, TimePoint time) {
    return Json{{"ph", phase},
                {"cat", "window"},
                {"name", measurement.window},
                {"id", fmt::format("{:#x}", static_cast<std::uint64_t>(measurement.id))},
                {"pid", kWindowsProcess},
                {"tid", kWindowsProcess},
                {"ts", Microseconds(time)}};
  };
  Json begin = edge("b", measurement.begin);
  begin["args"] = WindowArguments(measurement);
  return Write({std::move(begin), edge("e", measurement.begin + measurement.time)});
}

Status PerfettoTrace::Write(const std::vector<Json>& events) {
  std::string text;
  for (const Json& event : events) {
    text += empty_ && text.empty() ? "\n" : ",\n";
    text += JsonText(event);
  }
  const std::int64_t end = end_ + static_cast<std::int64_t>(text.size());
  text += kClosing;
  if (auto written = WriteAt(text, end_); !written.ok()) {
    ZEUS_RETURN_IF_ERROR(Restore());
    return written;
  }
  end_ = end;
  empty_ = false;
  return Ok();
}

Status PerfettoTrace::WriteAt(std::string_view text, std::int64_t offset) {
  ssize_t written = 0;
  do {
    written = ::pwrite(file_.get(), text.data(), text.size(), offset);
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size())) return Ok();
  // A short write says nothing of its cause, which is nearly always a full disk.
  return FileError(path_, written < 0 ? errno : ENOSPC);
}

// Closes the document again where it was closed before: there is room for that.
Status PerfettoTrace::Restore() {
  ZEUS_RETURN_IF_ERROR(WriteAt(kClosing, end_));
  const auto size = end_ + static_cast<std::int64_t>(kClosing.size());
  if (::ftruncate(file_.get(), size) != 0) return FileError(path_, errno);
  return Ok();
}

}  // namespace zeus
