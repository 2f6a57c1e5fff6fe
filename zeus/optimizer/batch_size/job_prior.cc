// A kind is recognised by what a job says about itself before its first run. Statistics are sums,
// so that a book grows with the number of kinds and batch sizes, not with the number of runs.
#include "zeus/optimizer/batch_size/job_prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::string_view kPriorFormat = "zeus.prior/1";

Error DamagedPrior(std::string_view field) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("the prior is damaged at {}: export it again", Quote(field))};
}

Json ToJson(const PriorArm& arm) {
  return Json::array({arm.converged, arm.mean, arm.squares, arm.stopped, arm.longest_stop});
}

Result<PriorArm> PriorArmFromJson(const Json& json) {
  constexpr std::size_t kNumbers = 5;
  if (!json.is_array() || json.size() != kNumbers ||
      !std::ranges::all_of(json, [](const Json& number) { return number.is_number(); }))
    return DamagedPrior("arms");
  const PriorArm arm{.converged = json[0].get<std::int64_t>(),
                     .mean = json[1].get<double>(),
                     .squares = json[2].get<double>(),
                     .stopped = json[3].get<std::int64_t>(),
                     .longest_stop = json[4].get<int>()};
  constexpr double kMostLogEpochs = 30.0;
  if (arm.converged < 0 || arm.stopped < 0 || arm.longest_stop < 0 || !(arm.mean >= 0) ||
      arm.mean > kMostLogEpochs || !(arm.squares >= 0) || !std::isfinite(arm.squares))
    return DamagedPrior("arms");
  return arm;
}

Result<std::vector<PriorArm>> PriorArmsFromJson(const Json& json, std::size_t count) {
  ZEUS_TRY(const Json list, GetField<Json>(json, "arms"));
  if (!list.is_array() || list.size() != count) return DamagedPrior("arms");
  std::vector<PriorArm> arms;
  for (const Json& entry : list) {
    ZEUS_TRY(const PriorArm arm, PriorArmFromJson(entry));
    arms.push_back(arm);
  }
  return arms;
}

// Reads lists of numbers by GPU model.
Result<std::map<std::string, std::vector<double>>> NumbersByModel(const Json& json,
                                                                  std::string_view field,
                                                                  std::size_t count) {
  ZEUS_TRY(auto numbers, (GetField<std::map<std::string, std::vector<double>>>(json, field)));
  for (const auto& [model, list] : numbers) {
    const bool valid = list.size() == count && std::ranges::all_of(list, [](double number) {
                         return std::isfinite(number) && number >= 0;
                       });
    if (!valid) return DamagedPrior(field);
  }
  return numbers;
}

}  // namespace

Json ToJson(const JobPrior& prior) {
  Json json = {
      {"jobs", prior.jobs}, {"arms", Json::array()}, {"epoch_cost_joules", Json::object()}};
  for (const PriorArm& arm : prior.arms) json["arms"].push_back(ToJson(arm));
  for (const auto& [model, costs] : prior.epoch_costs)
    for (const Joules cost : costs) json["epoch_cost_joules"][model].push_back(cost.value());
  return json;
}

Result<JobPrior> JobPriorFromJson(const Json& json, std::size_t batch_sizes) {
  if (!json.is_object()) return DamagedPrior("prior");
  JobPrior prior;
  ZEUS_TRY(prior.jobs, GetField<std::int64_t>(json, "jobs"));
  if (prior.jobs < 0) return DamagedPrior("jobs");
  ZEUS_TRY(prior.arms, PriorArmsFromJson(json, prior.jobs > 0 ? batch_sizes : 0));
  ZEUS_TRY(const auto costs,
           NumbersByModel(json, "epoch_cost_joules", prior.jobs > 0 ? batch_sizes : 0));
  for (const auto& [model, list] : costs)
    for (const double cost : list) prior.epoch_costs[model].emplace_back(cost);
  return prior;
}

std::size_t PriorBook::AddJob(const JobKind& kind) {
  auto found = std::ranges::find(kinds_, kind, &KindRecord::kind);
  if (found == kinds_.end()) {
    KindRecord record{.kind = kind};
    record.arms.resize(kind.batch_sizes.size());
    found = kinds_.insert(kinds_.end(), std::move(record));
  }
  ++found->jobs;
  return static_cast<std::size_t>(found - kinds_.begin());
}

void PriorBook::Add(std::size_t kind, const PriorRun& run) {
  KindRecord& record = kinds_[kind];
  const auto found = std::ranges::lower_bound(record.kind.batch_sizes, run.batch_size);
  if (found == record.kind.batch_sizes.end() || *found != run.batch_size || run.epochs < 1) return;
  const auto index = static_cast<std::size_t>(found - record.kind.batch_sizes.begin());
  PriorArm& arm = record.arms[index];
  if (run.converged) {
    ++arm.converged;
    const double log_epochs = std::log(run.epochs);
    const double deviation = log_epochs - arm.mean;
    arm.mean += deviation / static_cast<double>(arm.converged);
    arm.squares += deviation * (log_epochs - arm.mean);
  } else {
    ++arm.stopped;
    arm.longest_stop = std::max(arm.longest_stop, run.epochs);
  }
  if (!run.epoch_cost || !(run.epoch_cost->value() > 0) || !std::isfinite(run.epoch_cost->value()))
    return;
  auto& costs = record.epoch_costs[std::string(run.gpu_model)];
  costs.resize(record.arms.size());
  KindRecord::Cost& cost = costs[index];
  ++cost.count;
  cost.mean += (*run.epoch_cost - cost.mean) / static_cast<double>(cost.count);
}

JobPrior PriorBook::For(const JobKind& kind) const {
  JobPrior prior;
  const auto found = std::ranges::find(kinds_, kind, &KindRecord::kind);
  const bool any =
      found != kinds_.end() && std::ranges::any_of(found->arms, [](const PriorArm& arm) {
        return arm.converged + arm.stopped > 0;
      });
  if (!any) return prior;
  prior.jobs = found->jobs;
  prior.arms = found->arms;
  for (const auto& [model, costs] : found->epoch_costs)
    for (const KindRecord::Cost& cost : costs) prior.epoch_costs[model].push_back(cost.mean);
  return prior;
}

Json PriorBook::Save() const {
  Json json = {{"format", kPriorFormat}, {"kinds", Json::array()}};
  for (const KindRecord& record : kinds_) {
    Json entry = {{"batch_sizes", record.kind.batch_sizes},
                  {"default_batch_size", record.kind.default_batch_size},
                  {"max_epochs", record.kind.max_epochs},
                  {"eta", record.kind.eta},
                  {"target_metric", record.kind.target_metric},
                  {"number_of_gpus", record.kind.number_of_gpus},
                  {"jobs", record.jobs},
                  {"arms", Json::array()},
                  {"epoch_cost_joules", Json::object()},
                  {"epoch_cost_counts", Json::object()}};
    for (const PriorArm& arm : record.arms) entry["arms"].push_back(ToJson(arm));
    for (const auto& [model, costs] : record.epoch_costs) {
      for (const KindRecord::Cost& cost : costs) {
        entry["epoch_cost_joules"][model].push_back(cost.mean.value());
        entry["epoch_cost_counts"][model].push_back(cost.count);
      }
    }
    json["kinds"].push_back(std::move(entry));
  }
  return json;
}

namespace {

Result<PriorBook::KindRecord> PriorKindFromJson(const Json& json) {
  if (!json.is_object()) return DamagedPrior("kinds");
  PriorBook::KindRecord record;
  ZEUS_TRY(record.kind.batch_sizes, GetField<std::vector<int>>(json, "batch_sizes"));
  ZEUS_TRY(record.kind.default_batch_size, GetField<int>(json, "default_batch_size"));
  ZEUS_TRY(record.kind.max_epochs, GetField<int>(json, "max_epochs"));
  ZEUS_TRY(record.kind.eta, GetField<double>(json, "eta"));
  ZEUS_TRY(record.kind.target_metric, GetField<double>(json, "target_metric"));
  ZEUS_TRY(record.kind.number_of_gpus, GetField<int>(json, "number_of_gpus"));
  ZEUS_TRY(record.jobs, GetField<std::int64_t>(json, "jobs"));
  const std::vector<int>& sizes = record.kind.batch_sizes;
  if (sizes.empty() || sizes.front() < 1 || !std::ranges::is_sorted(sizes, std::less_equal()))
    return DamagedPrior("batch_sizes");
  if (record.jobs < 1) return DamagedPrior("jobs");
  ZEUS_TRY(record.arms, PriorArmsFromJson(json, sizes.size()));
  ZEUS_TRY(const auto costs, NumbersByModel(json, "epoch_cost_joules", sizes.size()));
  ZEUS_TRY(const auto counts, NumbersByModel(json, "epoch_cost_counts", sizes.size()));
  for (const auto& [model, list] : costs) {
    const auto counted = counts.find(model);
    if (counted == counts.end()) return DamagedPrior("epoch_cost_counts");
    for (std::size_t i = 0; i < list.size(); ++i)
      record.epoch_costs[model].push_back(
          {.mean = Joules(list[i]), .count = static_cast<std::int64_t>(counted->second[i])});
  }
  return record;
}

}  // namespace

Result<PriorBook> PriorBook::Restore(const Json& json) {
  if (!json.is_object()) return DamagedPrior("format");
  ZEUS_TRY(const std::string format, GetField<std::string>(json, "format"));
  if (format != kPriorFormat)
    return Error{ErrorCode::kNotSupported,
                 fmt::format("the prior has the format {}, this program reads {}", Quote(format),
                             kPriorFormat)};
  PriorBook book;
  ZEUS_TRY(const Json kinds, GetField<Json>(json, "kinds"));
  if (!kinds.is_array()) return DamagedPrior("kinds");
  for (const Json& entry : kinds) {
    ZEUS_TRY(KindRecord record, PriorKindFromJson(entry));
    if (std::ranges::find(book.kinds_, record.kind, &KindRecord::kind) != book.kinds_.end())
      return DamagedPrior("kinds");
    book.kinds_.push_back(std::move(record));
  }
  return book;
}

}  // namespace zeus
