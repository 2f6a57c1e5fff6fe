#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"
#include "zeus/job/recurrences.h"

namespace zeus::cli {

// Sums over several runs.
struct RunAmounts {
  int runs = 0;
  Joules energy{};
  Seconds time{};
  Joules cost{};
};

// The knowledge about a job and its price: tables, plots and JSON are made from it.
struct Lessons {
  Job job{};
  JobArms arms{};
  std::vector<Trial> trials{};
  JobSavings savings{};

  std::vector<RecurrenceAmounts> recurrences{};
  std::vector<MeasuredArm> measured{};  // In the order of `arms`.
  RunAmounts total{};                   // All trials together.
  RunAmounts baseline{};                // The part of undisturbed runs of the default.
  // The part of runs for the policy to learn from, and of those that missed the target.
  RunAmounts exploration{};
  // The mean of the latest recurrences that reached the target, began with the best batch size as
  // the best, and were alone on their GPUs, with all that they took to get there.
  std::optional<UsualAmounts> at_best{};
  bool at_best_explored = false;       // There are none but those that explored it.
  std::optional<Watts> power_limit{};  // Limit of the latest run with the best batch size.
  // The batch size whose runs took least, as they were measured; nullopt while none reached the
  // target. The policy may prefer another one, of which it expects more.
  std::optional<int> cheapest{};
};

// Everything that follows from job, arms and trials.
void Conclude(Lessons& lessons);

struct LessonsQuery {
  std::string job{};
  std::string gpu_model{};  // Empty: that of the job's spec.
  // The job whose undisturbed runs savings are measured against; empty: the job itself.
  std::string baseline_job{};
};
Result<Lessons> CollectLessons(JobService& service, const LessonsQuery& query);

// Tables for people, ending in a newline.
std::string ArmsTable(const Lessons& lessons);
std::string TrialsTable(const Lessons& lessons);
// Says when a run of the job is done: "target 0.9" or "12 epochs a run, without a target".
std::string GoalText(const JobSpec& spec);
// Says what is not known about a job with an epoch goal (epoch_goal.h), in one sentence.
std::string EpochGoalText(const JobSpec& spec);
// Returns text on the choice, its saving, and the cost of finding it.
std::string SummaryText(const Lessons& lessons);
// Returns text on the saving of the job, or on why it is not known.
std::string SavingsText(const Lessons& lessons);

// "zeus.job/2", see docs/formats.md.
Json ToJson(const Lessons& lessons);

}  // namespace zeus::cli
