#include "zeus/replay/paper/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "zeus/replay/job_replay.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/drift_record.h"

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

double CostOf(const std::vector<DriftCourse>& courses, std::string_view name) {
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
  const double least = CostOf(courses, kOracle);
  const auto of_oracle = [&](const std::string& name) { return CostOf(courses, name) / least; };
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

}  // namespace zeus::replay::paper
