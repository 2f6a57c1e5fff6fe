#include "zeus/replay/cluster/group_replay.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay {
namespace {

// A run whose result is not known yet.
struct RunUnderWay {
  TimePoint end{};
  Seconds duration{};
  double ratio = 1.0;
  Joules earlier{};  // Cost of the earlier attempts of the job.
  ReplayedRun run{};
};

// Orders the heap: the run that ends first is on top, and among those that end together the one
// submitted first.
bool EndsLater(const RunUnderWay& a, const RunUnderWay& b) {
  if (a.end != b.end) return a.end > b.end;
  return a.run.recurrence > b.run.recurrence;
}

// The discrete events of one group. Submissions are fed in the order of their starts; before each
// one, all runs that have ended by then are finished, in the order of their ends. Runs under way
// form a heap by their end.
class GroupEvents {
 public:
  explicit GroupEvents(JobReplay replay) : replay_(std::move(replay)) {}

  void Submit(const ClusterJob& job) {
    PassUntil(TimePoint(job.start));
    ++totals_.jobs;
    totals_.ratios += job.runtime_ratio;
    Start({.duration = job.end - job.start, .ratio = job.runtime_ratio}, next_recurrence_++, 0);
  }

  ClusterTotals Finish() {
    while (!under_way_.empty()) EndNext();
    return totals_;
  }

 private:
  void PassUntil(TimePoint moment) {
    while (!under_way_.empty() && under_way_.front().end <= moment) EndNext();
    clock_.SleepUntil(moment);
  }

  void EndNext() {
    std::ranges::pop_heap(under_way_, EndsLater);
    RunUnderWay ended = under_way_.back();
    under_way_.pop_back();
    clock_.SleepUntil(ended.end);
    if (ended.run.role == RunRole::kExploring) --exploring_;
    Finish(ended);
  }

  // The result of a run becomes known now: the policy learns it, and a failed job may try again.
  void Finish(RunUnderWay& ended) {
    const bool another = replay_.End(ended.run, ended.earlier);
    if (!another) {
      totals_.unfinished += ended.run.converged ? 0 : 1;
      return;
    }
    ended.earlier += ended.run.usage.cost;
    Start(ended, ended.run.recurrence, ended.run.attempt + 1);
  }

  void Start(RunUnderWay next, std::int64_t recurrence, int attempt) {
    next.run = replay_.Begin(recurrence, attempt, exploring_ > 0);
    // The policy found the run not worth an epoch: it takes no time, and the next attempt follows
    // at once.
    if (next.run.epochs == 0) return Finish(next);
    ++totals_.runs;
    totals_.retries += attempt > 0 ? 1 : 0;
    totals_.concurrent += next.run.role == RunRole::kConcurrent ? 1 : 0;
    totals_.usage += next.ratio * next.run.usage;
    if (next.run.role == RunRole::kExploring) ++exploring_;
    next.end = clock_.Now() + next.duration;
    under_way_.push_back(next);
    std::ranges::push_heap(under_way_, EndsLater);
  }

  JobReplay replay_;
  VirtualClock clock_{};
  std::vector<RunUnderWay> under_way_{};  // A heap ordered by EndsLater().
  std::int64_t exploring_ = 0;            // How many runs under way explore.
  std::int64_t next_recurrence_ = 0;
  ClusterTotals totals_{};
};

}  // namespace

ClusterTotals& ClusterTotals::operator+=(const ClusterTotals& other) {
  jobs += other.jobs;
  runs += other.runs;
  retries += other.retries;
  concurrent += other.concurrent;
  unfinished += other.unfinished;
  ratios += other.ratios;
  usage += other.usage;
  return *this;
}

Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions) {
  ZEUS_TRY(JobReplay replay, JobReplay::Make(job, spec, seed));
  GroupEvents events(std::move(replay));
  for (const ClusterJob& submission : submissions) events.Submit(submission);
  return events.Finish();
}

std::uint64_t GroupSeed(std::string_view group, std::uint64_t replay) {
  const auto* const bytes = reinterpret_cast<const Bytef*>(group.data());
  const std::uint64_t name = adler32_z(adler32_z(0, nullptr, 0), bytes, group.size());
  return name + (replay << 32U);
}

}  // namespace zeus::replay
