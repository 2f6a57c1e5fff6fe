#include "zeus/replay/trace_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/replay/input/csv_reader.h"
#include "zeus/replay/workloads.h"

// A job is joined from two traces: one lists for each training run the epoch in which it reached
// the target, the other one time and power for each batch size and power limit. Any run can be
// combined with any limit, because the power limit changes how long an epoch takes, not how many
// are needed.

namespace zeus::replay {
namespace {

namespace fs = std::filesystem;

constexpr int kLargestBatchSize = 1 << 30;
constexpr double kMostEpochs = 1e9;

// Bounds beyond what any GPU does that keep sums from overflowing.
struct Bounds {
  double least;
  double greatest;
};
constexpr Bounds kWattBounds{1e-3, 1e6};
constexpr Bounds kSecondBounds{1e-6, 1e9};

// The rows of one workload, by batch size.
struct Recorded {
  std::map<int, std::vector<std::optional<int>>> runs{};
  std::map<int, std::vector<LimitRecord>> limits{};
};
using RecordedByWorkload = std::vector<Recorded>;  // In the order of PaperWorkloads().

// The columns that identify the job of a row; both files begin with them.
enum KeyColumn : std::size_t { kDataset, kNetwork, kOptimizer, kBatchSize, kFirstOther };

// Finds the file or a compressed version of it.
Result<fs::path> FindTrace(const fs::path& directory, const std::string& name) {
  for (const char* const packed : {"", ".xz", ".gz", ".zst"}) {
    fs::path path = directory / (name + packed);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no {} (nor .xz, .gz or .zst of it) in {}", Printable(name),
                           Printable(directory.string()))};
}

// `target` tells apart workloads that share all else; only the file of training runs has it.
std::optional<std::size_t> FindRecordedWorkload(const CsvReader& row,
                                                std::optional<double> target) {
  const auto workloads = PaperWorkloads();
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const WorkloadKey& key = workloads[i];
    if (row.Text(kDataset) == key.dataset && row.Text(kNetwork) == key.network &&
        row.Text(kOptimizer) == key.optimizer && (!target || std::abs(*target - key.target) < 1e-9))
      return i;
  }
  return std::nullopt;
}

std::optional<int> ReadBatchSize(CsvReader& row) {
  const auto batch_size = row.Integer(kBatchSize);
  if (!batch_size) return std::nullopt;
  if (*batch_size >= 1 && *batch_size <= kLargestBatchSize) return static_cast<int>(*batch_size);
  row.Report("batch_size is not positive", row.Text(kBatchSize));
  return std::nullopt;
}

std::optional<double> PositiveNumber(CsvReader& row, std::size_t column, std::string_view name) {
  const auto number = row.Number(column);
  if (!number || *number > 0) return number;
  row.Report(fmt::format("{} is not positive", name), row.Text(column));
  return std::nullopt;
}

std::optional<double> NumberWithin(CsvReader& row, std::size_t column, std::string_view name,
                                   const Bounds& bounds) {
  const auto number = PositiveNumber(row, column, name);
  if (!number || (*number >= bounds.least && *number <= bounds.greatest)) return number;
  row.Report(fmt::format("{} is not between {:g} and {:g}", name, bounds.least, bounds.greatest),
             row.Text(column));
  return std::nullopt;
}

void AddRun(CsvReader& row, RecordedByWorkload& recorded) {
  constexpr std::size_t kTarget = kFirstOther, kEpochs = kFirstOther + 1;
  const auto target = row.Number(kTarget);
  if (!target) return;
  const auto workload = FindRecordedWorkload(row, target);
  if (!workload) return;
  const auto batch_size = ReadBatchSize(row);
  if (!batch_size) return;
  std::optional<int> epochs;
  // The field of a run that never reached the target is empty or NaN.
  if (const std::string_view text = row.Text(kEpochs); !text.empty() && LowerCase(text) != "nan") {
    const auto number = PositiveNumber(row, kEpochs, "target_epoch");
    if (!number) return;
    if (*number != std::floor(*number) || *number > kMostEpochs)
      return row.Report("target_epoch is no whole number of epochs", text);
    epochs = static_cast<int>(*number);
  }
  recorded[*workload].runs[*batch_size].push_back(epochs);
}

void AddLimit(CsvReader& row, RecordedByWorkload& recorded) {
  constexpr std::size_t kLimit = kFirstOther, kTime = kFirstOther + 1, kPower = kFirstOther + 2;
  const auto workload = FindRecordedWorkload(row, std::nullopt);
  if (!workload) return;
  const auto batch_size = ReadBatchSize(row);
  if (!batch_size) return;
  const auto limit = NumberWithin(row, kLimit, "power_limit", kWattBounds);
  if (!limit) return;
  const auto time = NumberWithin(row, kTime, "time_per_epoch", kSecondBounds);
  if (!time) return;
  const auto power = NumberWithin(row, kPower, "average_power", kWattBounds);
  if (!power) return;
  std::vector<LimitRecord>& limits = recorded[*workload].limits[*batch_size];
  if (std::ranges::find(limits, Watts(*limit), &LimitRecord::limit) != limits.end())
    return row.Report("there is an earlier row of this batch size and power limit");
  limits.push_back({.limit = Watts(*limit),
                    .power = Watts(*power),
                    .epoch = {.time = Seconds(*time), .energy = Watts(*power) * Seconds(*time)}});
}

// Calls `add` with each row of a trace.
Status ReadTrace(const fs::path& path, std::vector<std::string> other_columns,
                 void (*add)(CsvReader& row, RecordedByWorkload& recorded),
                 RecordedByWorkload& recorded, RowProblems& problems) {
  CsvColumns columns{.required = {"dataset", "network", "optimizer", "batch_size"}};
  std::ranges::move(other_columns, std::back_inserter(columns.required));
  RowProblems file_problems;
  ZEUS_TRY(CsvReader reader, CsvReader::Open(path, columns, file_problems));
  while (true) {
    ZEUS_TRY(const bool row, reader.Next());
    if (!row) break;
    add(reader, recorded);
  }
  problems.AddFile(path.string(), file_problems);
  return Ok();
}

// Returns sentences about batch sizes that only one of the files has.
std::vector<std::string> RemarksOn(const ReplayJob& job, const Recorded& recorded) {
  std::vector<int> unpowered, untrained;
  for (const auto& [batch_size, runs] : recorded.runs)
    if (!recorded.limits.contains(batch_size)) unpowered.push_back(batch_size);
  for (const auto& [batch_size, limits] : recorded.limits)
    if (!recorded.runs.contains(batch_size)) untrained.push_back(batch_size);
  std::vector<std::string> remarks;
  if (!unpowered.empty())
    remarks.push_back(fmt::format("{}: batch sizes without power rows are left out: {}", job.name(),
                                  fmt::join(unpowered, ", ")));
  if (!untrained.empty())
    remarks.push_back(fmt::format("{}: batch sizes without training rows are left out: {}",
                                  job.name(), fmt::join(untrained, ", ")));
  return remarks;
}

std::optional<ReplayJob> MakeJob(std::string_view gpu_model, const WorkloadKey& key,
                                 const Recorded& recorded, double eta) {
  ReplayJob job{.gpu_model = std::string(gpu_model),
                .label = std::string(key.label),
                .title = std::string(key.title),
                .max_epochs = key.max_epochs,
                .eta = eta};
  for (const auto& [batch_size, limits] : recorded.limits)
    job.max_power =
        std::max(job.max_power, std::ranges::max(limits, {}, &LimitRecord::limit).limit);
  for (const auto& [batch_size, limits] : recorded.limits) {
    const auto runs = recorded.runs.find(batch_size);
    if (runs == recorded.runs.end()) continue;
    std::vector<LimitRecord> ascending = limits;
    std::ranges::sort(ascending, {}, &LimitRecord::limit);
    job.arms.push_back(MakeArm(batch_size, runs->second, std::move(ascending), eta, job.max_power));
    // If the usual default was not recorded, for lack of memory, the largest smaller one stands in.
    if (job.default_batch_size == 0 || batch_size <= key.default_batch_size)
      job.default_batch_size = batch_size;
  }
  if (job.arms.empty()) return std::nullopt;
  job.remarks = RemarksOn(job, recorded);
  for (std::string& remark : RemarksOnDefault(job, key.default_batch_size))
    job.remarks.push_back(std::move(remark));
  return job;
}

}  // namespace

Result<std::vector<ReplayJob>> ReadReplayJobs(const fs::path& directory, std::string_view gpu_model,
                                              double eta, RowProblems& problems) {
  const std::string model = LowerCase(gpu_model);
  ZEUS_TRY(const fs::path training, FindTrace(directory, "summary_train.csv"));
  ZEUS_TRY(const fs::path power, FindTrace(directory, fmt::format("summary_power_{}.csv", model)));
  RecordedByWorkload recorded(PaperWorkloads().size());
  ZEUS_RETURN_IF_ERROR(
      ReadTrace(training, {"target_metric", "target_epoch"}, AddRun, recorded, problems));
  ZEUS_RETURN_IF_ERROR(ReadTrace(power, {"power_limit", "time_per_epoch", "average_power"},
                                 AddLimit, recorded, problems));
  std::vector<ReplayJob> jobs;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (auto job = MakeJob(model, PaperWorkloads()[i], recorded[i], eta))
      jobs.push_back(*std::move(job));
  }
  if (jobs.empty())
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} and {} have no batch size of any workload in common",
                             Printable(training.string()), Printable(power.string()))};
  return jobs;
}

Result<std::vector<ReplayJob>> ReadReplayJobs(const fs::path& directory, std::string_view gpu_model,
                                              double eta) {
  RowProblems problems;
  ZEUS_TRY(std::vector<ReplayJob> jobs, ReadReplayJobs(directory, gpu_model, eta, problems));
  ZEUS_RETURN_IF_ERROR(problems.Refuse());
  return jobs;
}

}  // namespace zeus::replay
