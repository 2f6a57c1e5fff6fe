#include "zeus/wire/reference_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire::reference {
namespace {

// What no instruction of a real pipeline exceeds; the planner computes with sums of many of these.
constexpr double kLongest = 1e5;  // Seconds.
constexpr double kMost = 1e9;     // Joules.
constexpr int kHighestMhz = 100'000;

// One kind of what a rank measured, for messages that say whose it is.
struct Measured {
  int rank = 0;
  std::string field{};
  double most = 0;
  bool may_be_zero = false;  // Counters of energy may stand still during a short instruction.

  Error Wrong(std::string_view why) const {
    return FieldError(field, fmt::format("of rank {} {}", rank, why));
  }
  Result<double> Amount(const Json& json, std::string_view of) const {
    const double value = json.is_number() ? json.get<double>() : -1;
    if (value <= most && (value > 0 || (may_be_zero && value == 0))) return value;
    return Wrong(fmt::format("has {} for {}: must be a number {} 0 and at most {:g}",
                             Printable(json.dump().substr(0, 40)), Quote(of),
                             may_be_zero ? "from" : "above", most));
  }
};

struct Mean {
  double value = 0;
  std::vector<std::size_t> counts{};  // Of each iteration.
};

// The mean of {op: [[of each time in an iteration] of each iteration]}, by op.
Result<std::map<std::string, Mean>> Means(const Measured& kind, const Json& breakdown) {
  constexpr std::string_view kShape = "must be an object of lists of lists, none of them empty";
  if (!breakdown.is_object() || breakdown.empty()) return kind.Wrong(kShape);
  std::map<std::string, Mean> means;
  for (const auto& [name, iterations] : breakdown.items()) {
    if (!iterations.is_array() || iterations.empty()) return kind.Wrong(kShape);
    Mean& mean = means[name];
    std::size_t count = 0;
    for (const Json& iteration : iterations) {
      if (!iteration.is_array() || iteration.empty()) return kind.Wrong(kShape);
      for (const Json& value : iteration) {
        ZEUS_TRY(const double amount, kind.Amount(value, name));
        mean.value += amount;
      }
      mean.counts.push_back(iteration.size());
      count += iteration.size();
    }
    mean.value /= static_cast<double>(count);
  }
  return means;
}

Status ReadOnline(const Json& times, const Json& energies, RankReport& report) {
  const Measured time_kind{report.rank, "time_breakdown", kLongest};
  const Measured energy_kind{report.rank, "energy_breakdown", kMost, true};
  ZEUS_TRY(const auto time_means, Means(time_kind, times));
  ZEUS_TRY(const auto energy_means, Means(energy_kind, energies));
  for (const auto& [name, time] : time_means) {
    const auto energy = energy_means.find(name);
    if (energy == energy_means.end()) return energy_kind.Wrong("has no energy of " + Quote(name));
    if (energy->second.counts != time.counts)
      return energy_kind.Wrong(fmt::format("has not as many energies of {} as times", Quote(name)));
    if (std::ranges::count(time.counts, time.counts.front()) != std::ssize(time.counts))
      return time_kind.Wrong(
          fmt::format("has iterations that differ in how often they ran {}", Quote(name)));
    if (energy->second.value == 0)
      return energy_kind.Wrong(fmt::format("says that {} took no energy at all", Quote(name)));
    report.points.push_back({.instruction = name,
                             .time = Seconds(time.value),
                             .energy = Joules(energy->second.value),
                             .times_in_iteration = static_cast<int>(time.counts.front())});
  }
  return Ok();
}

// {"1410": seconds}, and the same in joules.
Status ReadOffline(const std::string& name, const Json& json, RankReport& report) {
  const Measured time_kind{report.rank, name + "_time", kLongest};
  const Measured energy_kind{report.rank, name + "_energy", kMost};
  ZEUS_TRY(const Json times, GetField<Json>(json, time_kind.field));
  ZEUS_TRY(const Json energies, GetField<Json>(json, energy_kind.field));
  if (!times.is_object() || times.empty())
    return time_kind.Wrong("must be an object of clocks in MHz, at least one");
  if (!energies.is_object() || energies.size() != times.size())
    return energy_kind.Wrong("must be an object of the clocks that the times have");
  for (const auto& [clock, time] : times.items()) {
    const auto mhz = ParseInteger(clock);
    if (!mhz.ok() || mhz.value() < 1 || mhz.value() > kHighestMhz)
      return time_kind.Wrong("has " + Quote(clock) + ", which is no clock in MHz");
    const auto energy = energies.find(clock);
    if (energy == energies.end()) return energy_kind.Wrong("has nothing at " + clock + " MHz");
    ZEUS_TRY(const double seconds, time_kind.Amount(time, clock));
    ZEUS_TRY(const double joules, energy_kind.Amount(*energy, clock));
    report.points.push_back({.instruction = name,
                             .clock = Hertz::FromMega(static_cast<double>(mhz.value())),
                             .time = Seconds(seconds),
                             .energy = Joules(joules)});
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
