#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/job/job.h"

// The saving of a recurring job. There is one definition, and the command, the server, Python and
// the reports all show its result:
//
//   The job is compared with undisturbed runs of its default: default batch size, power limit as
//   it was found, nothing tried, not stopped early, alone on the GPUs. Everything that ran under
//   Zeus is charged to it: exploration, profiling of power limits, runs that were stopped, that
//   failed or that were lost. The saving is the difference of what a training to the target takes,
//   with one standard deviation of that difference.
//
// Without at least two runs on either side the saving is not known, and nothing stands in for it.
namespace zeus {

class JobService;
struct SavingsQuery;

// A mean over runs or recurrences. The sigma is one standard deviation of the mean by the scatter
// of what it was made from, widened for small numbers as Student's distribution has it; nullopt for
// fewer than two.
struct MeanAmount {
  double mean = 0;
  std::optional<double> sigma{};
};

// The mean of trainings to the target, in joules and seconds.
struct UsualAmounts {
  int count = 0;  // Trainings that reached the target.
  MeanAmount energy{};
  MeanAmount time{};
  MeanAmount cost{};
};

struct SavedAmount {
  double percent = 0;  // Relative to the baseline; negative when Zeus took more.
  double percent_sigma = 0;
  double total = 0;  // In joules or seconds, over all recurrences that reached the target.
  double total_sigma = 0;
};

struct JobSavings {
  std::string job_id{};
  std::string gpu_model{};
  std::string baseline_job{};  // The job whose undisturbed runs are compared with.
  int default_batch_size = 0;  // The default of that job.
  UsualAmounts baseline{};     // Undisturbed runs of the default.
  UsualAmounts zeus{};         // Recurrences of the job, with everything that is charged to them.
  int runs = 0;                // Runs that are charged.
  int shared = 0;              // Runs left out because other processes used their GPUs.
  int unmeasured = 0;          // Runs left out because their energy is not known well enough.

  struct Saved {
    SavedAmount energy{};
    SavedAmount time{};
    SavedAmount cost{};
  };
  std::optional<Saved> saved{};
  // Emissions and money of the saved energy; nullopt unless they are configured and it is known.
  std::optional<CarbonReport> saved_carbon{};
  std::string unknown_because{};  // Why the saving is not known, and what is missing; or empty.
};

// Whether savings of jobs may be measured against this run of a job described by `spec`.
bool IsUndisturbedDefault(const Trial& trial, const JobSpec& spec);

// A recurrence that is charged to Zeus and has ended, with all its tries.
struct ChargedRecurrence {
  std::int64_t recurrence = 0;
  WallTime ended_at{};
  Joules energy{};
  Seconds time{};
  Joules cost{};
  bool reached = false;  // Whether a try reached the target.
  int runs = 0;
};

// Returns the recurrences that the savings of a job with these trials are made from, ascending:
// those that have ended and are comparable.
std::vector<ChargedRecurrence> ChargedRecurrences(std::span<const Trial> trials,
                                                  const std::string& gpu_model);

struct SavingsBasis {
  const JobSpec& spec;
  std::span<const Trial> trials{};
  std::string gpu_model{};  // Runs on other models are left out; empty for the model of the spec.
  // Another job whose undisturbed runs are compared with; null for the job itself. Its energy and
  // time are weighed as `spec` weighs them.
  const JobSpec* baseline_spec = nullptr;
  std::span<const Trial> baseline_trials{};
};
JobSavings ComputeSavings(const SavingsBasis& basis);

// Adds emissions and money of the saved energy to the savings of a job with these trials, by the
// sources of `accounting`, if it has any. The saved energy is spread over the runs that are
// charged, in proportion to the energy of each. `savings` that are not known stay as they are.
void AddSavedCarbon(const CarbonAccounting& accounting, std::span<const Trial> trials,
                    JobSavings& savings);
// Asks the service for savings, and for the trials if it takes them to add emissions and money.
// Without sources the answer has those that the service added itself.
Result<JobSavings> GetSavingsWithCarbon(JobService& service, const SavingsQuery& query,
                                        const CarbonAccounting& accounting);

// Returns the sum of all amounts per training that reached the target: amounts that were spent
// without reaching it are part of the price of reaching it.
struct ChargedAmount {
  double amount = 0;
  bool reached = true;
};
MeanAmount MeanPerTraining(std::span<const ChargedAmount> amounts);

}  // namespace zeus
