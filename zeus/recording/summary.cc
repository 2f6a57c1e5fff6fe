#include "zeus/recording/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::recording {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kMicrosecondsPerSecond = 1e6;
constexpr double kMillijoulesPerJoule = 1e3;

// The functions that a summary looks into.
struct Known {
  std::optional<std::uint16_t> name = FindFunction("nvmlDeviceGetName");
  std::optional<std::uint16_t> uuid = FindFunction("nvmlDeviceGetUUID");
  std::optional<std::uint16_t> energy = FindFunction("nvmlDeviceGetTotalEnergyConsumption");
  std::optional<std::uint16_t> fields = FindFunction("nvmlDeviceGetFieldValues");
  std::optional<std::uint16_t> driver = FindFunction("nvmlSystemGetDriverVersion");
};

struct GpuFacts {
  GpuSummary summary;
  std::optional<std::uint64_t> first_energy{};  // In millijoules.
  std::uint64_t last_energy = 0;
  std::uint64_t last_time = 0;
  std::uint64_t first_time = 0;

  void Note(std::uint64_t time, std::uint64_t energy) {
    if (!first_energy || time < first_time) {
      first_energy = energy;
      first_time = time;
    }
    if (time >= last_time) {
      last_energy = energy;
      last_time = time;
    }
  }
};

void NoteFields(const Call& call, GpuFacts& gpu) {
  const std::string_view values = call.outputs[2];
  for (std::size_t at = 0; at + sizeof(nvml::FieldValue) <= values.size();
       at += sizeof(nvml::FieldValue)) {
    const auto field = Load<nvml::FieldValue>(values.data() + at);
    const bool energy =
        field.field_id == nvml::kFieldEnergy || field.field_id == nvml::kFieldTotalEnergy;
    if (energy && field.scope_id == nvml::kScopeGpu && field.nvml_return == nvml::kSuccess)
      gpu.Note(call.header.begin, field.value.as_unsigned_long_long);
  }
}

class Summariser {
 public:
  explicit Summariser(const Recording& recording) : recording_(recording) {}

  Summary Run() && {
    for (const RecordedProcess& process : recording_.processes) summary_.lost += process.lost;
    summary_.calls = recording_.calls.size();
    for (const RecordedCall& recorded : recording_.calls) Take(recorded.call);
    for (auto& [number, gpu] : gpus_) {
      if (gpu.first_energy && gpu.last_energy >= *gpu.first_energy)
        gpu.summary.energy =
            Joules(static_cast<double>(gpu.last_energy - *gpu.first_energy) / kMillijoulesPerJoule);
      summary_.gpus.push_back(gpu.summary);
    }
    for (auto& [function, durations] : durations_) Finish(function, durations);
    std::ranges::stable_sort(summary_.functions, std::ranges::greater{}, &FunctionSummary::calls);
    return std::move(summary_);
  }

 private:
  void Take(const Call& call) {
    const CallHeader& header = call.header;
    const Function& function = Functions()[header.function];
    const double end =
        (static_cast<double>(header.begin) + header.duration) / kNanosecondsPerSecond;
    summary_.duration = std::max(summary_.duration, Seconds(end));
    durations_[header.function].push_back(header.duration);
    if (header.code != nvml::kSuccess) ++failures_[header.function][header.code];
    if (function.opaque && header.code == nvml::kSuccess) ++summary_.left_out;
    if (header.code == nvml::kSuccess && header.function == known_.driver)
      summary_.driver = std::string(call.outputs[0]);
    if (function.arguments.empty() || function.arguments[0].kind != Kind::kDevice ||
        call.inputs[0].size() < sizeof(std::uint32_t))
      return;
    const auto number = Load<std::uint32_t>(call.inputs[0].data());
    if (number < kMaxHandles && header.code == nvml::kSuccess) TakeGpu(number, call);
  }

  void TakeGpu(std::uint32_t number, const Call& call) {
    GpuFacts& gpu =
        gpus_.try_emplace(number, GpuFacts{.summary = GpuSummary{.number = number}}).first->second;
    if (call.header.function == known_.name) gpu.summary.name = std::string(call.outputs[1]);
    if (call.header.function == known_.uuid) gpu.summary.uuid = std::string(call.outputs[1]);
    if (call.header.function == known_.energy && call.outputs[1].size() == sizeof(std::uint64_t))
      gpu.Note(call.header.begin, Load<std::uint64_t>(call.outputs[1].data()));
    if (call.header.function == known_.fields) NoteFields(call, gpu);
  }

  void Finish(std::uint16_t function, std::vector<std::uint32_t>& durations) {
    std::ranges::sort(durations);
    summary_.functions.push_back(
        {.function = function,
         .calls = durations.size(),
         .failures = failures_[function],
         .median = Seconds(durations[durations.size() / 2] / kNanosecondsPerSecond),
         .longest = Seconds(durations.back() / kNanosecondsPerSecond)});
  }

  const Recording& recording_;
  const Known known_;
  Summary summary_;
  std::map<std::uint32_t, GpuFacts> gpus_;
  std::map<std::uint16_t, std::vector<std::uint32_t>> durations_;
  std::map<std::uint16_t, std::map<std::int32_t, std::uint64_t>> failures_;
};

std::string FailureText(const FunctionSummary& function) {
  std::string text;
  for (const auto& [code, count] : function.failures)
    text += fmt::format("{}{} with code {}", text.empty() ? "" : ", ", count, code);
  return text;
}

}  // namespace

Summary Summarise(const Recording& recording) { return Summariser(recording).Run(); }

std::string ToText(const Recording& recording, const Summary& summary) {
  std::string text = fmt::format(
      "{} calls in {:.1f} s from {} processes, recorded by Zeus {}{}\n", summary.calls,
      summary.duration.count(), recording.processes.size(), Printable(recording.version),
      summary.driver.empty() ? "" : fmt::format(", driver {}", Printable(summary.driver)));
  text += recording.identities_kept
              ? "It holds UUIDs, serial numbers, process numbers and names as they are.\n"
              : "UUIDs, serial numbers, process numbers and names are made up.\n";
  if (!recording.whole)
    text += "It ends before its program did: the recorder was killed, or the file is cut short.\n";
  if (recording.whole && recording.exit_code != 0)
    text += fmt::format("The program ended with exit code {}.\n", recording.exit_code);
  if (summary.lost > 0)
    text += fmt::format("{} calls could not be written and are missing.\n", summary.lost);
  if (summary.left_out > 0)
    text += fmt::format(
        "{} answers were of kinds that are not kept: a replay answers \"not "
        "supported\" there.\n",
        summary.left_out);
  if (!summary.gpus.empty())
    text += fmt::format("\n{:>4}  {:<32} {:<42} {:>14}\n", "GPU", "NAME", "UUID", "ENERGY [J]");
  for (const GpuSummary& gpu : summary.gpus)
    text += fmt::format("{:>4}  {:<32} {:<42} {:>14}\n", gpu.number, Printable(gpu.name),
                        Printable(gpu.uuid),
                        gpu.energy ? fmt::format("{:.3f}", gpu.energy->value()) : "-");
  if (!summary.functions.empty())
    text += fmt::format("\n{:<46} {:>9} {:>12} {:>13}  {}\n", "FUNCTION", "CALLS", "MEDIAN [us]",
                        "LONGEST [us]", "FAILURES");
  for (const FunctionSummary& function : summary.functions)
    text += std::string(Trim(fmt::format(
                "{:<46} {:>9} {:>12.1f} {:>13.1f}  {}", Functions()[function.function].name,
                function.calls, function.median.count() * kMicrosecondsPerSecond,
                function.longest.count() * kMicrosecondsPerSecond, FailureText(function)))) +
            "\n";
  return text;
}

Json ToJson(const Recording& recording, const Summary& summary) {
  Json gpus = Json::array();
  for (const GpuSummary& gpu : summary.gpus)
    gpus.push_back({{"index", gpu.number},
                    {"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"energy_joules", gpu.energy ? Json(gpu.energy->value()) : Json()}});
  Json functions = Json::array();
  for (const FunctionSummary& function : summary.functions) {
    Json failures = Json::object();
    for (const auto& [code, count] : function.failures) failures[std::to_string(code)] = count;
    functions.push_back({{"name", std::string(Functions()[function.function].name)},
                         {"calls", function.calls},
                         {"failures", std::move(failures)},
                         {"median_seconds", function.median.count()},
                         {"longest_seconds", function.longest.count()}});
  }
  Json processes = Json::array();
  for (const RecordedProcess& process : recording.processes)
    processes.push_back({{"number", process.number},
                         {"parent", process.parent},
                         {"name", process.name},
                         {"lost_calls", process.lost}});
  return {{"zeus_version", recording.version},
          {"driver_version", summary.driver},
          {"identities_kept", recording.identities_kept},
          {"whole", recording.whole},
          {"exit_code", recording.whole ? Json(recording.exit_code) : Json()},
          {"duration_seconds", summary.duration.count()},
          {"calls", summary.calls},
          {"lost_calls", summary.lost},
          {"answers_left_out", summary.left_out},
          {"processes", std::move(processes)},
          {"gpus", std::move(gpus)},
          {"functions", std::move(functions)}};
}

}  // namespace zeus::recording
