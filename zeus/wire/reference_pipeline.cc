#include "zeus/wire/reference_pipeline.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire::reference {
namespace {

constexpr std::string_view kAmount = "holds something that is no number, or a negative one";

bool IsAmount(const Json& json) {
  return json.is_number() && std::isfinite(json.get<double>()) && json.get<double>() >= 0;
}

// The mean of {op: [[of each time in an iteration] of each iteration]}, by op.
Result<std::map<std::string, double>> Means(const char* field, const Json& breakdown) {
  if (!breakdown.is_object()) return FieldError(field, "must be an object of lists of lists");
  std::map<std::string, double> means;
  for (const auto& [name, iterations] : breakdown.items()) {
    double sum = 0;
    int count = 0;
    if (!iterations.is_array()) return FieldError(field, "must be an object of lists of lists");
    for (const Json& iteration : iterations) {
      if (!iteration.is_array()) return FieldError(field, "must be an object of lists of lists");
      for (const Json& value : iteration) {
        if (!IsAmount(value)) return FieldError(field, kAmount);
        sum += value.get<double>();
        ++count;
      }
    }
    if (count > 0) means[name] = sum / count;
  }
  return means;
}

Status ReadOnline(const Json& times, const Json& energies, RankReport& report) {
  ZEUS_TRY(const auto time_means, Means("time_breakdown", times));
  ZEUS_TRY(const auto energy_means, Means("energy_breakdown", energies));
  for (const auto& [name, time] : time_means) {
    const auto energy = energy_means.find(name);
    if (energy == energy_means.end())
      return FieldError("energy_breakdown", "has no energy of " + Quote(name));
    report.points.push_back(
        {.instruction = name, .time = Seconds(time), .energy = Joules(energy->second)});
  }
  return Ok();
}

// {"1410": seconds}, and the same in joules.
Status ReadOffline(const std::string& name, const Json& json, RankReport& report) {
  const std::string time_field = name + "_time";
  const std::string energy_field = name + "_energy";
  ZEUS_TRY(const Json times, GetField<Json>(json, time_field));
  ZEUS_TRY(const Json energies, GetField<Json>(json, energy_field));
  if (!times.is_object() || !energies.is_object())
    return FieldError(time_field, "must be an object of clocks in MHz, as must be the energies");
  for (const auto& [clock, time] : times.items()) {
    const auto mhz = ParseInteger(clock);
    if (!mhz.ok() || mhz.value() < 1)
      return FieldError(time_field, Quote(clock) + " is no clock in MHz");
    const auto energy = energies.find(clock);
    if (!IsAmount(time) || energy == energies.end() || !IsAmount(*energy))
      return FieldError(energy_field, fmt::format("{} at {} MHz", kAmount, mhz.value()));
    report.points.push_back({.instruction = name,
                             .clock = Hertz::FromMega(static_cast<double>(mhz.value())),
                             .time = Seconds(time.get<double>()),
                             .energy = Joules(energy->get<double>())});
  }
  return Ok();
}

}  // namespace

Result<PipelineSession> PipelineFromJson(const Json& json) {
  PipelineSession session;
  std::int64_t world_size = 0;
  FieldReader fields("a job", json);
  RequirePositive(fields, "pp_degree", session.pipeline_parallel);
  RequirePositive(fields, "dp_degree", session.data_parallel);
  RequirePositive(fields, "tp_degree", session.tensor_parallel);
  fields.Require("world_size", world_size);
  fields.ReadUnlessNull("job_metadata", session.metadata);
  const double product = static_cast<double>(session.pipeline_parallel) * session.data_parallel *
                         session.tensor_parallel;
  if (static_cast<double>(world_size) != product)
    fields.Fail("world_size", fmt::format("must be the product of the degrees, {}", product));
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return session;
}

Result<SessionRank> RankFromJson(const Json& json) {
  SessionRank rank;
  FieldReader fields("a rank", json);
  fields.Require("rank", rank.rank);
  fields.Require("dp_rank", rank.data_rank);
  fields.Require("pp_rank", rank.pipeline_rank);
  fields.Require("tp_rank", rank.tensor_rank);
  fields.Require("available_frequencies", rank.clocks_mhz);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return rank;
}

Json ToJson(int rank, const pipeline::RankClocks& clocks) {
  Json frequencies = Json::array();
  for (const auto& [name, clock] : clocks)
    frequencies.push_back(
        Json::array({name, static_cast<std::int64_t>(std::llround(clock.ToMega()))}));
  return {{"rank", rank}, {"frequencies", std::move(frequencies)}};
}

Result<RankReport> RankReportFromJson(const Json& json) {
  RankReport report;
  Json times = Json::object();
  Json energies = Json::object();
  FieldReader fields("a profiling result", json);
  fields.Require("rank", report.rank);
  const bool offline = json.is_object() && json.contains("forward_time");
  if (!offline) {
    fields.Require("time_breakdown", times);
    fields.Require("energy_breakdown", energies);
  }
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  if (!offline) {
    ZEUS_RETURN_IF_ERROR(ReadOnline(times, energies, report));
    return report;
  }
  ZEUS_RETURN_IF_ERROR(ReadOffline("forward", json, report));
  ZEUS_RETURN_IF_ERROR(ReadOffline("backward", json, report));
  return report;
}

}  // namespace zeus::wire::reference
