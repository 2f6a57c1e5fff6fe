// A recurring job whose data drift (Zeus §6.4). Every slice of the data is really trained with
// every batch size; then policies with and without a window run through the slices in order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output_file.h"
#include "examples/drift/drift_study.h"
#include "examples/drift/drifting_data.h"
#include "examples/drift/torch_classifier.h"
#include "examples/training/blas_threads.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"
#include "zeus/report/report.h"

namespace zeus::examples {
namespace {

struct Options {
  Drift drift{};
  std::vector<int> batch_sizes{8, 16, 32, 64, 128};
  int default_batch_size = 32;
  double learning_rate = 0.5;
  double target = 0.9;
  int repetitions = 3;
  int policy_seeds = 20;
  int window = 10;
  int max_epochs = 60;
  std::size_t training_samples = 1024;
  std::string svg;
  std::string table;
};

struct Course {
  std::string name;
  std::vector<double> costs;  // Per slice, mean over the seeds.
  std::vector<double> sizes;  // Per slice, geometric mean over the seeds.
};

constexpr std::size_t kValidationSamples = 2048;
constexpr double kEta = 0.5;
constexpr double kMega = 1e6;
constexpr const char* kWorkload = "bert_sa";  // Sentiment analysis, as in the paper.

// Returns the cost of an epoch on a simulated V100 at the best power limit for it.
Result<Joules> EpochCost(int batch_size) {
  ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel("V100"));
  ZEUS_TRY(const sim::Workload* const workload, sim::FindWorkload(kWorkload));
  Joules best(INFINITY);
  constexpr Watts kStride(25);
  for (Watts limit = model->limit_range.max; limit >= model->limit_range.min; limit -= kStride) {
    ZEUS_TRY(const auto point, sim::Predict(*model, *workload, static_cast<unsigned>(batch_size),
                                            {.power_limit = limit, .clock_cap = {}}));
    best = std::min(best, (kEta * point.average_power + (1 - kEta) * model->limit_range.max) *
                              point.time_per_epoch);
  }
  return best;
}

Result<DriftTable> TrainEverything(const Options& options) {
  DriftTable table{.slices = options.drift.count,
                   .repetitions = options.repetitions,
                   .max_epochs = options.max_epochs,
                   .default_batch_size = options.default_batch_size};
  for (const int batch_size : options.batch_sizes) {
    DriftTable::Arm arm{.batch_size = batch_size};
    ZEUS_TRY(arm.epoch_cost, EpochCost(batch_size));
    for (int slice = 0; slice < options.drift.count; ++slice) {
      auto& repetitions = arm.epochs.emplace_back();
      for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        repetitions.push_back(EpochsToTarget(
            {.slice = options.drift.At(slice),
             .batch_size = batch_size,
             .learning_rate =
                 options.learning_rate * std::sqrt(double(batch_size) / options.default_batch_size),
             .seed = static_cast<std::uint64_t>(1000 * repetition + slice + 1),
             .training_samples = options.training_samples,
             .validation_samples = kValidationSamples,
             .target = options.target,
             .max_epochs = options.max_epochs}));
      }
    }
    fmt::print("trained batch size {}\n", batch_size);
    std::fflush(stdout);
    table.arms.push_back(std::move(arm));
  }
  return table;
}

void PrintTable(const DriftTable& table) {
  fmt::print("\nepochs to the target (mean; - where a run never arrives)\nslice");
  for (const auto& arm : table.arms) fmt::print(" {:>7}", arm.batch_size);
  fmt::print("    best\n");
  for (int slice = 0; slice < table.slices; ++slice) {
    fmt::print("{:>5}", slice);
    for (std::size_t arm = 0; arm < table.arms.size(); ++arm) {
      const Joules cost = table.ExpectedCost(arm, slice);
      if (std::isfinite(cost.value())) {
        fmt::print(" {:>7.1f}", cost / table.arms[arm].epoch_cost);
      } else {
        fmt::print(" {:>7}", "-");
      }
    }
    fmt::print(" {:>7}\n", table.arms[table.BestArm(slice)].batch_size);
  }
}

// Writes the table from which the drift record of studies/paper was made.
std::string ToCsv(const DriftTable& table) {
  std::string csv = "slice,batch_size,repetition,epochs\n";
  for (int slice = 0; slice < table.slices; ++slice)
    for (const auto& arm : table.arms)
      for (int repetition = 0; repetition < table.repetitions; ++repetition) {
        const std::optional<int> epochs =
            arm.epochs[static_cast<std::size_t>(slice)][static_cast<std::size_t>(repetition)];
        csv += fmt::format("{},{},{},{}\n", slice, arm.batch_size, repetition,
                           epochs ? fmt::to_string(*epochs) : "");
      }
  return csv;
}

Result<Course> Follow(const DriftTable& table, const std::string& policy, int window,
                      const Options& options) {
  Course course{.name = window > 0 ? fmt::format("{}, window {}", policy, window) : policy,
                .costs = std::vector<double>(static_cast<std::size_t>(table.slices)),
                .sizes = std::vector<double>(static_cast<std::size_t>(table.slices))};
  for (int seed = 1; seed <= options.policy_seeds; ++seed) {
    ZEUS_TRY(const auto outcomes,
             RunPolicy(table, {.name = policy,
                               .batch_sizes = options.batch_sizes,
                               .default_batch_size = options.default_batch_size,
                               .max_epochs = options.max_epochs,
                               .window = window,
                               .seed = static_cast<std::uint64_t>(seed)}));
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      course.costs[i] += outcomes[i].cost.value() / options.policy_seeds;
      course.sizes[i] += std::log2(outcomes[i].batch_size) / options.policy_seeds;
    }
  }
  return course;
}

Course OfOracle(const DriftTable& table) {
  Course course{.name = "oracle", .costs = {}, .sizes = {}};
  for (const SliceOutcome& outcome : RunOracle(table)) {
    course.costs.push_back(outcome.cost.value());
    course.sizes.push_back(std::log2(outcome.batch_size));
  }
  return course;
}

report::Series CostSeries(const Course& course) {
  report::Series series{.name = course.name};
  double sum = 0;
  for (std::size_t i = 0; i < course.costs.size(); ++i) {
    sum += course.costs[i] / kMega;
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(sum);
  }
  return series;
}

// Returns the position on an axis that has the batch sizes at 0, 1, 2, …
double PlaceAmong(const std::vector<int>& batch_sizes, double log2_size) {
  for (std::size_t i = 1; i < batch_sizes.size(); ++i) {
    const double below = std::log2(batch_sizes[i - 1]);
    const double above = std::log2(batch_sizes[i]);
    if (log2_size <= above)
      return static_cast<double>(i - 1) + (log2_size - below) / (above - below);
  }
  return static_cast<double>(batch_sizes.size() - 1);
}

report::Series SizeSeries(const Course& course, const std::vector<int>& batch_sizes) {
  report::Series series{.name = course.name};
  for (std::size_t i = 0; i < course.sizes.size(); ++i) {
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(PlaceAmong(batch_sizes, course.sizes[i]));
  }
  return series;
}

// Draws Figure 10 of the paper: cumulative cost, and batch sizes.
report::Figure MakeFigure(const std::vector<Course>& courses, const std::vector<int>& batch_sizes) {
  report::Panel spent{.title = "cost so far",
                      .x = {.title = "slice"},
                      .y = {.title = "cost so far (MJ)", .from_zero = true}};
  report::Panel sizes{.title = "batch size",
                      .x = {.title = "slice"},
                      .y = {.title = "batch size (geometric mean)"}};
  for (const int batch_size : batch_sizes) sizes.y.categories.push_back(fmt::to_string(batch_size));
  for (const Course& course : courses) {
    spent.series.push_back(CostSeries(course));
    sizes.series.push_back(SizeSeries(course, batch_sizes));
  }
  return {.id = "drift",
          .title = "Recurring job on data that drift",
          .caption =
              "Cumulative cost and batch size by slice of data, of policies with and "
              "without a window and of an oracle.",
          .panels = {std::move(spent), std::move(sizes)}};
}

void PrintCourses(const std::vector<Course>& courses) {
  const auto sum = [](const std::vector<double>& costs, std::size_t from) {
    return std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(from), costs.end(), 0.0);
  };
  const std::size_t last_third = courses.front().costs.size() * 2 / 3;
  const Course& oracle = courses.front();
  fmt::print("\n{:<32} {:>9} {:>10} {:>22}\n", "policy", "cost MJ", "of oracle",
             "last third, of oracle");
  for (const Course& course : courses) {
    fmt::print("{:<32} {:>9.2f} {:>10.3f} {:>22.3f}\n", course.name, sum(course.costs, 0) / kMega,
               sum(course.costs, 0) / sum(oracle.costs, 0),
               sum(course.costs, last_third) / sum(oracle.costs, last_third));
  }
}

Result<int> Perform(const Options& options) {
  for (const std::string& file : {options.svg, options.table})
    if (!file.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(file));
  UseOneBlasThread();
  ZEUS_TRY(const DriftTable table, TrainEverything(options));
  PrintTable(table);
  if (!options.table.empty()) ZEUS_RETURN_IF_ERROR(cli::WriteWhole(options.table, ToCsv(table)));
  std::vector<Course> courses{OfOracle(table)};
  for (const char* const policy : {"zeus", "knowledge_gradient"}) {
    for (const int window : {0, options.window}) {
      ZEUS_TRY(Course course, Follow(table, policy, window, options));
      courses.push_back(std::move(course));
    }
  }
  PrintCourses(courses);
  if (!options.svg.empty())
    ZEUS_RETURN_IF_ERROR(
        cli::WriteWhole(options.svg, report::ToSvg(MakeFigure(courses, options.batch_sizes))));
  return 0;
}

void AddOptions(cli::Verb app, Options& options) {
  using cli::NumberBetween;
  using cli::WholeNumberBetween;
  constexpr std::uint64_t kMost = 1'000'000;
  app.AddOption("--slices", options.drift.count, "Slices of data")
      .Check(WholeNumberBetween(3, kMost));
  app.AddOption("--scale", options.drift.end.scale, "Of the features at the end, from 0.35")
      .Check(NumberBetween(0.01, 100));
  app.AddOption("--batch-sizes", options.batch_sizes, "To choose from, ascending").Delimiter(',');
  app.AddOption("--default", options.default_batch_size, "One of them");
  app.AddOption("--lr", options.learning_rate, "Of the default batch size")
      .Check(NumberBetween(0, 100));
  app.AddOption("--target", options.target, "Accuracy to reach").Check(NumberBetween(0, 1));
  app.AddOption("--samples", options.training_samples, "Of a slice")
      .Check(WholeNumberBetween(1, kMost));
  app.AddOption("--repetitions", options.repetitions, "Trainings per slice and batch size")
      .Check(WholeNumberBetween(1, kMost));
  app.AddOption("--policy-seeds", options.policy_seeds, "Average policies over so many")
      .Check(WholeNumberBetween(1, kMost));
  app.AddOption("--window", options.window, "Results that a policy with a window believes")
      .Check(WholeNumberBetween(1, kMost));
  app.AddOption("--max-epochs", options.max_epochs, "Of a training")
      .Check(WholeNumberBetween(1, kMost));
  app.AddOption("--svg", options.svg, "Write a plot to this file");
  app.AddOption("--table", options.table, "Write the epochs of every training as CSV");
}

int Main(int argc, char** argv) {
  cli::CommandLine line("drift",
                        "Trains a classifier on data that drift and follows policies through it.");
  Options options;
  AddOptions(line.program(), options);
  return line.Run(argc, argv, [&options] { return Perform(options); });
}

}  // namespace
}  // namespace zeus::examples

int main(int argc, char** argv) { return zeus::examples::Main(argc, argv); }
