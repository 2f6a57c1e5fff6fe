#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"
#include "zeus/job/recurrences.h"
#include "zeus/job/savings.h"

namespace zeus {

// Everything that a list of jobs shows about one of them, on the GPU model of its spec. Immutable.
struct JobOverview {
  Job job{};
  JobArms arms{};
  JobSavings savings{};
  std::vector<RecurrenceAmounts> recurrences{};
  std::vector<ChargedRecurrence> charged{};  // The recurrences that the savings are made from.
  std::optional<Trial> latest{};             // The trial that began last.
  std::vector<Trial> running{};
};

// `trials` are all trials of the job, by number.
Result<JobOverview> MakeOverview(const Job& job, std::span<const Trial> trials);

// Keeps the overviews of jobs that were asked for last: a job has the same one until its next
// event. Thread-safe.
class JobOverviews {
 public:
  using Overview = std::shared_ptr<const JobOverview>;

  // Keeps at most so many recurrences of all jobs together, and the latest job in any case.
  explicit JobOverviews(std::size_t most_recurrences = 100'000) : most_(most_recurrences) {}

  // Returns the overview of a job that `service` has just returned. `key` names the job among those
  // of all name spaces.
  Result<Overview> Of(JobService& service, const Job& job, const std::string& key);

 private:
  struct Entry {
    std::string key{};
    Overview overview{};
  };

  Overview Find(const std::string& key, const Job& job);
  void Keep(const std::string& key, Overview overview);

  const std::size_t most_;
  std::mutex mutex_;
  std::list<Entry> entries_{};  // Guarded by mutex_, to the end; the latest used first.
  std::map<std::string, std::list<Entry>::iterator> places_{};
  std::size_t held_ = 0;  // Recurrences of all entries, one more for each.
};

// The savings of several jobs in one span of time: recurrences count when they ended in it. The
// spans of a partition sum up to the savings of the jobs.
struct SpanSavings {
  WallTime from{};
  WallTime until{};
  int jobs = 0;         // Jobs with known savings that ended a recurrence in the span.
  int recurrences = 0;  // Recurrences of these jobs that reached the target.
  Joules charged{};     // Energy of everything that is charged.
  double energy = 0;    // Saved, in joules and seconds; the sigmas are one standard deviation.
  double energy_sigma = 0;
  double time = 0;
  double time_sigma = 0;
  // The saved energy relative to what undisturbed runs would have taken; nullopt without a
  // recurrence that reached the target.
  std::optional<double> energy_percent{};
  double energy_percent_sigma = 0;
  // Jobs that ended a recurrence in the span and whose savings are not known.
  std::vector<std::string> unknown{};
};

// `bounds` are at least two times in ascending order, between which the spans lie.
std::vector<SpanSavings> SavingsBetween(std::span<const JobOverviews::Overview> jobs,
                                        std::span<const WallTime> bounds);

}  // namespace zeus
