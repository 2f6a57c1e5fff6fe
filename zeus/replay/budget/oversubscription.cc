#include "zeus/replay/budget/oversubscription.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "zeus/base/parallel.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/budget/solver.h"

namespace zeus::replay {
namespace {

constexpr std::array kRules{BudgetRule::kUncapped, BudgetRule::kUniform, BudgetRule::kWaterFilling};
constexpr std::size_t kParts = 400;
// No cluster is larger; more is a mistake in the trace.
constexpr std::size_t kMostGpus = 1'000'000;

// A job of the trace without its group.
struct Work {
  Seconds start{};
  Seconds length{};  // Runtime without a cap.
  std::size_t curve = 0;
};

struct Running {
  std::size_t work = 0;
  Seconds started{};
  Seconds left{};  // Runtime that is left without a cap.
  Watts limit{};
};

Result<std::vector<Work>> WorksOf(const ClusterTrace& trace, std::span<const NamedCurve> curves) {
  std::map<std::string, std::vector<std::size_t>, std::less<>> of_workload;
  for (std::size_t c = 0; c < curves.size(); ++c) of_workload[curves[c].workload].push_back(c);
  std::map<std::string, std::size_t, std::less<>> groups;  // Groups so far of each workload.
  std::vector<Work> works;
  for (const ClusterGroup& group : trace.groups) {
    const auto candidates = of_workload.find(group.workload);
    if (candidates == of_workload.end())
      return Error{ErrorCode::kNotFound,
                   "there is no power curve of the workload " + Quote(group.workload)};
    const std::size_t turn = groups[group.workload]++;
    for (const ClusterJob& job : trace.GroupJobs(group)) {
      if (job.end > job.start)
        works.push_back({.start = job.start,
                         .length = job.end - job.start,
                         .curve = candidates->second[turn % candidates->second.size()]});
    }
  }
  std::ranges::stable_sort(works, {}, &Work::start);
  return works;
}

// Returns the largest number of jobs that run at once without caps.
std::size_t MostAtOnce(std::span<const Work> works) {
  std::vector<std::pair<Seconds, int>> changes;
  for (const Work& work : works) {
    changes.emplace_back(work.start, 1);
    changes.emplace_back(work.start + work.length, -1);
  }
  std::ranges::sort(changes);
  int now = 0;
  int most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<std::size_t>(most);
}

// The trace on the GPUs, by one rule and with one budget. Used once.
class Simulation {
 public:
  Simulation(std::span<const Work> works, std::span<const NamedCurve> curves,
             const OversubscriptionOptions& options, OversubscriptionRun run)
      : works_(works), curves_(curves), options_(options), run_(std::move(run)) {
    for (const NamedCurve& curve : curves) {
      highest_ = std::max(highest_, curve.curve->highest());
      lowest_ = std::max(lowest_, curve.curve->lowest());
    }
    run_.budget = static_cast<double>(options.gpus) * highest_ / (1 + run_.more);
  }

  OversubscriptionRun Finish() {
    now_ = works_.front().start;
    while (next_ < works_.size() || !running_.empty()) {
      if (running_.empty()) SkipTo(works_[next_].start);
      Start();
      Share();
      Advance();
    }
    Summarize();
    return std::move(run_);
  }

 private:
  double Idle() const { return static_cast<double>(options_.gpus - running_.size()); }

  void SkipTo(Seconds start) {
    if (start <= now_) return;
    const double periods = std::ceil((start - now_) / options_.period);
    const Seconds time = periods * options_.period;
    Note(static_cast<double>(options_.gpus) * options_.idle, time);
    now_ += time;
  }

  void Start() {
    while (next_ < works_.size() && works_[next_].start <= now_ &&
           running_.size() < options_.gpus) {
      running_.push_back({.work = next_,
                          .started = now_,
                          .left = works_[next_].length,
                          .limit = CurveOf(next_).lowest()});
      changed_ = true;
      ++next_;
    }
  }

  const water_filling::PowerCurve& CurveOf(std::size_t work) const {
    return *curves_[works_[work].curve].curve;
  }

  // Limits are shared out anew when the jobs have changed.
  void Share() {
    if (!changed_) return;
    changed_ = false;
    const std::vector<Watts> limits = Limits();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].started < now_) {
        swing_ += std::abs((limits[i] - running_[i].limit).value());
        ++swings_;
      }
      running_[i].limit = limits[i];
    }
  }

  std::vector<Watts> Limits() {
    std::vector<Watts> limits;
    if (run_.rule == BudgetRule::kWaterFilling) return Filled();
    const Watts cap = run_.rule == BudgetRule::kUncapped ? highest_ : highest_ / (1 + run_.more);
    for (const Running& job : running_) {
      const water_filling::PowerCurve& curve = CurveOf(job.work);
      limits.push_back(std::clamp(cap, curve.lowest(), curve.highest()));
    }
    return limits;
  }

  std::vector<Watts> Filled() {
    const bool limits_count = options_.resource == water_filling::Resource::kLimits;
    water_filling::Problem problem{.resource = options_.resource, .objective = options_.objective};
    // An idle GPU keeps room for the lowest limit at which its next job starts.
    problem.domains = {{.name = "cluster",
                        .watts = run_.budget,
                        .reserved = Idle() * (limits_count ? lowest_ : options_.idle)}};
    for (const Running& job : running_)
      problem.jobs.push_back({.curve = curves_[works_[job.work].curve].curve,
                              .placements = {{.domain = 0, .gpus = 1}}});
    const auto solved = Solve(problem);
    if (!solved.ok()) return std::vector<Watts>(running_.size(), lowest_);
    std::vector<Watts> limits;
    short_now_ = solved.value().shortfall.has_value();
    for (const water_filling::JobGrant& grant : solved.value().jobs) limits.push_back(grant.limit);
    return limits;
  }

  // Lets a period pass. The GPU of a job that ends in it is idle for the rest of it.
  void Advance() {
    Watts draw = Idle() * options_.idle;
    for (Running& job : running_) {
      const water_filling::CurvePoint at = CurveOf(job.work).At(job.limit);
      const Seconds progress = options_.period / at.slowdown;
      const Seconds used = std::min(job.left, progress) * at.slowdown;
      draw += (used / options_.period) * at.draw + (1 - used / options_.period) * options_.idle;
      job.left -= progress;
      if (job.left <= Seconds(0)) End(job, used);
    }
    changed_ =
        std::erase_if(running_, [](const Running& job) { return job.left <= Seconds(0); }) > 0;
    Note(draw, options_.period);
    if (run_.rule == BudgetRule::kWaterFilling && short_now_) short_time_ += options_.period;
    now_ += options_.period;
  }

  void End(const Running& job, Seconds used_now) {
    const Work& work = works_[job.work];
    const Seconds took = now_ + used_now - job.started;
    took_[work.curve] += took;
    worked_[work.curve] += work.length;
    slowdowns_.push_back(took / work.length);
  }

  void Note(Watts draw, Seconds time) {
    run_.energy += draw * time;
    run_.highest_draw = std::max(run_.highest_draw, draw);
    if (draw > run_.budget * (1 + 1e-9)) over_ += time;
    elapsed_ += time;
    used_.push_back({.until = elapsed_, .energy = run_.energy});
  }

  void Summarize() {
    Seconds took{};
    Seconds worked{};
    for (std::size_t c = 0; c < curves_.size(); ++c) {
      run_.slowdown_of_curve.push_back(worked_[c] > Seconds(0) ? took_[c] / worked_[c]
                                                               : std::nan(""));
      took += took_[c];
      worked += worked_[c];
    }
    run_.mean_slowdown = took / worked;
    std::ranges::sort(slowdowns_);
    run_.p99_slowdown = slowdowns_[static_cast<std::size_t>(
        std::floor(0.99 * static_cast<double>(slowdowns_.size() - 1)))];
    run_.worst_slowdown = slowdowns_.back();
    run_.throughput = (1 + run_.more) / run_.mean_slowdown - 1;
    run_.over = over_ / elapsed_;
    run_.short_of_watts = short_time_ / elapsed_;
    run_.swing = Watts(swings_ > 0 ? swing_ / static_cast<double>(swings_) : 0);
    AddDraws();
  }

  void AddDraws() {
    const std::size_t parts = std::min(kParts, used_.size());
    const Seconds width = elapsed_ / static_cast<double>(parts);
    for (std::size_t part = 0; part < parts; ++part) {
      const Seconds from = width * static_cast<double>(part);
      run_.draw.push_back((EnergyUntil(from + width) - EnergyUntil(from)) / width);
    }
  }

  Joules EnergyUntil(Seconds time) const {
    const auto after = std::ranges::lower_bound(used_, time, {}, &Used::until);
    if (after == used_.end()) return run_.energy;
    const Used before = after == used_.begin() ? Used{} : *std::prev(after);
    const double share = (time - before.until) / (after->until - before.until);
    return before.energy + share * (after->energy - before.energy);
  }

  std::span<const Work> works_;
  std::span<const NamedCurve> curves_;
  const OversubscriptionOptions& options_;
  OversubscriptionRun run_;
  Watts highest_{};
  Watts lowest_{};
  Seconds now_{};
  std::size_t next_ = 0;  // Index of the next job to start.
  std::vector<Running> running_{};
  bool changed_ = true;
  bool short_now_ = false;
  std::vector<Seconds> took_ = std::vector<Seconds>(curves_.size());
  std::vector<Seconds> worked_ = std::vector<Seconds>(curves_.size());
  std::vector<double> slowdowns_{};
  Seconds elapsed_{};
  Seconds over_{};
  Seconds short_time_{};
  double swing_ = 0;
  std::size_t swings_ = 0;
  struct Used {
    Seconds until{};  // Since the first start.
    Joules energy{};  // All that was used until then.
  };
  std::vector<Used> used_{};
};

Status Check(const OversubscriptionOptions& options) {
  if (options.more.empty()) return InvalidArgument("no number of additional GPUs was given");
  for (const double more : options.more) {
    if (!(std::isfinite(more) && more >= 0 && more <= 10))
      return InvalidArgument(
          fmt::format("{} more GPUs per GPU: it must be from 0 to 10 (0.3 for 30 % more)", more));
  }
  if (!(std::isfinite(options.period.count()) && options.period >= Seconds(1)))
    return InvalidArgument("the period must be a second at least");
  if (!(std::isfinite(options.idle.value()) && options.idle >= Watts(0)))
    return InvalidArgument("the idle power must be 0 or more");
  if (!(std::isfinite(options.accepted) && options.accepted >= 1))
    return InvalidArgument(
        fmt::format("an accepted slowdown of {}: it must be 1 or more (1.05 for 5 % longer)",
                    options.accepted));
  return Ok();
}

// Fills in what is known before any run.
void Describe(std::span<const Work> works, Oversubscription& study) {
  Seconds last{};
  Seconds worked{};
  for (const Work& work : works) {
    last = std::max(last, work.start + work.length);
    worked += work.length;
  }
  study.jobs = works.size();
  study.span = last - works.front().start;
  study.busy = worked / (static_cast<double>(study.gpus) * study.span);
}

}  // namespace

std::string_view ToText(BudgetRule rule) {
  switch (rule) {
    case BudgetRule::kUncapped:
      return "uncapped";
    case BudgetRule::kUniform:
      return "uniform";
    case BudgetRule::kWaterFilling:
      return "water-filling";
  }
  return "";
}

Result<std::vector<NamedCurve>> CurvesOf(std::span<const ReplayJob> jobs) {
  std::vector<NamedCurve> curves;
  for (const ReplayJob& job : jobs) {
    for (const ReplayArm& arm : job.arms) {
      if (arm.limits.size() < 2) continue;
      std::vector<water_filling::CurveSample> samples;
      for (const LimitRecord& record : arm.limits)
        samples.push_back({.limit = record.limit, .time = record.epoch.time, .draw = record.power});
      auto curve = water_filling::PowerCurve::FromSamples(samples);
      const std::string name = fmt::format("{}, batch size {}", job.title, arm.batch_size);
      if (!curve.ok()) return std::move(curve).error().While(name);
      curves.push_back(
          {.name = name,
           .workload = job.label,
           .curve = std::make_shared<const water_filling::PowerCurve>(std::move(curve).value())});
    }
  }
  return curves;
}

std::optional<double> Oversubscription::MoreAtAccepted(BudgetRule rule) const {
  const OversubscriptionRun* before = nullptr;
  for (const OversubscriptionRun& run : runs) {
    if (run.rule != rule) continue;
    if (run.mean_slowdown > options.accepted) {
      if (!before) return 0;
      const double share =
          (options.accepted - before->mean_slowdown) / (run.mean_slowdown - before->mean_slowdown);
      return std::lerp(before->more, run.more, share);
    }
    before = &run;
  }
  return std::nullopt;
}

Result<Oversubscription> StudyOversubscription(const ClusterTrace& trace,
                                               std::vector<NamedCurve> curves,
                                               const OversubscriptionOptions& options) {
  ZEUS_RETURN_IF_ERROR(Check(options));
  Oversubscription study{.curves = std::move(curves), .options = options};
  ZEUS_TRY(const std::vector<Work> works, WorksOf(trace, study.curves));
  if (works.empty()) return InvalidArgument("the trace has no job that takes any time");
  std::ranges::sort(study.options.more);
  if (study.options.gpus == 0) study.options.gpus = MostAtOnce(works);
  study.gpus = study.options.gpus;
  if (study.gpus > kMostGpus)
    return InvalidArgument(
        fmt::format("{} GPUs: at most {} can be studied", study.gpus, kMostGpus));
  Describe(works, study);
  for (const BudgetRule rule : kRules) {
    for (const double more : study.options.more) study.runs.push_back({.rule = rule, .more = more});
  }
  ForEachIndex(study.runs.size(), options.threads, [&](std::size_t i) {
    study.runs[i] = Simulation(works, study.curves, study.options, study.runs[i]).Finish();
  });
  return study;
}

}  // namespace zeus::replay
