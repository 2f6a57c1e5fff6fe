#include "zeus/replay/replay_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

// Which rows belong to a job (paper, table 1).
struct JobKey {
  std::string_view label;
  std::string_view dataset;
  std::string_view network;
  std::string_view optimizer;
  double target;
  int max_epochs;
  int default_batch_size;
};

constexpr std::array kJobs = {
    JobKey{"deepspeech2", "librispeech", "deepspeech2", "adamw", 40.0, 16, 192},
    JobKey{"bert_qa", "squad", "bert_base_uncased", "adamw", 84.0, 6, 32},
    JobKey{"bert_sa", "sentiment140", "bert_base_uncased", "adamw", 0.84, 10, 128},
    JobKey{"resnet50", "imagenet", "resnet50", "adadelta", 0.65, 100, 256},
    JobKey{"shufflenet", "cifar100", "shufflenetv2", "adadelta", 0.6, 100, 1024},
    JobKey{"neumf", "movielens-1m", "ncf", "adam", 0.41, 100, 1024},
};

using Row = std::map<std::string, std::string, std::less<>>;  // By column.

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.emplace_back(Trim(field));
  return fields;
}

Result<std::vector<Row>> ReadCsv(const std::filesystem::path& path) {
  constexpr std::size_t kLargestTrace = std::size_t{16} * 1024 * 1024;
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kLargestTrace));
  std::istringstream stream(text);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> columns = Split(line);
  std::vector<Row> rows;
  while (std::getline(stream, line)) {
    const std::vector<std::string> fields = Split(line);
    if (fields.size() != columns.size())
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}: expected {} fields in {}", path.string(), columns.size(), Quote(line))};
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = fields[i];
  }
  return rows;
}

bool Matches(const JobKey& key, const Row& row) {
  return row.at("dataset") == key.dataset && row.at("network") == key.network &&
         row.at("optimizer") == key.optimizer;
}

using RunsByBatchSize = std::map<int, std::vector<std::optional<int>>>;

Result<RunsByBatchSize> RunsOf(const JobKey& key, const std::vector<Row>& rows) {
  RunsByBatchSize runs;
  for (const Row& row : rows) {
    if (!Matches(key, row)) continue;
    ZEUS_TRY(const double target, ParseDouble(row.at("target_metric")));
    if (std::abs(target - key.target) > 1e-9) continue;
    ZEUS_TRY(const std::int64_t batch_size, ParseInteger(row.at("batch_size")));
    std::optional<int> epochs;
    if (row.at("target_epoch") != "nan") {
      ZEUS_TRY(const double number, ParseDouble(row.at("target_epoch")));
      epochs = static_cast<int>(number);
    }
    runs[static_cast<int>(batch_size)].push_back(epochs);
  }
  return runs;
}

using LimitsByBatchSize = std::map<int, std::vector<LimitRecord>>;

Result<LimitsByBatchSize> LimitsOf(const JobKey& key, const std::vector<Row>& rows) {
  LimitsByBatchSize limits;
  for (const Row& row : rows) {
    if (!Matches(key, row)) continue;
    ZEUS_TRY(const std::int64_t batch_size, ParseInteger(row.at("batch_size")));
    ZEUS_TRY(const double limit, ParseDouble(row.at("power_limit")));
    ZEUS_TRY(const double time, ParseDouble(row.at("time_per_epoch")));
    ZEUS_TRY(const double power, ParseDouble(row.at("average_power")));
    limits[static_cast<int>(batch_size)].push_back(
        {.limit = Watts(limit),
         .power = Watts(power),
         .epoch = {.time = Seconds(time), .energy = Watts(power) * Seconds(time)}});
  }
  for (auto& [batch_size, records] : limits) std::ranges::sort(records, {}, &LimitRecord::limit);
  return limits;
}

ReplayArm MakeArm(int batch_size, std::vector<LimitRecord> records, double eta, Watts max_power) {
  ReplayArm arm{.batch_size = batch_size, .limits = std::move(records)};
  for (LimitRecord& record : arm.limits) {
    Usage& epoch = record.epoch;
    epoch.cost = eta * epoch.energy + (1 - eta) * (max_power * epoch.time);
    arm.profiling_epoch += (1.0 / static_cast<double>(arm.limits.size())) * epoch;
    if (arm.best_limit == Watts(0) || epoch.cost < arm.epoch.cost) {
      arm.best_limit = record.limit;
      arm.epoch = epoch;
    }
  }
  arm.full_power_epoch = arm.limits.back().epoch;
  return arm;
}

}  // namespace

std::optional<double> ReplayArm::MeanEpochs(int max_epochs) const {
  double sum = 0.0;
  for (const std::optional<int>& epochs : epochs_to_target) {
    if (!epochs || *epochs > max_epochs) return std::nullopt;
    sum += *epochs;
  }
  return sum / static_cast<double>(epochs_to_target.size());
}

const ReplayArm& ReplayJob::arm(int batch_size) const {
  return *std::ranges::find(arms, batch_size, &ReplayArm::batch_size);
}

const ReplayArm& ReplayJob::oracle() const {
  return *std::ranges::min_element(arms, {}, [this](const ReplayArm& arm) {
    const auto epochs = arm.MeanEpochs(max_epochs);
    return epochs ? *epochs * arm.epoch.cost.value() : HUGE_VAL;
  });
}

Joules ReplayJob::OracleCost() const {
  return *oracle().MeanEpochs(max_epochs) * oracle().epoch.cost;
}

Usage ReplayJob::DefaultUsage() const {
  const ReplayArm& usual = arm(default_batch_size);
  return usual.MeanEpochs(max_epochs).value_or(max_epochs) * usual.full_power_epoch;
}

int ReplayJob::recurrences() const {
  return 2 * static_cast<int>(arms.size()) * static_cast<int>(arms.front().limits.size());
}

PolicySpec ReplayJob::Spec(std::string_view policy, std::uint64_t seed) const {
  PolicySpec spec{.name = std::string(policy),
                  .default_batch_size = default_batch_size,
                  .max_epochs = max_epochs,
                  .seed = seed};
  for (const ReplayArm& arm : arms) spec.batch_sizes.push_back(arm.batch_size);
  return spec;
}

Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta) {
  ZEUS_TRY(const std::vector<Row> training, ReadCsv(directory / "summary_train.csv"));
  ZEUS_TRY(const std::vector<Row> power,
           ReadCsv(directory / fmt::format("summary_power_{}.csv", gpu_model)));
  std::vector<ReplayJob> jobs;
  for (const JobKey& key : kJobs) {
    ZEUS_TRY(const RunsByBatchSize runs, RunsOf(key, training));
    ZEUS_TRY(const LimitsByBatchSize limits, LimitsOf(key, power));
    if (limits.empty())
      return Error{ErrorCode::kNotFound, fmt::format("no power trace of {}", key.label)};
    ReplayJob& job = jobs.emplace_back(ReplayJob{.gpu_model = std::string(gpu_model),
                                                 .label = std::string(key.label),
                                                 .max_epochs = key.max_epochs,
                                                 .eta = eta});
    for (const auto& [batch_size, records] : limits)
      job.max_power = std::max(job.max_power, records.back().limit);
    for (const auto& [batch_size, records] : limits) {
      // No memory for the usual default: the largest that fits.
      if (batch_size <= key.default_batch_size) job.default_batch_size = batch_size;
      const auto recorded = runs.find(batch_size);
      if (recorded == runs.end()) continue;
      job.arms.push_back(MakeArm(batch_size, records, eta, job.max_power));
      job.arms.back().epochs_to_target = recorded->second;
    }
  }
  return jobs;
}

}  // namespace zeus::replay
