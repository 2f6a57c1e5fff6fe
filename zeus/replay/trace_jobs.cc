#include "zeus/replay/trace_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/replay/workloads.h"

namespace zeus::replay {
namespace {

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

bool Matches(const WorkloadKey& key, const Row& row) {
  return row.at("dataset") == key.dataset && row.at("network") == key.network &&
         row.at("optimizer") == key.optimizer;
}

using RunsByBatchSize = std::map<int, std::vector<std::optional<int>>>;

Result<RunsByBatchSize> RunsOf(const WorkloadKey& key, const std::vector<Row>& rows) {
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

Result<LimitsByBatchSize> LimitsOf(const WorkloadKey& key, const std::vector<Row>& rows) {
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

}  // namespace

Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta) {
  ZEUS_TRY(const std::vector<Row> training, ReadCsv(directory / "summary_train.csv"));
  ZEUS_TRY(const std::vector<Row> power,
           ReadCsv(directory / fmt::format("summary_power_{}.csv", gpu_model)));
  std::vector<ReplayJob> jobs;
  for (const WorkloadKey& key : PaperWorkloads()) {
    ZEUS_TRY(const RunsByBatchSize runs, RunsOf(key, training));
    ZEUS_TRY(const LimitsByBatchSize limits, LimitsOf(key, power));
    if (limits.empty())
      return Error{ErrorCode::kNotFound, fmt::format("no power trace of {}", key.label)};
    ReplayJob& job = jobs.emplace_back(ReplayJob{.gpu_model = std::string(gpu_model),
                                                 .label = std::string(key.label),
                                                 .title = std::string(key.title),
                                                 .max_epochs = key.max_epochs,
                                                 .eta = eta});
    for (const auto& [batch_size, records] : limits)
      job.max_power = std::max(job.max_power, records.back().limit);
    for (const auto& [batch_size, records] : limits) {
      // No memory for the usual default: the largest that fits.
      if (batch_size <= key.default_batch_size) job.default_batch_size = batch_size;
      const auto recorded = runs.find(batch_size);
      if (recorded == runs.end()) continue;
      job.arms.push_back(MakeArm(batch_size, recorded->second, records, eta, job.max_power));
    }
  }
  return jobs;
}

}  // namespace zeus::replay
