#include "apps/zeus/diff/run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr const char* kRunSchema = "zeus.run/1";
constexpr const char* kBenchSchema = "zeus.llm_bench/1";
constexpr std::size_t kLargestFile = 64 << 20;

// Where the number of a run stands.
enum class Place {
  kRun,        // In the run itself.
  kDevice,     // In the part of the device, or in the total.
  kInference,  // In the part about a language model.
};

struct MetricEntry {
  Metric metric;
  const char* name;
  const char* unit;
  Place place;
  const char* part;  // The object in that place which has the field; null: the place itself.
  const char* field;
  // The relative error of the sensor is one field divided by the other. Null for time.
  const char* sigma_field;
  const char* sigma_of;
};

constexpr std::array<MetricEntry, 9> kMetrics = {{
    {Metric::kEnergy, "energy", "J", Place::kDevice, nullptr, "energy_joules",
     "energy_sigma_joules", "energy_joules"},
    {Metric::kAttributedEnergy, "attributed", "J", Place::kDevice, nullptr, "attributed_joules",
     "energy_sigma_joules", "energy_joules"},
    {Metric::kNetEnergy, "net", "J", Place::kDevice, nullptr, "net_energy_joules",
     "net_energy_sigma_joules", "net_energy_joules"},
    {Metric::kTime, "time", "s", Place::kRun, nullptr, "time_seconds", nullptr, nullptr},
    {Metric::kPower, "power", "W", Place::kDevice, nullptr, "average_power_watts",
     "energy_sigma_joules", "energy_joules"},
    {Metric::kTokenEnergy, "token-energy", "J", Place::kInference, nullptr,
     "joules_per_output_token", "joules_per_output_token_sigma", "joules_per_output_token"},
    {Metric::kRequestEnergy, "request-energy", "J", Place::kInference, nullptr,
     "joules_per_request", "joules_per_request_sigma", "joules_per_request"},
    {Metric::kTtft, "ttft", "s", Place::kInference, "ttft_seconds", "p90", nullptr, nullptr},
    {Metric::kTpot, "tpot", "s", Place::kInference, "tpot_seconds", "p90", nullptr, nullptr},
}};

const MetricEntry& FindMetric(Metric metric) {
  return *std::ranges::find(kMetrics, metric, &MetricEntry::metric);
}

constexpr const char* kTotal = "total";

// Returns the part of a run that describes a device; null when there is none.
const Json* FindPart(const Json& run, const std::string& device) {
  if (device == kTotal) {
    const auto total = run.find(kTotal);
    return total != run.end() && total->is_object() ? &*total : nullptr;
  }
  const auto devices = run.find("devices");
  if (devices == run.end() || !devices->is_array()) return nullptr;
  for (const Json& one : *devices)
    if (one.is_object() && one.value("device", Json()) == device) return &one;
  return nullptr;
}

// Returns the object with the field of a metric; null when there is none.
const Json* FindPlace(const Json& run, const MetricEntry& metric, const std::string& device) {
  const auto object_in = [](const Json& json, const char* name) -> const Json* {
    const auto found = json.find(name);
    return found != json.end() && found->is_object() ? &*found : nullptr;
  };
  switch (metric.place) {
    case Place::kRun:
      return &run;
    case Place::kDevice:
      return FindPart(run, device);
    case Place::kInference: {
      const Json* const inference = object_in(run, "inference");
      if (inference == nullptr || metric.part == nullptr) return inference;
      return object_in(*inference, metric.part);
    }
  }
  return nullptr;
}

std::vector<std::string> NamesIn(const Json& run) {
  std::vector<std::string> names = {kTotal};
  if (const auto devices = run.find("devices"); devices != run.end() && devices->is_array()) {
    for (const Json& one : *devices)
      if (auto name = GetField<std::string>(one, "device"); name.ok())
        names.push_back(name.value());
  }
  return names;
}

std::string DeviceIdentity(const RunFile& file, const Json& run, const std::string& device) {
  if (const Json* part = FindPart(run, device); part != nullptr)
    if (const auto uuid = GetField<std::string>(*part, "uuid"); uuid.ok()) return uuid.value();
  return file.host + "/" + device;
}

std::vector<std::string> DeviceIdentities(const RunFile& file, const Json& run, const Json& part,
                                          const std::string& device) {
  if (device != kTotal) return {DeviceIdentity(file, run, device)};
  std::vector<std::string> identities;
  if (const auto contains = GetField<std::vector<std::string>>(part, "contains"); contains.ok())
    for (const std::string& name : contains.value())
      identities.push_back(DeviceIdentity(file, run, name));
  return identities;
}

bool IsTooShort(const Json& run, const std::string& device) {
  const auto devices = run.find("devices");
  if (devices == run.end() || !devices->is_array()) return false;
  return std::ranges::any_of(*devices, [&](const Json& one) {
    if (!one.is_object() || (device != kTotal && one.value("device", Json()) != device))
      return false;
    const auto flags = GetField<std::vector<std::string>>(one, "flags");
    return flags.ok() && std::ranges::find(flags.value(), "short_window") != flags.value().end();
  });
}

// Files of earlier versions name energy_sigma_joules sigma_joules.
Result<std::optional<double>> ReadSigma(const Json& part, const char* field) {
  constexpr std::string_view kEnergy = "energy_";
  ZEUS_TRY(const std::optional<double> sigma, GetOptionalField<double>(part, field));
  std::string earlier(field);
  const std::size_t prefix = earlier.find(kEnergy);
  if (sigma || prefix == std::string::npos) return sigma;
  earlier.erase(prefix, kEnergy.size());
  return GetOptionalField<double>(part, earlier);
}

// Adds one run to the samples, or counts why it is left out.
Status AddRun(const RunFile& file, const Json& run, const MetricEntry& metric,
              const std::string& device, Samples& samples) {
  ZEUS_TRY(const int exit_code, GetField<int>(run, "exit_code"));
  if (exit_code != 0) {
    ++samples.failed;
    return Ok();
  }
  const Json* part = FindPlace(run, metric, device);
  if (part == nullptr) {
    ++samples.unmeasured;
    return Ok();
  }
  ZEUS_TRY(const std::optional<double> value, GetOptionalField<double>(*part, metric.field));
  if (!value || !std::isfinite(*value)) {
    ++samples.unmeasured;
    return Ok();
  }
  // Times come from a clock, everything else from the sensors of devices.
  const Json* const measured = metric.sigma_field == nullptr       ? nullptr
                               : metric.place == Place::kInference ? FindPart(run, kTotal)
                                                                   : part;
  if (measured != nullptr) {
    const std::string sensors = metric.place == Place::kInference ? std::string(kTotal) : device;
    std::vector<std::string> devices = DeviceIdentities(file, run, *measured, sensors);
    if (samples.values.empty()) samples.devices = devices;
    if (devices != samples.devices) {
      ++samples.different;
      return Ok();
    }
    if (IsTooShort(run, sensors)) ++samples.too_short;
  }
  samples.values.push_back(*value);
  if (metric.sigma_field != nullptr) {
    ZEUS_TRY(const std::optional<double> sigma, ReadSigma(*part, metric.sigma_field));
    ZEUS_TRY(const std::optional<double> of, GetOptionalField<double>(*part, metric.sigma_of));
    if (sigma && of && *of > 0) samples.relative_sigma += *sigma / *of;
  }
  return Ok();
}

}  // namespace

const char* MetricName(Metric metric) { return FindMetric(metric).name; }
const char* MetricUnit(Metric metric) { return FindMetric(metric).unit; }

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const MetricEntry& entry : kMetrics) names.emplace_back(entry.name);
  return names;
}

Result<Metric> FindMetric(const std::string& name) {
  const auto found = std::ranges::find(
      kMetrics, name, [](const MetricEntry& entry) { return std::string(entry.name); });
  if (found != kMetrics.end()) return found->metric;
  return Error{ErrorCode::kInvalidArgument, fmt::format("no metric {}", Quote(name))};
}

Result<RunFile> ReadRunFile(const std::string& path) {
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kLargestFile));
  auto parsed = ParseJson(text);
  if (!parsed.ok()) return std::move(parsed).error().While(path);
  const Json& json = parsed.value();
  const auto schema = GetField<std::string>(json, "schema");
  if (!schema.ok() || (schema.value() != kRunSchema && schema.value() != kBenchSchema)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: not a file of zeus run --json (schema {}) or of zeus llm bench "
                             "--json (schema {})",
                             path, kRunSchema, kBenchSchema)};
  }
  RunFile file{.path = path, .command = {}, .host = {}, .runs = {}};
  if (auto command = GetField<std::vector<std::string>>(json, "command"); command.ok())
    file.command = std::move(command).value();
  if (auto host = GetField<std::string>(json, "host"); host.ok())
    file.host = std::move(host).value();
  const auto runs = json.find("runs");
  if (runs == json.end()) {
    file.runs = {json};
  } else if (runs->is_array()) {
    file.runs.assign(runs->begin(), runs->end());
  } else {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: \"runs\" is not a list", path)};
  }
  return file;
}

Result<Samples> CollectSamples(const RunFile& file, Metric metric, const std::string& device) {
  const MetricEntry& entry = FindMetric(metric);
  const bool known = std::ranges::any_of(
      file.runs, [&](const Json& run) { return FindPlace(run, entry, device) != nullptr; });
  if (!known && !file.runs.empty() && entry.place == Place::kInference) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{}: no {}: only files of zeus llm bench have it", file.path, entry.name)};
  }
  if (!known && !file.runs.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: no device {}: it has {}", file.path, Quote(device),
                             fmt::join(NamesIn(file.runs.front()), ", "))};
  }
  Samples samples;
  for (const Json& run : file.runs) {
    if (auto added = AddRun(file, run, entry, device, samples); !added.ok())
      return std::move(added).error().While(file.path);
  }
  if (!samples.values.empty()) samples.relative_sigma /= static_cast<double>(samples.values.size());
  return samples;
}

}  // namespace zeus::cli
