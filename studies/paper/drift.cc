#include "studies/paper/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "studies/paper/drawing.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

constexpr int kWindow = 10;  // §6.4

constexpr const char* kOracle = "oracle";

// The job with what one slice needs. Batch sizes that were not tried are not there.
ReplayJob AtSlice(ReplayJob job, int slice) {
  job.max_epochs = kDriftMaxEpochs;
  job.default_batch_size = kDriftDefaultBatchSize;
  for (ReplayArm& arm : job.arms) arm.epochs_to_target = DriftingEpochs(slice, arm.batch_size);
  std::erase_if(job.arms, [](const ReplayArm& arm) { return arm.epochs_to_target.empty(); });
  return job;
}

DriftCourse Empty(std::string name, std::string role) {
  const std::vector<double> none(kDriftSlices, 0.0);
  return {.name = std::move(name),
          .role = std::move(role),
          .energy = none,
          .time = none,
          .cost = none,
          .batch_size = none};
}

void Add(DriftCourse& course, std::size_t slice, const Usage& usage, double share) {
  course.energy[slice] += share * usage.energy.value();
  course.time[slice] += share * usage.time.count();
  course.cost[slice] += share * usage.cost.value();
}

Result<DriftCourse> Follow(const ReplayJob& job, const ContenderSpec& contender, int seeds) {
  DriftCourse course =
      Empty(contender.window > 0 ? fmt::format("{}, window {}", contender.name, contender.window)
                                 : contender.name,
            contender.window > 0 ? contender.name : contender.name + " for ever");
  for (int seed = 0; seed < seeds; ++seed) {
    ReplayJob now = AtSlice(job, 0);  // Changes under the replay: that is what drift is.
    ZEUS_TRY(JobReplay replay, JobReplay::Make(now, contender, static_cast<std::uint64_t>(seed)));
    for (std::size_t slice = 0; slice < kDriftSlices; ++slice) {
      now.arms = AtSlice(job, static_cast<int>(slice)).arms;
      const ReplayedRecurrence& recurrence = replay.Next();
      Add(course, slice, recurrence.usage, 1.0 / seeds);
      course.batch_size[slice] += std::log(recurrence.runs.back().batch_size) / seeds;
    }
  }
  for (double& size : course.batch_size) size = std::exp(size);
  return course;
}

DriftCourse OfOracle(const ReplayJob& job) {
  DriftCourse course = Empty(kOracle, kOracle);
  for (std::size_t slice = 0; slice < kDriftSlices; ++slice) {
    const ReplayJob now = AtSlice(job, static_cast<int>(slice));
    Add(course, slice, now.OracleUsage(), 1.0);
    course.batch_size[slice] = now.oracle().batch_size;
  }
  return course;
}

Panel CoursePanel(const std::vector<DriftCourse>& courses, std::string title, report::Axis y,
                  std::vector<double> DriftCourse::*figure, double unit) {
  Panel panel{.title = std::move(title), .x = {.title = "slice"}, .y = std::move(y)};
  for (const DriftCourse& course : courses) {
    Series line{.name = course.name, .role = course.role, .mark = Mark::kLine};
    for (std::size_t slice = 0; slice < kDriftSlices; ++slice) {
      line.x.push_back(static_cast<double>(slice));
      line.y.push_back((course.*figure)[slice] / unit);
    }
    panel.series.push_back(std::move(line));
  }
  return panel;
}

double TotalCost(const std::vector<DriftCourse>& courses, std::string_view name) {
  const auto course = std::ranges::find(courses, name, &DriftCourse::name);
  return std::accumulate(course->cost.begin(), course->cost.end(), 0.0);
}

}  // namespace

Result<std::vector<DriftCourse>> RunDrift(const ReplayJob& job, int seeds) {
  std::vector<DriftCourse> courses{OfOracle(job)};
  for (const char* const name : {"zeus", "knowledge_gradient"}) {
    for (const int window : {0, kWindow}) {
      ZEUS_TRY(DriftCourse course, Follow(job, {.name = name, .window = window}, seeds));
      courses.push_back(std::move(course));
    }
  }
  return courses;
}

report::Figure DriftFigure(const std::vector<DriftCourse>& courses) {
  return {.id = "figure-10",
          .title = "Figure 10: Data that drift",
          .caption =
              "When the data change, energy and time rise until a policy that forgets old results "
              "moves to another batch size; real trainings of a small classifier stand for the "
              "paper's dataset, which is not public.",
          .panels = {CoursePanel(courses, "energy", {.title = "energy (MJ)", .logarithmic = true},
                                 &DriftCourse::energy, kMega),
                     CoursePanel(courses, "time", {.title = "time (ks)", .logarithmic = true},
                                 &DriftCourse::time, kKilo),
                     CoursePanel(courses, "batch size",
                                 {.title = "batch size (geometric mean)", .logarithmic = true},
                                 &DriftCourse::batch_size, 1.0)}};
}

Claim DriftClaim(const std::vector<DriftCourse>& courses) {
  const double least = TotalCost(courses, kOracle);
  const auto of_oracle = [&](const std::string& name) { return TotalCost(courses, name) / least; };
  const double for_ever = of_oracle("zeus");
  const double forgetting = of_oracle(fmt::format("zeus, window {}", kWindow));
  return {.section = "§6.4",
          .claim = "with a window zeus follows data that drift",
          .paper = "shown for BERT on Capriccio",
          .ours = fmt::format("cost, of the oracle's: {:.2f} with a window of {}, {:.2f} without; "
                              "knowledge_gradient {:.2f} and {:.2f}",
                              forgetting, kWindow, for_ever,
                              of_oracle(fmt::format("knowledge_gradient, window {}", kWindow)),
                              of_oracle("knowledge_gradient")),
          .verdict = Holds(forgetting < for_ever),
          .remark = "38 slices of another task, really trained (batch-size-drift.md)"};
}

// --- The record ---

namespace {

constexpr std::array<int, 5> kBatchSizes = {8, 16, 32, 64, 128};
constexpr int kRepetitions = 3;

// A row per slice: 3 trainings with each batch size, in their order; 0: the target was not reached.
// Written by `drift_study --table FILE` (examples/drift).
constexpr std::array<std::array<int, kBatchSizes.size() * kRepetitions>, kDriftSlices> kEpochs = {{
    {8, 5, 5, 10, 6, 6, 13, 7, 7, 17, 9, 10, 22, 13, 15},
    {7, 11, 12, 10, 17, 14, 15, 22, 19, 20, 34, 28, 29, 46, 38},
    {10, 7, 8, 13, 11, 12, 17, 13, 17, 27, 23, 22, 39, 29, 30},
    {5, 7, 4, 8, 9, 6, 10, 10, 7, 16, 13, 11, 21, 20, 15},
    {6, 10, 10, 7, 13, 10, 8, 16, 14, 15, 21, 18, 17, 32, 28},
    {5, 5, 8, 8, 8, 8, 10, 9, 13, 13, 12, 17, 18, 18, 23},
    {7, 6, 13, 8, 9, 21, 11, 10, 30, 15, 17, 54, 21, 22, 0},
    {12, 11, 7, 14, 19, 8, 17, 20, 11, 25, 30, 15, 33, 47, 20},
    {5, 5, 9, 12, 7, 9, 12, 9, 12, 18, 11, 20, 24, 17, 29},
    {5, 8, 5, 6, 8, 7, 10, 10, 12, 13, 14, 14, 20, 20, 20},
    {6, 6, 6, 8, 8, 7, 8, 11, 9, 12, 16, 14, 17, 24, 19},
    {7, 5, 7, 10, 7, 10, 12, 12, 16, 16, 14, 21, 24, 18, 29},
    {6, 7, 7, 7, 12, 9, 9, 14, 10, 13, 19, 12, 17, 27, 18},
    {6, 5, 5, 6, 9, 6, 9, 11, 9, 12, 14, 11, 16, 18, 16},
    {3, 3, 5, 4, 5, 6, 5, 6, 7, 6, 9, 10, 9, 13, 15},
    {2, 4, 7, 4, 6, 7, 4, 7, 7, 6, 10, 11, 7, 13, 15},
    {3, 3, 7, 4, 3, 6, 4, 5, 7, 6, 6, 8, 7, 7, 11},
    {3, 3, 2, 3, 3, 2, 7, 4, 4, 9, 5, 4, 9, 7, 5},
    {3, 5, 9, 3, 4, 6, 3, 4, 6, 4, 4, 6, 5, 5, 6},
    {4, 3, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 3, 4},
    {9, 4, 2, 3, 2, 4, 3, 2, 3, 3, 2, 3, 4, 3, 5},
    {7, 5, 1, 4, 4, 2, 4, 3, 2, 3, 3, 3, 4, 4, 3},
    {2, 10, 10, 2, 10, 5, 2, 7, 3, 2, 5, 2, 2, 5, 3},
    {0, 15, 0, 20, 15, 5, 14, 5, 4, 6, 5, 3, 6, 5, 4},
    {0, 45, 15, 5, 12, 4, 2, 3, 4, 2, 3, 2, 2, 3, 4},
    {0, 0, 0, 59, 3, 51, 59, 3, 5, 4, 3, 5, 3, 3, 5},
    {0, 0, 2, 0, 0, 2, 0, 19, 2, 3, 2, 2, 4, 2, 2},
    {0, 52, 0, 10, 52, 8, 7, 4, 4, 3, 4, 2, 3, 3, 2},
    {0, 0, 0, 0, 0, 5, 0, 58, 5, 0, 16, 2, 22, 7, 2},
    {0, 0, 0, 6, 7, 8, 2, 5, 4, 2, 5, 3, 2, 4, 3},
    {0, 0, 0, 0, 4, 0, 6, 4, 14, 2, 4, 13, 3, 4, 8},
    {15, 0, 0, 14, 4, 38, 3, 4, 7, 3, 3, 5, 3, 3, 5},
    {0, 0, 0, 20, 33, 8, 18, 8, 5, 3, 5, 5, 3, 5, 4},
    {0, 0, 0, 30, 4, 14, 4, 4, 5, 3, 3, 4, 3, 3, 4},
    {0, 0, 0, 0, 27, 0, 4, 14, 12, 4, 3, 8, 4, 3, 7},
    {0, 0, 0, 7, 38, 11, 2, 4, 2, 2, 4, 2, 2, 4, 2},
    {0, 0, 0, 0, 5, 0, 14, 3, 26, 5, 3, 9, 5, 3, 4},
    {0, 0, 31, 8, 52, 5, 3, 3, 2, 3, 2, 2, 3, 3, 2},
}};

}  // namespace

std::vector<std::optional<int>> DriftingEpochs(int slice, int batch_size) {
  const auto place = std::ranges::find(kBatchSizes, batch_size);
  if (place == kBatchSizes.end()) return {};
  const auto first = static_cast<std::size_t>(place - kBatchSizes.begin()) * kRepetitions;
  std::vector<std::optional<int>> epochs;
  for (std::size_t i = first; i < first + kRepetitions; ++i) {
    const int needed = kEpochs[static_cast<std::size_t>(slice)][i];
    epochs.push_back(needed > 0 ? std::optional(needed) : std::nullopt);
  }
  return epochs;
}

}  // namespace zeus::replay::paper
