#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"

namespace zeus::cli {

// What runs took, all together.
struct RunAmounts {
  int runs = 0;
  Joules energy{};
  Seconds time{};
  Joules cost{};
};

// All tries of one submission of the job.
struct RecurrenceAmounts {
  std::int64_t recurrence = 0;
  int tries = 0;
  int first_batch_size = 0;  // Of the first try, as are the next two.
  std::string gpu_model{};
  RunRole role = RunRole::kExploiting;
  int batch_size = 0;  // Of the last try.
  bool converged = false;
  Joules energy{};
  Seconds time{};
  Joules cost{};
};

struct MeanAmount {
  double mean = 0;
  std::optional<double> sigma{};  // Of the mean, by the scatter of two or more.
};

// What recurrences took on average, in joules and seconds.
struct UsualAmounts {
  int recurrences = 0;
  MeanAmount energy{};
  MeanAmount time{};
  MeanAmount cost{};
};

// What has been learned about a job, and what that has cost: everything that tables, plots and JSON
// are made from.
struct Lessons {
  Job job{};
  JobArms arms{};
  std::vector<Trial> trials{};

  std::vector<RecurrenceAmounts> recurrences{};
  RunAmounts total{};  // Of all trials together, as is the next.
  RunAmounts
      exploration{};  // With other batch sizes than the best, or without reaching the target.
  // Of recurrences that reached the target, with everything that they took to get there: the latest
  // that were begun with the best batch size because it is the best, and those with the default
  // one.
  std::optional<UsualAmounts> at_best{};
  std::optional<UsualAmounts> at_default{};
  std::optional<Watts> power_limit{};  // Of the latest run with the best batch size.
};

// Everything that follows from job, arms and trials.
void Conclude(Lessons& lessons);

// An empty model: that of the job's spec.
Result<Lessons> CollectLessons(JobService& service, const std::string& job_id,
                               const std::string& gpu_model);

// Costs as `spec` weighs energy and time, so that jobs of other weights can be compared with it.
void ReckonAs(const JobSpec& spec, Lessons& lessons);

// How far the best is below `reference`, in per cent of it.
struct Savings {
  MeanAmount energy{};
  MeanAmount time{};
  MeanAmount cost{};
};
std::optional<Savings> SavedAgainst(const std::optional<UsualAmounts>& best,
                                    const std::optional<UsualAmounts>& reference);

// Tables for people, ending in a newline.
std::string ArmsTable(const Lessons& lessons);
std::string TrialsTable(const Lessons& lessons);
// What was chosen, what that saves, and what finding it cost. `baseline`: of a job that runs as one
// would without Zeus; otherwise the default batch size of this job is what is compared with.
std::string SummaryText(const Lessons& lessons, const Lessons* baseline);

// "zeus.job/1", see docs/formats.md.
Json ToJson(const Lessons& lessons, const Lessons* baseline);

}  // namespace zeus::cli
