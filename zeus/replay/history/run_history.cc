#include "zeus/replay/history/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

// A run reports its cumulative progress after each epoch. Between two reports at the same power
// limit the difference is the time and energy of epochs at that limit, and their sums by limit give
// the mean epoch. The first epoch of a run may have been spent on profiling all limits, so it is
// used only if nothing else is known about its batch size.

namespace zeus::replay {
namespace {

struct Sum {
  int epochs = 0;
  Seconds time{};
  Joules energy{};
};
using SumsByLimit = std::map<Watts, Sum>;

using Courses =
    std::map<std::int64_t, std::vector<RunProgress>>;  // Reports of each trial, by trial number.

Result<Courses> CollectCourses(const std::vector<JobEvent>& events) {
  Courses courses;
  for (const JobEvent& event : events) {
    if (event.kind != EventKind::kTrialReported || !event.trial) continue;
    Result<RunProgress> progress = ReadProgress(event);
    if (!progress.ok())
      return std::move(progress).error().While(fmt::format("event {}", event.sequence));
    courses[*event.trial].push_back(std::move(progress).value());
  }
  return courses;
}

void Add(SumsByLimit& sums, const RunProgress& from, const RunProgress& until, Watts max_power) {
  if (until.epochs <= from.epochs) return;
  Sum& sum = sums[until.limit.value_or(max_power)];
  sum.epochs += until.epochs - from.epochs;
  sum.time += until.time - from.time;
  sum.energy += until.energy - from.energy;
}

// Adds the epochs of a run whose limit did not change to `steady`, and its first report to `first`.
void AddCourse(SumsByLimit& steady, SumsByLimit& first, const Trial& trial,
               const std::vector<RunProgress>& course) {
  for (std::size_t i = 1; i < course.size(); ++i)
    if (course[i].limit == course[i - 1].limit)
      Add(steady, course[i - 1], course[i], trial.max_power);
  const RunProgress whole{.epochs = trial.epochs,
                          .time = trial.time,
                          .energy = trial.energy,
                          .limit = trial.power_limit};
  Add(first, {}, course.empty() ? whole : course.front(), trial.max_power);
}

std::vector<LimitRecord> MakeLimitRecords(const SumsByLimit& sums) {
  std::vector<LimitRecord> records;
  for (const auto& [limit, sum] : sums) {
    if (!(sum.time > Seconds(0))) continue;
    const double epochs = sum.epochs;
    records.push_back({.limit = limit,
                       .power = sum.energy / sum.time,
                       .epoch = {.time = sum.time / epochs, .energy = sum.energy / epochs}});
  }
  return records;
}

std::string MostFrequentGpu(const std::vector<Trial>& trials) {
  std::map<std::string, int> counts;
  for (const Trial& trial : trials) ++counts[trial.gpu_model];
  return counts.empty()
             ? ""
             : std::ranges::max_element(counts, {}, &std::pair<const std::string, int>::second)
                   ->first;
}

// Returns the epochs that each run needed. A stopped run shows only that the target is further
// away, not how far: if other runs arrived it is left out, else the batch size is assumed never to
// arrive.
std::vector<std::optional<int>> CollectEpochs(const std::vector<const Trial*>& trials,
                                              std::vector<std::string>& remarks) {
  std::vector<std::optional<int>> epochs;
  for (const Trial* const trial : trials)
    if (trial->status == TrialStatus::kConverged) epochs.emplace_back(trial->epochs);
  const std::size_t stopped = trials.size() - epochs.size();
  const int batch_size = trials.front()->batch_size;
  if (epochs.empty()) {
    remarks.push_back(
        fmt::format("Batch size {} never reached the target in {} runs: it is taken "
                    "for one that never does.",
                    batch_size, stopped));
    return {std::nullopt};
  }
  if (stopped > 0)
    remarks.push_back(
        fmt::format("Batch size {}: {} of {} runs were stopped early; how many epochs they would "
                    "have needed is "
                    "not known, so they are left out.",
                    batch_size, stopped, trials.size()));
  return epochs;
}

// Aborted runs and runs without a full epoch measure nothing.
bool IsUsable(const Trial& trial) {
  return (trial.status == TrialStatus::kConverged || trial.status == TrialStatus::kStopped) &&
         trial.epochs > 0;
}

// Notes the runs on other GPU models, which are left out of the measurements.
void AddOtherModels(const RunHistory& history, MeasuredJob& job) {
  std::map<std::string, std::pair<int, std::set<std::int64_t>>> others;
  for (const Trial& trial : history.trials) {
    if (trial.gpu_model == job.gpu_model) continue;
    auto& [runs, recurrences] = others[trial.gpu_model];
    ++runs;
    recurrences.insert(trial.recurrence);
  }
  for (const auto& [model, counts] : others)
    job.remarks.push_back(
        fmt::format("{} of {} runs, of {} recurrences, were on {}: they are left out, and the "
                    "answer rests on those on {} alone.",
                    counts.first, history.trials.size(), counts.second.size(), Quote(model),
                    Quote(job.gpu_model)));
}

std::string Listing(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

void AddUntried(MeasuredJob& job) {
  std::vector<int> untried;
  for (const int batch_size : job.spec.batch_sizes)
    if (std::ranges::find(job.arms, batch_size, &MeasuredArm::batch_size) == job.arms.end())
      untried.push_back(batch_size);
  if (!untried.empty())
    job.remarks.push_back(fmt::format(
        "Nothing is known of batch sizes that no run on {} ended with: {}. They are left out.",
        Printable(job.gpu_model), Listing(untried)));
  const int nearest = job.default_arm().batch_size;
  if (nearest != job.spec.default_batch_size)
    job.remarks.push_back(fmt::format("The default batch size {} is one of them: {} stands for it.",
                                      job.spec.default_batch_size, nearest));
}

}  // namespace

const MeasuredArm& MeasuredJob::default_arm() const {
  return *std::ranges::min_element(arms, {}, [this](const MeasuredArm& arm) {
    return std::abs(std::log(static_cast<double>(arm.batch_size) / spec.default_batch_size));
  });
}

Result<MeasuredJob> MeasureHistory(const RunHistory& history, std::string_view gpu_model) {
  MeasuredJob job{.spec = history.spec, .gpu_model = std::string(gpu_model)};
  if (job.gpu_model.empty()) job.gpu_model = MostFrequentGpu(history.trials);
  ZEUS_TRY(const Courses courses, CollectCourses(history.events));
  std::map<int, std::vector<const Trial*>> by_batch_size;
  std::set<std::int64_t> recurrences;
  for (const Trial& trial : history.trials) {
    if (trial.gpu_model != job.gpu_model) continue;
    recurrences.insert(trial.recurrence);
    job.time += trial.time;
    job.energy += trial.energy;
    job.max_power = std::max(job.max_power, trial.max_power);
    if (IsUsable(trial)) by_batch_size[trial.batch_size].push_back(&trial);
  }
  job.recurrences = static_cast<std::int64_t>(recurrences.size());
  for (const auto& [batch_size, trials] : by_batch_size) {
    SumsByLimit steady, first;
    for (const Trial* const trial : trials) {
      const auto course = courses.find(trial->number);
      AddCourse(steady, first, *trial,
                course == courses.end() ? std::vector<RunProgress>() : course->second);
    }
    std::vector<LimitRecord> limits = MakeLimitRecords(steady.empty() ? first : steady);
    if (limits.empty()) continue;
    job.arms.push_back({.batch_size = batch_size,
                        .epochs_to_target = CollectEpochs(trials, job.remarks),
                        .limits = std::move(limits)});
  }
  if (job.arms.empty())
    return Error{ErrorCode::kNotFound,
                 fmt::format("no run of job {} on {} came to an end, so there is nothing to replay",
                             Quote(job.spec.id), Quote(job.gpu_model))};
  AddOtherModels(history, job);
  AddUntried(job);
  return job;
}

namespace {

// Limits far beyond any run that keep sums over all runs finite.
constexpr double kMostSeconds = 1e12;
constexpr double kMostJoules = 1e18;
constexpr double kMostWatts = 1e9;

// Also rejects NaN.
Status CheckAmount(std::string_view field, double amount, double most) {
  if (amount >= 0 && amount <= most) return Ok();
  return FieldError(field, fmt::format("must be from 0 to {:g}: {:g}", most, amount));
}

Status CheckPower(std::string_view field, double power) {
  if (power > 0 && power <= kMostWatts) return Ok();
  return FieldError(field,
                    fmt::format("must be above 0 and at most {:g}: {:g}", kMostWatts, power));
}

Status CheckTrial(const Trial& trial) {
  if (trial.batch_size < 1)
    return FieldError("batch_size", fmt::format("must be at least 1: {}", trial.batch_size));
  if (trial.epochs < 0)
    return FieldError("epochs", fmt::format("must not be negative: {}", trial.epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", trial.time.count(), kMostSeconds));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", trial.energy.value(), kMostJoules));
  ZEUS_RETURN_IF_ERROR(CheckPower("max_power_watts", trial.max_power.value()));
  if (trial.epochs > 0 && trial.time == Seconds(0))
    return FieldError("time_seconds", fmt::format("0 for {} epochs", trial.epochs));
  if (trial.power_limit) return CheckPower("power_limit_watts", trial.power_limit->value());
  return Ok();
}

// Reports are cumulative, so no value may decrease.
Status CheckOrder(const RunProgress& before, const RunProgress& now) {
  if (now.epochs < before.epochs)
    return FieldError("epochs",
                      fmt::format("{} after {} of the same run", now.epochs, before.epochs));
  if (now.time < before.time)
    return FieldError("time_seconds", fmt::format("{:g} after {:g} of the same run",
                                                  now.time.count(), before.time.count()));
  if (now.energy < before.energy)
    return FieldError("energy_joules", fmt::format("{:g} after {:g} of the same run",
                                                   now.energy.value(), before.energy.value()));
  return Ok();
}

}  // namespace

Result<RunProgress> ReadProgress(const JobEvent& event) {
  ZEUS_TRY(const int epochs, GetField<int>(event.detail, "epochs"));
  ZEUS_TRY(const double time, GetField<double>(event.detail, "time_seconds"));
  ZEUS_TRY(const double energy, GetField<double>(event.detail, "energy_joules"));
  ZEUS_TRY(const auto limit, GetOptionalField<double>(event.detail, "power_limit_watts"));
  if (epochs < 1) return FieldError("epochs", fmt::format("must be at least 1: {}", epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", time, kMostSeconds));
  if (time == 0) return FieldError("time_seconds", fmt::format("0 for {} epochs", epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", energy, kMostJoules));
  if (limit) ZEUS_RETURN_IF_ERROR(CheckPower("power_limit_watts", *limit));
  return RunProgress{.epochs = epochs,
                     .time = Seconds(time),
                     .energy = Joules(energy),
                     .limit = limit ? std::optional(Watts(*limit)) : std::nullopt};
}

Status HistoryBuilder::Add(Trial trial) {
  ZEUS_RETURN_IF_ERROR(CheckTrial(trial));
  const Run run{.epochs = trial.epochs, .ended = IsFinal(trial.status)};
  if (!runs_.try_emplace(trial.number, run).second)
    return FieldError("number", fmt::format("there is a trial {} already", trial.number));
  history_.trials.push_back(std::move(trial));
  return Ok();
}

Status HistoryBuilder::Add(JobEvent event) {
  if (event.kind == EventKind::kTrialReported && event.trial) {
    ZEUS_TRY(const RunProgress progress, ReadProgress(event));
    if (const auto found = runs_.find(*event.trial); found != runs_.end()) {
      Run& run = found->second;
      ZEUS_RETURN_IF_ERROR(CheckOrder(run.latest, progress));
      if (run.ended && progress.epochs > run.epochs)
        return FieldError(
            "epochs", fmt::format("{} of a run that ended after {}", progress.epochs, run.epochs));
      run.latest = progress;
    }
  }
  history_.events.push_back(std::move(event));
  return Ok();
}

Result<RunHistory> HistoryBuilder::Finish() && {
  if (history_.trials.empty())
    return Error{ErrorCode::kNotFound,
                 "no run is recorded (no line of record \"trial\"), so there is nothing to replay"};
  return std::move(history_);
}

}  // namespace zeus::replay
