#include "zeus/replay/replay_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/workload.h"
#include "zeus/job/job_policy.h"
#include "zeus/replay/input/csv_reader.h"

// The oracle is the batch size with the least expected cost, mean epochs times the cost of an epoch
// at its best limit, among those that always reach the target: one that sometimes fails has no
// mean. It knows the costs beforehand and explores nothing, so its cost is the unit in which regret
// is counted.

namespace zeus::replay {

std::optional<EpochSpread> ReplayArm::SpreadOfEpochs(int max_epochs) const {
  std::vector<double> values;
  for (const std::optional<int>& epochs : epochs_to_target) {
    if (!epochs || *epochs > max_epochs) return std::nullopt;
    values.push_back(*epochs);
  }
  if (values.empty()) return std::nullopt;
  const SampleSummary summary = Summarize(values);
  return EpochSpread{.mean = summary.mean, .standard_deviation = summary.StandardDeviation()};
}

std::optional<double> ReplayArm::MeanEpochs(int max_epochs) const {
  const auto spread = SpreadOfEpochs(max_epochs);
  if (!spread) return std::nullopt;
  return spread->mean;
}

std::size_t ReplayArm::RunsThatArrive(int max_epochs) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      epochs_to_target,
      [max_epochs](const std::optional<int>& epochs) { return epochs && *epochs <= max_epochs; }));
}

double ReplayArm::ExpectedEpochs(int max_epochs) const {
  if (const auto mean = MeanEpochs(max_epochs)) return *mean;
  const std::size_t arriving = RunsThatArrive(max_epochs);
  if (arriving == 0) return max_epochs;
  double sum = 0;
  for (const std::optional<int>& epochs : epochs_to_target)
    sum += epochs ? std::min(*epochs, max_epochs) : max_epochs;
  const auto runs = static_cast<double>(epochs_to_target.size());
  const double failure = 1 - static_cast<double>(arriving) / runs;
  const double tries = (1 - std::pow(failure, kMostAttempts)) / (1 - failure);
  return tries * sum / runs;
}

ReplayArm MakeArm(int batch_size, std::vector<std::optional<int>> epochs_to_target,
                  std::vector<LimitRecord> limits, double eta, Watts max_power) {
  ReplayArm arm{.batch_size = batch_size,
                .epochs_to_target = std::move(epochs_to_target),
                .limits = std::move(limits)};
  for (std::size_t i = 0; i < arm.limits.size(); ++i) {
    Usage& epoch = arm.limits[i].epoch;
    epoch.cost = eta * epoch.energy + (1 - eta) * (max_power * epoch.time);
    arm.profiling_epoch += (1.0 / static_cast<double>(arm.limits.size())) * epoch;
    if (epoch.cost < arm.limits[arm.best_limit_index].epoch.cost) arm.best_limit_index = i;
  }
  arm.best_limit = arm.limits[arm.best_limit_index].limit;
  arm.epoch = arm.limits[arm.best_limit_index].epoch;
  arm.full_power_epoch = arm.limits.back().epoch;
  return arm;
}

std::size_t ReplayJob::FindArmIndex(int batch_size) const {
  return static_cast<std::size_t>(
      std::ranges::lower_bound(arms, batch_size, {}, &ReplayArm::batch_size) - arms.begin());
}

bool ReplayJob::HasOracle() const {
  return std::ranges::any_of(
      arms, [this](const ReplayArm& arm) { return arm.MeanEpochs(max_epochs).has_value(); });
}

const ReplayArm& ReplayJob::oracle() const {
  const ReplayArm* best = &arm(default_batch_size);
  double least = std::numeric_limits<double>::infinity();
  for (const ReplayArm& arm : arms) {
    const auto epochs = arm.MeanEpochs(max_epochs);
    if (!epochs || *epochs * arm.epoch.cost.value() >= least) continue;
    least = *epochs * arm.epoch.cost.value();
    best = &arm;
  }
  return *best;
}

Usage ReplayJob::OracleUsage() const {
  const ReplayArm& best = oracle();
  return best.MeanEpochs(max_epochs).value_or(max_epochs) * best.epoch;
}

Usage ReplayJob::DefaultUsage() const {
  const ReplayArm& usual = arm(default_batch_size);
  return usual.ExpectedEpochs(max_epochs) * usual.full_power_epoch;
}

int ReplayJob::power_limits() const {
  std::size_t most = 0;
  for (const ReplayArm& arm : arms) most = std::max(most, arm.limits.size());
  return static_cast<int>(most);
}

int ReplayJob::recurrences() const { return 2 * static_cast<int>(arms.size()) * power_limits(); }

PolicySpec ReplayJob::Spec(std::string_view policy, std::uint64_t seed) const {
  PolicySpec spec{.name = std::string(policy),
                  .default_batch_size = default_batch_size,
                  .max_epochs = max_epochs,
                  .seed = seed};
  for (const ReplayArm& arm : arms) spec.batch_sizes.push_back(arm.batch_size);
  return spec;
}

std::vector<std::string> RemarksOnDefault(const ReplayJob& job, int usual_default) {
  std::vector<std::string> remarks;
  const ReplayArm& arm = job.arm(job.default_batch_size);
  if (job.default_batch_size != usual_default)
    remarks.push_back(fmt::format(
        "{}: batch size {} stands in for the default, {}, of which not all rows are there",
        job.name(), job.default_batch_size, usual_default));
  if (const Watts limit = arm.limits.back().limit; limit < job.max_power)
    remarks.push_back(fmt::format(
        "{}: the default batch size, {}, was not recorded at {:g} W: the default is that at {:g} W",
        job.name(), arm.batch_size, job.max_power.value(), limit.value()));
  const std::size_t arriving = arm.RunsThatArrive(job.max_epochs);
  if (arriving == arm.epochs_to_target.size()) return remarks;
  remarks.push_back(fmt::format(
      "{}: the default batch size, {}, reaches the target in {} of {} recorded runs: what the "
      "default takes {}",
      job.name(), arm.batch_size, arriving, arm.epochs_to_target.size(),
      arriving > 0 ? "counts the tries that fail"
                   : fmt::format("is {} epochs without the target", job.max_epochs)));
  return remarks;
}

namespace {

constexpr std::array kWorkloads = {
    WorkloadKey{"deepspeech2", "DeepSpeech2", "librispeech", "deepspeech2", "adamw", 40.0, 16, 192},
    WorkloadKey{"bert_qa", "BERT (QA)", "squad", "bert_base_uncased", "adamw", 84.0, 6, 32},
    WorkloadKey{"bert_sa", "BERT (SA)", "sentiment140", "bert_base_uncased", "adamw", 0.84, 10,
                128},
    WorkloadKey{"resnet50", "ResNet-50", "imagenet", "resnet50", "adadelta", 0.65, 100, 256},
    WorkloadKey{"shufflenet", "ShuffleNet V2", "cifar100", "shufflenetv2", "adadelta", 0.6, 100,
                1024},
    WorkloadKey{"neumf", "NeuMF", "movielens-1m", "ncf", "adam", 0.41, 100, 1024},
};

}  // namespace

std::span<const WorkloadKey> PaperWorkloads() { return kWorkloads; }

Result<const WorkloadKey*> FindWorkload(std::string_view label) {
  const auto* const found = std::ranges::find(kWorkloads, label, &WorkloadKey::label);
  if (found != kWorkloads.end()) return found;
  std::vector<std::string_view> known;
  for (const WorkloadKey& workload : kWorkloads) known.push_back(workload.label);
  return Error{ErrorCode::kInvalidArgument, fmt::format("workload is {}: it must be one of {}",
                                                        Quote(label), fmt::join(known, ", "))};
}

// A job is joined from two traces: one lists for each training run the epoch in which it reached
// the target, the other one time and power for each batch size and power limit. Any run can be
// combined with any limit, because the power limit changes how long an epoch takes, not how many
// are needed.

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

namespace {

constexpr int kRunsPerBatchSize = 16;
constexpr Watts kLimitStep(25.0);
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The largest batch size of each workload, in the order of PaperWorkloads(), that ran on a board
// with at least this much memory.
struct MemoryStep {
  std::uint64_t bytes;
  std::array<unsigned, 6> largest_batch_sizes;
};
constexpr std::array kMemorySteps = {
    MemoryStep{16 * kGiB, {72, 24, 64, 128, 2048, 16384}},
    MemoryStep{24 * kGiB, {128, 32, 128, 256, 4096, 16384}},
    MemoryStep{32 * kGiB, {192, 56, 128, 360, 4096, 16384}},
    MemoryStep{48 * kGiB, {192, 72, 256, 512, 8192, 32768}},
};

unsigned LargestBatchSize(const sim::GpuModel& model, std::size_t workload) {
  unsigned largest = kMemorySteps.front().largest_batch_sizes[workload];
  for (const MemoryStep& step : kMemorySteps)
    if (step.bytes <= model.memory_bytes) largest = step.largest_batch_sizes[workload];
  return largest;
}

std::vector<std::optional<int>> DrawRuns(const sim::Workload& workload, unsigned batch_size) {
  Random random = Random(0).Fork(fmt::format("{} {}", workload.name, batch_size));
  std::vector<std::optional<int>> runs;
  for (int i = 0; i < kRunsPerBatchSize; ++i) {
    const auto epochs = sim::DrawEpochsToTarget(workload, batch_size, random);
    runs.push_back(epochs ? std::optional(static_cast<int>(*epochs)) : std::nullopt);
  }
  return runs;
}

Result<std::vector<LimitRecord>> PredictLimits(const sim::GpuModel& model,
                                               const sim::Workload& workload, unsigned batch_size) {
  std::vector<LimitRecord> records;
  for (const Watts limit : CatalogueLimits(model)) {
    ZEUS_TRY(const sim::OperatingPoint point,
             sim::Predict(model, workload, batch_size, {.power_limit = limit, .clock_cap = {}}));
    records.push_back({.limit = limit,
                       .power = point.average_power,
                       .epoch = {.time = point.time_per_epoch,
                                 .energy = point.average_power * point.time_per_epoch}});
  }
  return records;
}

Result<ReplayJob> MakeJob(const sim::GpuModel& model, const WorkloadKey& key, unsigned largest,
                          double eta) {
  ZEUS_TRY(const sim::Workload* const workload, sim::FindWorkload(key.label));
  ReplayJob job{.gpu_model = LowerCase(model.id),
                .label = std::string(key.label),
                .title = std::string(key.title),
                .max_epochs = key.max_epochs,
                .eta = eta,
                .max_power = model.limit_range.max};
  for (const unsigned batch_size : workload->batch_sizes) {
    if (batch_size > largest) break;
    ZEUS_TRY(std::vector<LimitRecord> limits, PredictLimits(model, *workload, batch_size));
    const int size = static_cast<int>(batch_size);
    if (size <= key.default_batch_size) job.default_batch_size = size;
    job.arms.push_back(
        MakeArm(size, DrawRuns(*workload, batch_size), std::move(limits), eta, job.max_power));
  }
  return job;
}

}  // namespace

std::vector<Watts> CatalogueLimits(const sim::GpuModel& model) {
  std::vector<Watts> limits;
  for (Watts limit = model.limit_range.min; limit < model.limit_range.max; limit += kLimitStep)
    limits.push_back(limit);
  limits.push_back(model.limit_range.max);
  return limits;
}

Result<std::vector<ReplayJob>> CatalogueJobs(std::string_view gpu_model, double eta) {
  ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel(gpu_model));
  std::vector<ReplayJob> jobs;
  for (std::size_t i = 0; i < PaperWorkloads().size(); ++i) {
    ZEUS_TRY(ReplayJob job, MakeJob(*model, PaperWorkloads()[i], LargestBatchSize(*model, i), eta));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace zeus::replay
