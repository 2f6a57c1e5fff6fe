// Each group is replayed alone, as discrete events on a virtual clock: a submission begins a run
// with the batch size that the policy chooses then, and the policy learns of it when the run is
// over. Runs that overlap therefore do not know of each other's results, as on a real cluster.
// Groups are spread over threads, the largest first, and summed in a fixed order afterwards, so the
// totals do not depend on the number of threads.
#include "zeus/replay/cluster/cluster_replay.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/parallel.h"
#include "zeus/base/text.h"
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
  // `ended` may be null; it gets every run that took time.
  GroupEvents(JobReplay replay, std::vector<EndedRun>* ended)
      : replay_(std::move(replay)), ended_(ended) {}

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
    if (ended_ != nullptr) ended_->push_back({.end = ended.end, .run = ended.run});
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
  std::vector<EndedRun>* ended_;
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

namespace {

Result<ClusterTotals> ReplayGroupEvents(const ReplayJob& job, const ContenderSpec& spec,
                                        std::uint64_t seed, std::span<const ClusterJob> submissions,
                                        std::vector<EndedRun>* ended) {
  ZEUS_TRY(JobReplay replay, JobReplay::Make(job, spec, seed));
  GroupEvents events(std::move(replay), ended);
  for (const ClusterJob& submission : submissions) events.Submit(submission);
  return events.Finish();
}

}  // namespace

Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions) {
  return ReplayGroupEvents(job, spec, seed, submissions, nullptr);
}

Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions,
                                  std::vector<EndedRun>& ended) {
  return ReplayGroupEvents(job, spec, seed, submissions, &ended);
}

std::uint64_t GroupSeed(std::string_view group, std::uint64_t replay) {
  const auto* const bytes = reinterpret_cast<const Bytef*>(group.data());
  const std::uint64_t name = adler32_z(adler32_z(0, nullptr, 0), bytes, group.size());
  return name + (replay << 32U);
}

// Every pair of group and contender is an independent task, and tasks are spread over threads.
// Determinism comes from two rules: the seed of a task depends only on the name of the group and
// the number of the replay, and results are summed in the order of the groups after all tasks have
// finished, because sums of doubles depend on their order.

namespace {

// Returns for each group the index of its job in `jobs`.
Result<std::vector<std::size_t>> JobsOfGroups(const ClusterTrace& trace,
                                              std::span<const ReplayJob> jobs) {
  std::vector<std::size_t> indices;
  indices.reserve(trace.groups.size());
  for (const ClusterGroup& group : trace.groups) {
    const auto found = std::ranges::find(jobs, group.workload, &ReplayJob::label);
    if (found == jobs.end())
      return Error{ErrorCode::kNotFound,
                   fmt::format("group {} runs {}, of which nothing is recorded", Quote(group.id),
                               Quote(group.workload))};
    indices.push_back(static_cast<std::size_t>(found - jobs.begin()));
  }
  return indices;
}

// Returns the groups with the most jobs first, so that no thread starts a long task last.
std::vector<std::size_t> LargestFirst(const ClusterTrace& trace) {
  std::vector<std::size_t> order(trace.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&trace](std::size_t i) { return trace.groups[i].job_count; });
  return order;
}

// Groups that learn from each other are replayed in the order in which they begin. Each begins with
// the knowledge of all runs that have ended by then, also of groups that go on.
class ClusterMemory {
 public:
  explicit ClusterMemory(std::shared_ptr<const PriorBook> before) {
    if (before) book_ = *before;
  }

  // Makes known what has ended by this moment.
  void PassUntil(TimePoint moment) {
    while (!waiting_.empty() && waiting_.front().ended.end <= moment) {
      std::ranges::pop_heap(waiting_, EndsLater);
      const Waiting& next = waiting_.back();
      Begun& job = begun_[next.job];
      if (!job.counted) job.kind = book_.AddJob(KindOf(*job.job));
      job.counted = true;
      book_.Add(job.kind, {.gpu_model = job.job->gpu_model,
                           .batch_size = next.ended.run.batch_size,
                           .converged = next.ended.run.converged,
                           .epochs = next.ended.run.epochs,
                           .epoch_cost = next.ended.run.epoch_cost});
      waiting_.pop_back();
    }
  }

  std::shared_ptr<const PriorBook> Book() const { return std::make_shared<PriorBook>(book_); }

  void Add(const ReplayJob& job, std::span<const EndedRun> ended) {
    begun_.push_back({.job = &job});
    for (const EndedRun& run : ended) {
      waiting_.push_back({.ended = run, .job = begun_.size() - 1, .number = next_number_++});
      std::ranges::push_heap(waiting_, EndsLater);
    }
  }

 private:
  struct Waiting {
    EndedRun ended{};
    std::size_t job = 0;      // Index into begun_.
    std::int64_t number = 0;  // Orders runs that end together.
  };
  // A group that was replayed. It counts as a job of its kind once a run of it has ended.
  struct Begun {
    const ReplayJob* job = nullptr;
    std::size_t kind = 0;
    bool counted = false;
  };
  static bool EndsLater(const Waiting& a, const Waiting& b) {
    if (a.ended.end != b.ended.end) return a.ended.end > b.ended.end;
    return a.number > b.number;
  }

  PriorBook book_{};
  std::vector<Begun> begun_{};
  std::vector<Waiting> waiting_{};  // A heap ordered by EndsLater().
  std::int64_t next_number_ = 0;
};

// Returns the groups in the order in which they begin.
std::vector<std::size_t> InOrderOfStart(const ClusterTrace& trace) {
  std::vector<std::size_t> order(trace.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&trace](std::size_t i) {
    const auto jobs = trace.GroupJobs(trace.groups[i]);
    return jobs.empty() ? Seconds(0) : jobs.front().start;
  });
  return order;
}

// Replays all groups under a contender that learns from other jobs; totals in the order of groups.
std::vector<Result<ClusterTotals>> ReplayInTurn(const ClusterTrace& trace,
                                                std::span<const ReplayJob> jobs,
                                                std::span<const std::size_t> job_of,
                                                ContenderSpec spec,
                                                const ClusterReplayOptions& options) {
  std::vector<Result<ClusterTotals>> results(trace.groups.size(), ClusterTotals{});
  ClusterMemory memory(spec.prior);
  for (const std::size_t index : InOrderOfStart(trace)) {
    const ClusterGroup& group = trace.groups[index];
    const auto submissions = trace.GroupJobs(group);
    if (submissions.empty()) continue;
    const ReplayJob& job = jobs[job_of[index]];
    memory.PassUntil(TimePoint(submissions.front().start));
    spec.prior = memory.Book();
    std::vector<EndedRun> ended;
    results[index] =
        ReplayGroup(job, spec, GroupSeed(group.id, options.replay), submissions, ended);
    memory.Add(job, ended);
    if (options.jobs_done) options.jobs_done(static_cast<std::int64_t>(group.job_count));
  }
  return results;
}

}  // namespace

void EnergyScatter::Add(Joules own, Joules usual) {
  *this += {.groups = 1,
            .own_squares = own.value() * own.value(),
            .products = own.value() * usual.value(),
            .default_squares = usual.value() * usual.value()};
}

EnergyScatter& EnergyScatter::operator+=(const EnergyScatter& other) {
  groups += other.groups;
  own_squares += other.own_squares;
  products += other.products;
  default_squares += other.default_squares;
  return *this;
}

Result<std::vector<WorkloadTotals>> ReplayCluster(const ClusterTrace& trace,
                                                  std::span<const ReplayJob> jobs,
                                                  const ClusterReplayOptions& options) {
  ZEUS_TRY(const std::vector<std::size_t> job_of, JobsOfGroups(trace, jobs));
  const std::size_t contenders = options.contenders.size();
  const std::vector<std::size_t> order = LargestFirst(trace);
  std::vector<Result<ClusterTotals>> results(order.size() * contenders, ClusterTotals{});
  ForEachIndex(results.size(), options.threads, [&](std::size_t task) {
    const std::size_t contender = task % contenders;
    if (LearnsFromOtherJobs(options.contenders[contender].name)) return;
    const std::size_t group = order[task / contenders];
    const ClusterGroup& submitted = trace.groups[group];
    results[group * contenders + contender] =
        ReplayGroup(jobs[job_of[group]], options.contenders[contender],
                    GroupSeed(submitted.id, options.replay), trace.GroupJobs(submitted));
    if (options.jobs_done) options.jobs_done(static_cast<std::int64_t>(submitted.job_count));
  });
  ForEachIndex(contenders, options.threads, [&](std::size_t contender) {
    if (!LearnsFromOtherJobs(options.contenders[contender].name)) return;
    auto in_turn = ReplayInTurn(trace, jobs, job_of, options.contenders[contender], options);
    for (std::size_t group = 0; group < in_turn.size(); ++group)
      results[group * contenders + contender] = std::move(in_turn[group]);
  });
  std::vector<WorkloadTotals> totals;
  for (const ReplayJob& job : jobs)
    totals.push_back({.workload = job.label,
                      .contenders = std::vector<ClusterTotals>(contenders),
                      .scatter = std::vector<EnergyScatter>(contenders)});
  const auto usual = static_cast<std::size_t>(
      std::ranges::find(options.contenders, "default", &ContenderSpec::name) -
      options.contenders.begin());
  // The order of the groups is fixed here: sums of doubles depend on it.
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) return std::move(results[i]).error();
    totals[job_of[i / contenders]].contenders[i % contenders] += results[i].value();
  }
  for (std::size_t i = 0; usual < contenders && i < results.size(); ++i)
    totals[job_of[i / contenders]].scatter[i % contenders].Add(
        results[i].value().usage.energy, results[i - i % contenders + usual].value().usage.energy);
  return totals;
}

std::vector<std::string> ByDefaultRuntime(std::span<const ReplayJob> jobs) {
  std::vector<const ReplayJob*> sorted;
  for (const ReplayJob& job : jobs) sorted.push_back(&job);
  std::ranges::stable_sort(sorted, {},
                           [](const ReplayJob* job) { return job->DefaultUsage().time; });
  std::vector<std::string> labels;
  for (const ReplayJob* const job : sorted) labels.push_back(job->label);
  return labels;
}

}  // namespace zeus::replay
