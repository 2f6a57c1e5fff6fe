#include "zeus/device/sim/testing/trace_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/testing/places.h"
#include "zeus/base/text.h"

namespace zeus::sim::testing {
namespace {

// Which rows of the traces belong to a workload (paper, table 1).
struct TraceKey {
  std::string_view workload;
  std::string_view dataset;
  std::string_view optimizer;
  double target;
};

constexpr std::array kKeys = {
    TraceKey{"deepspeech2", "librispeech", "adamw", 40.0},
    TraceKey{"bert_qa", "squad", "adamw", 84.0},
    TraceKey{"bert_sa", "sentiment140", "adamw", 0.84},
    TraceKey{"resnet50", "imagenet", "adadelta", 0.65},
    TraceKey{"shufflenet", "cifar100", "adadelta", 0.6},
    TraceKey{"neumf", "movielens-1m", "adam", 0.41},
};
constexpr std::array<std::string_view, 4> kRecordedModels = {"V100", "A40", "RTX6000", "P100"};
constexpr double kEta = 0.5;

using Row = std::map<std::string, std::string>;  // One list of values per column.

Result<std::vector<Row>> ReadCsv(const std::filesystem::path& path) {
  constexpr std::size_t kLargestTrace = std::size_t{16} * 1024 * 1024;
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kLargestTrace));
  CsvText csv(text);
  std::vector<std::string> columns;
  std::vector<Row> rows;
  for (;;) {
    ZEUS_TRY(const bool found, csv.Next());
    if (!found) return rows;
    if (columns.empty()) {
      columns.assign(csv.fields().begin(), csv.fields().end());
      continue;
    }
    if (csv.fields().size() != columns.size())
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}:{}: expected {} fields", path.string(), csv.line(), columns.size())};
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = csv.fields()[i];
  }
}

const TraceKey* FindTraceKey(const Row& row) {
  const auto* const key = std::ranges::find_if(kKeys, [&](const TraceKey& candidate) {
    return candidate.dataset == row.at("dataset") && candidate.optimizer == row.at("optimizer");
  });
  return key == kKeys.end() ? nullptr : key;
}

Result<PowerRecord> ParsePowerRecord(const GpuModel& model, const TraceKey& key, const Row& row) {
  ZEUS_TRY(const Workload* const workload, FindWorkload(key.workload));
  ZEUS_TRY(const std::uint64_t batch_size, ParseUnsigned(row.at("batch_size")));
  ZEUS_TRY(const double limit, ParseDouble(row.at("power_limit")));
  ZEUS_TRY(const double time, ParseDouble(row.at("time_per_epoch")));
  ZEUS_TRY(const double power, ParseDouble(row.at("average_power")));
  return PowerRecord{.model = &model,
                     .workload = workload,
                     .batch_size = static_cast<unsigned>(batch_size),
                     .power_limit = Watts(limit),
                     .time_per_epoch = Seconds(time),
                     .average_power = Watts(power)};
}

Status ReadPowerTrace(const std::filesystem::path& directory, std::string_view id, Traces& traces) {
  ZEUS_TRY(const GpuModel* const model, FindGpuModel(id));
  const std::string file = LowerCase(fmt::format("summary_power_{}.csv", id));
  ZEUS_TRY(const std::vector<Row> rows, ReadCsv(directory / file));
  for (const Row& row : rows) {
    const TraceKey* const key = FindTraceKey(row);
    if (key == nullptr) continue;
    ZEUS_TRY(PowerRecord record, ParsePowerRecord(*model, *key, row));
    traces.power.push_back(record);
  }
  return Ok();
}

Status ReadTrainingTrace(const std::filesystem::path& directory, Traces& traces) {
  ZEUS_TRY(const std::vector<Row> rows, ReadCsv(directory / "summary_train.csv"));
  for (const Row& row : rows) {
    const TraceKey* const key = FindTraceKey(row);
    if (key == nullptr) continue;
    ZEUS_TRY(const double target, ParseDouble(row.at("target_metric")));
    if (std::abs(target - key->target) > 1e-9) continue;
    ZEUS_TRY(const std::uint64_t batch_size, ParseUnsigned(row.at("batch_size")));
    double epochs = std::numeric_limits<double>::quiet_NaN();
    if (row.at("target_epoch") != "nan") {
      ZEUS_TRY(epochs, ParseDouble(row.at("target_epoch")));
    }
    traces.epochs[key->workload][static_cast<unsigned>(batch_size)].push_back(epochs);
  }
  for (auto& [workload, runs] : traces.epochs)
    std::erase_if(runs, [](const auto& entry) {
      return std::ranges::any_of(entry.second, [](double epochs) { return std::isnan(epochs); });
    });
  return Ok();
}

double EpochCost(const GpuModel& model, Seconds time, Watts power) {
  const Watts weighted = kEta * power + (1.0 - kEta) * model.limit_range.max;
  return (weighted * time).value();
}

// The cheapest choice so far, as the catalogue sees it and as the trace has it.
struct Choice {
  double predicted_cost = std::numeric_limits<double>::infinity();
  double recorded_cost_of_predicted = 0.0;
  double cheapest_recorded_cost = std::numeric_limits<double>::infinity();
};

void Consider(const PowerRecord& record, const OperatingPoint& predicted,
              const RecordedEpochs& recorded_epochs, Choice& choice) {
  const auto runs = recorded_epochs.find(record.batch_size);
  const auto epochs = MeanEpochsToTarget(*record.workload, record.batch_size);
  if (runs == recorded_epochs.end() || !epochs) return;
  const double recorded =
      Mean(runs->second) * EpochCost(*record.model, record.time_per_epoch, record.average_power);
  const double cost =
      *epochs * EpochCost(*record.model, predicted.time_per_epoch, predicted.average_power);
  choice.cheapest_recorded_cost = std::min(choice.cheapest_recorded_cost, recorded);
  if (cost >= choice.predicted_cost) return;
  choice.predicted_cost = cost;
  choice.recorded_cost_of_predicted = recorded;
}

}  // namespace

std::filesystem::path DefaultTraceDirectory() {
  return zeus::testing::RecordedData("ZEUS_TRACE_DIR", "nsdi23");
}

Result<Traces> ReadTraces(const std::filesystem::path& directory) {
  Traces traces;
  for (const std::string_view id : kRecordedModels)
    ZEUS_RETURN_IF_ERROR(ReadPowerTrace(directory, id, traces));
  ZEUS_RETURN_IF_ERROR(ReadTrainingTrace(directory, traces));
  return traces;
}

Result<std::map<std::string_view, Accuracy>> Measure(const Traces& traces) {
  std::map<std::string_view, Accuracy> accuracies;
  std::map<std::pair<std::string_view, std::string_view>, Choice> choices;
  for (const PowerRecord& record : traces.power) {
    ZEUS_TRY(const OperatingPoint predicted,
             Predict(*record.model, *record.workload, record.batch_size,
                     {.power_limit = record.power_limit, .clock_cap = std::nullopt}));
    Accuracy& accuracy = accuracies[record.model->id];
    accuracy.time_errors.push_back(
        std::abs(predicted.time_per_epoch / record.time_per_epoch - 1.0));
    accuracy.power_errors.push_back(std::abs(predicted.average_power / record.average_power - 1.0));
    const auto epochs = traces.epochs.find(record.workload->name);
    if (epochs != traces.epochs.end())
      Consider(record, predicted, epochs->second,
               choices[{record.model->id, record.workload->name}]);
  }
  for (const auto& [key, choice] : choices)
    accuracies[key.first].choice_losses.push_back(
        choice.recorded_cost_of_predicted / choice.cheapest_recorded_cost - 1.0);
  return accuracies;
}

Accuracy Pool(const std::map<std::string_view, Accuracy>& accuracies) {
  Accuracy pooled;
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& [id, accuracy] : accuracies) {
    append(pooled.time_errors, accuracy.time_errors);
    append(pooled.power_errors, accuracy.power_errors);
    append(pooled.choice_losses, accuracy.choice_losses);
  }
  return pooled;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

}  // namespace zeus::sim::testing
