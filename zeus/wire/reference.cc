#include "zeus/wire/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/wire/error.h"
#include "zeus/wire/requests.h"

namespace zeus::wire::reference {

// --- batch sizes ---

namespace {

// Only these clients send both an id and a prefix, so the two are compared here.
void ReadIdentity(FieldReader& fields, JobSpec& spec) {
  fields.Require("job_id_prefix", spec.prefix);
  if (spec.prefix.empty()) fields.Fail("job_id_prefix", "must not be empty");
  fields.ReadUnlessNull("job_id", spec.id);
  if (!spec.id.empty() && !spec.id.starts_with(spec.prefix))
    fields.Fail("job_id", "must start with job_id_prefix");
}

void ReadObjective(FieldReader& fields, JobSpec& spec) {
  fields.Read("eta_knob", spec.eta);
  if (!(spec.eta >= 0 && spec.eta <= 1)) fields.Fail("eta_knob", "must be between 0 and 1");
  fields.Read("beta_knob", spec.beta);
  if (spec.beta && !(*spec.beta > 0))
    fields.Fail("beta_knob", "must be greater than 0, or null for no early stop");
  fields.Read("target_metric", spec.target_metric);
  fields.Read("higher_is_better_metric", spec.higher_is_better);
  fields.Read("max_epochs", spec.max_epochs);
  if (spec.max_epochs < 1) fields.Fail("max_epochs", "must be 1 or more");
}

// Renames the field of an error of our own checks to the name that these clients know.
Error InTheirNames(Error error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {
      {{"id", "job_id"}, {"prefix", "job_id_prefix"}, {"max_power_watts", "max_power"}}};
  const std::string field = FieldOf(error);
  for (const auto& [ours, theirs] : kNames)
    if (field == ours) error.message.replace(0, ours.size(), theirs);
  return error;
}

void ReadCount(FieldReader& fields, const char* field, int& target) {
  fields.Read(field, target);
  if (target < 0) fields.Fail(field, "must not be negative");
}

void ReadPolicy(FieldReader& fields, JobSpec& spec) {
  spec.policy = "zeus";
  ReadCount(fields, "num_pruning_rounds", spec.pruning_rounds);
  ReadCount(fields, "window_size", spec.window);
  fields.Read("mab_prior_mean", spec.prior_mean);
  fields.Read("mab_prior_precision", spec.prior_precision);
  if (!(spec.prior_precision >= 0)) fields.Fail("mab_prior_precision", "must not be negative");
  ReadCount(fields, "mab_num_explorations", spec.explorations);
  fields.Read("mab_seed", spec.seed);
}

}  // namespace

Json ToJson(const JobSpec& spec) {
  return {{"job_id", spec.id},
          {"job_id_prefix", spec.prefix},
          {"batch_sizes", spec.batch_sizes},
          {"default_batch_size", spec.default_batch_size},
          {"eta_knob", spec.eta},
          {"beta_knob", OrNull(spec.beta)},
          {"target_metric", spec.target_metric},
          {"higher_is_better_metric", spec.higher_is_better},
          {"max_epochs", spec.max_epochs},
          {"num_pruning_rounds", spec.pruning_rounds},
          {"window_size", spec.window},
          {"mab_prior_mean", spec.prior_mean},
          {"mab_prior_precision", spec.prior_precision},
          {"mab_num_explorations", spec.explorations},
          {"mab_seed", OrNull(spec.seed)},
          {"max_power", spec.max_power.value()},
          {"number_of_gpus", spec.number_of_gpus},
          {"gpu_model", spec.gpu_model}};
}

Result<JobSpec> JobSpecFromJson(const Json& json) {
  // In the reference a job belongs to one GPU model and one MAXPOWER.
  JobSpec spec{.translate_gpu_models = false, .lease = kLease};
  FieldReader fields("a job", json);
  ReadIdentity(fields, spec);
  fields.Require("batch_sizes", spec.batch_sizes);
  fields.Require("default_batch_size", spec.default_batch_size);
  ReadObjective(fields, spec);
  ReadPolicy(fields, spec);
  RequireQuantity(fields, "max_power", spec.max_power);
  if (spec.max_power == Watts(0)) fields.Fail("max_power", "must be greater than 0");
  RequirePositive(fields, "number_of_gpus", spec.number_of_gpus);
  fields.Require("gpu_model", spec.gpu_model);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  Result<JobSpec> checked = Checked(std::move(spec));
  if (!checked.ok()) return InTheirNames(std::move(checked).error());
  return checked;
}

Json ToJson(const TrialId& trial) {
  return {{"job_id", trial.job_id},
          {"batch_size", trial.batch_size},
          {"trial_number", trial.trial_number}};
}

Result<TrialId> TrialIdFromJson(const Json& json) {
  TrialId trial;
  FieldReader fields("a trial", json);
  fields.Require("job_id", trial.job_id);
  RequirePositive(fields, "batch_size", trial.batch_size);
  fields.Require("trial_number", trial.trial_number);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return trial;
}

Json ToJson(const TrainingResult& result) {
  return {{"job_id", result.report.job_id},         {"batch_size", result.batch_size},
          {"trial_number", result.report.trial},    {"time", result.report.time.count()},
          {"energy", result.report.energy.value()}, {"metric", result.report.metric},
          {"current_epoch", result.report.epoch}};
}

Result<TrainingResult> TrainingResultFromJson(const Json& json) {
  TrainingResult result;
  FieldReader fields("a training result", json);
  fields.Require("job_id", result.report.job_id);
  fields.Require("trial_number", result.report.trial);
  RequirePositive(fields, "batch_size", result.batch_size);
  RequirePositive(fields, "current_epoch", result.report.epoch);
  RequireQuantity(fields, "time", result.report.time);
  RequireQuantity(fields, "energy", result.report.energy);
  fields.Require("metric", result.report.metric);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return result;
}

Json ToJson(const ReportAnswer& answer) {
  return {
      {"stop_train", answer.stop}, {"converged", answer.converged}, {"message", answer.message}};
}

Json ErrorToJson(const Error& error, std::string_view place) {
  if (error.code != ErrorCode::kInvalidArgument) return {{"detail", error.message}};
  Json location = Json::array({place});
  if (const std::string field = FieldOf(error); !field.empty()) location.push_back(field);
  return {{"detail",
           Json::array(
               {{{"loc", std::move(location)}, {"msg", error.message}, {"type", "value_error"}}})}};
}

// --- pipelines ---

namespace {

// Upper bounds of a single instruction, in seconds and joules, far above those of real pipelines:
// the planner adds up many of them.
constexpr double kLongest = 1e5;
constexpr double kMost = 1e9;
constexpr int kHighestMhz = 100'000;

// One kind of measurement of a rank, and how error messages name it.
struct Measured {
  int rank = 0;
  std::string field{};
  double most = 0;
  bool may_be_zero = false;  // An energy counter may stand still during a short instruction.

  Error Refusal(std::string_view why) const {
    return FieldError(field, fmt::format("of rank {} {}", rank, why));
  }
  Result<double> Amount(const Json& json, std::string_view of) const {
    const double value = json.is_number() ? json.get<double>() : -1;
    if (value <= most && (value > 0 || (may_be_zero && value == 0))) return value;
    return Refusal(fmt::format("has {} for {}: must be a number {} 0 and at most {:g}",
                               Printable(json.dump().substr(0, 40)), Quote(of),
                               may_be_zero ? "from" : "above", most));
  }
};

struct Mean {
  double value = 0;
  std::vector<std::size_t> counts{};  // The number of values in each iteration.
};

// Returns the mean of each instruction of {instruction: [[values of an iteration], …]}.
Result<std::map<std::string, Mean>> Means(const Measured& kind, const Json& breakdown) {
  constexpr std::string_view kShape = "must be an object of lists of lists, none of them empty";
  if (!breakdown.is_object() || breakdown.empty()) return kind.Refusal(kShape);
  std::map<std::string, Mean> means;
  for (const auto& [name, iterations] : breakdown.items()) {
    if (!iterations.is_array() || iterations.empty()) return kind.Refusal(kShape);
    Mean& mean = means[name];
    std::size_t count = 0;
    for (const Json& iteration : iterations) {
      if (!iteration.is_array() || iteration.empty()) return kind.Refusal(kShape);
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
    if (energy == energy_means.end()) return energy_kind.Refusal("has no energy of " + Quote(name));
    if (energy->second.counts != time.counts)
      return energy_kind.Refusal(
          fmt::format("has not as many energies of {} as times", Quote(name)));
    if (std::ranges::count(time.counts, time.counts.front()) != std::ssize(time.counts))
      return time_kind.Refusal(
          fmt::format("has iterations that differ in how often they ran {}", Quote(name)));
    if (energy->second.value == 0)
      return energy_kind.Refusal(fmt::format("says that {} took no energy at all", Quote(name)));
    report.points.push_back({.instruction = name,
                             .time = Seconds(time.value),
                             .energy = Joules(energy->second.value),
                             .times_in_iteration = static_cast<int>(time.counts.front())});
  }
  return Ok();
}

// Reads {"1410": seconds} and {"1410": joules}, by clock in MHz.
Status ReadOffline(const std::string& name, const Json& json, RankReport& report) {
  const Measured time_kind{report.rank, name + "_time", kLongest};
  const Measured energy_kind{report.rank, name + "_energy", kMost};
  ZEUS_TRY(const Json times, GetField<Json>(json, time_kind.field));
  ZEUS_TRY(const Json energies, GetField<Json>(json, energy_kind.field));
  if (!times.is_object() || times.empty())
    return time_kind.Refusal("must be an object of clocks in MHz, at least one");
  if (!energies.is_object() || energies.size() != times.size())
    return energy_kind.Refusal("must be an object of the clocks that the times have");
  for (const auto& [clock, time] : times.items()) {
    const auto mhz = ParseInteger(clock);
    if (!mhz.ok() || mhz.value() < 1 || mhz.value() > kHighestMhz)
      return time_kind.Refusal("has " + Quote(clock) + ", which is no clock in MHz");
    const auto energy = energies.find(clock);
    if (energy == energies.end()) return energy_kind.Refusal("has nothing at " + clock + " MHz");
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
