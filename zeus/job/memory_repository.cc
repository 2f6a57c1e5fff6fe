#include "zeus/job/memory_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "zeus/base/identifier.h"

namespace zeus {
namespace {

constexpr int kPage = 500;

// Calls `next` with all elements so far until a page is not full.
template <class T, class Next>
Result<std::vector<T>> Everything(const Next& next) {
  std::vector<T> all;
  for (;;) {
    ZEUS_TRY(std::vector<T> page, next(all));
    const bool full = static_cast<int>(page.size()) >= kPage;
    all.insert(all.end(), std::make_move_iterator(page.begin()),
               std::make_move_iterator(page.end()));
    if (!full) return all;
  }
}

}  // namespace

Result<std::vector<Job>> AllJobs(JobService& service, JobQuery query) {
  query.limit = kPage;
  return Everything<Job>([&](const std::vector<Job>& so_far) {
    if (!so_far.empty()) query.after = so_far.back().spec.id;
    return service.ListJobs(query);
  });
}

Result<std::vector<Trial>> AllTrials(JobService& service, const std::string& job_id) {
  return Everything<Trial>([&](const std::vector<Trial>& so_far) {
    return service.ListTrials(job_id,
                              {.after = so_far.empty() ? 0 : so_far.back().number, .limit = kPage});
  });
}

Result<std::vector<JobEvent>> AllEvents(JobService& service, const std::string& job_id) {
  return Everything<JobEvent>([&](const std::vector<JobEvent>& so_far) {
    return service.ListEvents(job_id, so_far.empty() ? 0 : so_far.back().sequence, kPage);
  });
}

namespace {

Error NoJob(const std::string& id) {
  return Error{ErrorCode::kNotFound, fmt::format("id: there is no job {}", id)};
}

bool HasLabel(const Job& job, const JobQuery& query) {
  if (!query.label) return true;
  const auto label = job.spec.labels.find(*query.label);
  return label != job.spec.labels.end() &&
         (!query.label_value || label->second == *query.label_value);
}

bool IsOverdue(const Trial& trial, WallTime now) {
  return IsActive(trial.status) && trial.lease_until < now;
}

}  // namespace

// Writes at once, and remembers how to undo every write in case the change fails.
class MemoryRepository::Transaction final : public JobTransaction {
 public:
  Transaction(std::map<std::string, Record>& records, std::optional<LeaseTick>& tick)
      : records_(records), tick_(tick) {}

  void Undo() {
    for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
  }

  Result<Job> LockJob(const std::string& id) override {
    const auto record = records_.find(id);
    if (record == records_.end()) return NoJob(id);
    return record->second.job;
  }
  Status InsertJob(const Job& job) override {
    if (!records_.try_emplace(job.spec.id, Record{.job = job}).second)
      return Error{ErrorCode::kConflict, fmt::format("id: there is a job {}", job.spec.id)};
    undo_.emplace_back([this, id = job.spec.id] { records_.erase(id); });
    return Ok();
  }
  Status UpdateJob(const Job& job) override {
    Job& stored = records_.at(job.spec.id).job;
    undo_.emplace_back([&stored, before = stored] { stored = before; });
    stored = job;
    return Ok();
  }
  Status DeleteJob(const std::string& id) override {
    auto node = records_.extract(id);
    if (node.empty()) return NoJob(id);
    undo_.emplace_back([this, id, record = std::move(node.mapped())] { records_[id] = record; });
    return Ok();
  }
  Result<std::optional<Trial>> FindTrial(const std::string& job_id, std::int64_t number) override {
    const auto& trials = records_.at(job_id).trials;
    const auto trial = trials.find(number);
    if (trial == trials.end()) return std::optional<Trial>();
    return std::optional(trial->second);
  }
  Result<std::optional<Trial>> FindTrialByRequest(const std::string& job_id,
                                                  const std::string& request_id) override {
    for (const auto& [number, trial] : records_.at(job_id).trials) {
      if (trial.request_id == request_id) return std::optional(trial);
    }
    return std::optional<Trial>();
  }
  Result<bool> HasActiveTrial(const std::string& job_id, RunRole role) override {
    const auto& trials = records_.at(job_id).trials;
    return std::any_of(trials.begin(), trials.end(), [&](const auto& entry) {
      return entry.second.role == role && IsActive(entry.second.status);
    });
  }
  Result<std::vector<Trial>> OverdueTrials(const std::string& job_id, WallTime now,
                                           int limit) override {
    return Select(job_id, limit, [&](const Trial& trial) { return IsOverdue(trial, now); });
  }
  Result<std::vector<Trial>> TrialsOfRecurrence(const std::string& job_id,
                                                std::int64_t recurrence) override {
    auto tries = Select(job_id, std::numeric_limits<int>::max(),
                        [&](const Trial& trial) { return trial.recurrence == recurrence; });
    std::sort(tries.begin(), tries.end(),
              [](const Trial& a, const Trial& b) { return a.attempt < b.attempt; });
    return tries;
  }
  Status InsertTrial(const Trial& trial) override {
    auto& trials = records_.at(trial.job_id).trials;
    if (!trials.try_emplace(trial.number, trial).second)
      return Error{ErrorCode::kConflict, fmt::format("trial: there is a trial {}", trial.number)};
    undo_.emplace_back([&trials, number = trial.number] { trials.erase(number); });
    return Ok();
  }
  Status UpdateTrial(const Trial& trial) override {
    Trial& stored = records_.at(trial.job_id).trials.at(trial.number);
    undo_.emplace_back([&stored, before = stored] { stored = before; });
    stored = trial;
    return Ok();
  }
  Status AppendEvent(const JobEvent& event) override {
    auto& events = records_.at(event.job_id).events;
    events[event.sequence] = event;
    undo_.emplace_back([&events, sequence = event.sequence] { events.erase(sequence); });
    return Ok();
  }
  Status KeepLeaseTick(const LeaseTick& tick) override {
    if (tick_ && tick_->lease >= tick.lease) return Ok();
    undo_.emplace_back([this, before = tick_] { tick_ = before; });
    tick_ = tick;
    return Ok();
  }

 private:
  template <class Condition>
  std::vector<Trial> Select(const std::string& job_id, int limit, const Condition& condition) {
    std::vector<Trial> selected;
    for (const auto& [number, trial] : records_.at(job_id).trials) {
      if (static_cast<int>(selected.size()) == limit) break;
      if (condition(trial)) selected.push_back(trial);
    }
    return selected;
  }

  std::map<std::string, Record>& records_;
  std::optional<LeaseTick>& tick_;
  std::vector<std::function<void()>> undo_{};
};

Status MemoryRepository::Write(const Change& change) {
  const std::scoped_lock lock(mutex_);
  Transaction transaction(records_, tick_);
  Status done = change(transaction);
  if (!done.ok()) transaction.Undo();
  return done;
}

const MemoryRepository::Record* MemoryRepository::Find(const std::string& id) const {
  const auto record = records_.find(id);
  return record == records_.end() ? nullptr : &record->second;
}

Result<Job> MemoryRepository::FindJob(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  const Record* record = Find(id);
  if (record == nullptr) return NoJob(id);
  return record->job;
}

Result<std::vector<Job>> MemoryRepository::ListJobs(const JobQuery& query) {
  const std::scoped_lock lock(mutex_);
  std::vector<Job> jobs;
  for (auto record = records_.upper_bound(query.after); record != records_.end(); ++record) {
    if (static_cast<int>(jobs.size()) >= query.limit) break;
    if (HasLabel(record->second.job, query)) jobs.push_back(record->second.job);
  }
  return jobs;
}

Result<Trial> MemoryRepository::FindTrial(const std::string& job_id, std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  const Record* record = Find(job_id);
  if (record == nullptr) return NoJob(job_id);
  const auto trial = record->trials.find(number);
  if (trial == record->trials.end())
    return Error{ErrorCode::kNotFound,
                 fmt::format("trial: job {} has no trial {}", job_id, number)};
  return trial->second;
}

Result<std::vector<Trial>> MemoryRepository::ListTrials(const std::string& job_id,
                                                        const TrialQuery& query) {
  const std::scoped_lock lock(mutex_);
  const Record* record = Find(job_id);
  if (record == nullptr) return NoJob(job_id);
  std::vector<Trial> trials;
  for (auto trial = record->trials.upper_bound(query.after); trial != record->trials.end();
       ++trial) {
    if (static_cast<int>(trials.size()) >= query.limit) break;
    if (!query.status || trial->second.status == *query.status) trials.push_back(trial->second);
  }
  return trials;
}

Result<std::vector<JobEvent>> MemoryRepository::ListEvents(const std::string& job_id,
                                                           std::int64_t after, int limit) {
  const std::scoped_lock lock(mutex_);
  const Record* record = Find(job_id);
  if (record == nullptr) return NoJob(job_id);
  std::vector<JobEvent> events;
  for (auto event = record->events.upper_bound(after); event != record->events.end(); ++event) {
    if (static_cast<int>(events.size()) >= limit) break;
    events.push_back(event->second);
  }
  return events;
}

Result<std::vector<std::string>> MemoryRepository::JobsWithOverdueTrials(WallTime now, int limit) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, record] : records_) {
    if (static_cast<int>(ids.size()) >= limit) break;
    if (std::any_of(record.trials.begin(), record.trials.end(),
                    [&](const auto& entry) { return IsOverdue(entry.second, now); }))
      ids.push_back(id);
  }
  return ids;
}

Result<std::optional<LeaseTick>> MemoryRepository::FindLeaseTick() {
  const std::scoped_lock lock(mutex_);
  return tick_;
}

Result<JobCounts> MemoryRepository::Count(const std::string& name_space) {
  const std::scoped_lock lock(mutex_);
  JobCounts counts;
  for (const auto& [id, record] : records_) {
    if (NameSpaceOf(id) != name_space) continue;
    ++counts.jobs;
    counts.trials += record.job.trials;
  }
  return counts;
}

Status MemoryRepository::Ping() { return Ok(); }

}  // namespace zeus
