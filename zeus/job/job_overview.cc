// A job's saving over some of its recurrences is what so many undisturbed runs would have taken
// less what is charged to them. Its variance has two parts. That of the baseline's mean is the same
// mean for all spans, so its sigma is proportional to the number of trainings. That of the charged
// amounts is proportional to the number of recurrences. Over all spans they add up to the variance
// in savings.cc.
#include "zeus/job/job_overview.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/job/job_policy.h"
#include "zeus/job/memory_repository.h"

namespace zeus {

Result<JobOverview> MakeOverview(const Job& job, std::span<const Trial> trials) {
  JobOverview overview{.job = job};
  for (const Trial& trial : trials)
    if (IsActive(trial.status)) overview.running.push_back(trial);
  const bool exploring = std::ranges::any_of(
      overview.running, [](const Trial& t) { return t.role == RunRole::kExploring; });
  ZEUS_TRY(overview.arms, DescribeArms(job, "", exploring));
  overview.savings = ComputeSavings({.spec = job.spec, .trials = trials});
  overview.recurrences = ByRecurrence(trials);
  overview.charged = ChargedRecurrences(trials, overview.savings.gpu_model);
  if (!trials.empty()) overview.latest = trials.back();
  return overview;
}

Result<JobOverviews::Overview> JobOverviews::Of(JobService& service, const Job& job,
                                                const std::string& key) {
  if (Overview known = Find(key, job)) return known;
  ZEUS_TRY(const std::vector<Trial> trials, AllTrials(service, job.spec.id));
  ZEUS_TRY(JobOverview made, MakeOverview(job, trials));
  Overview overview = std::make_shared<const JobOverview>(std::move(made));
  Keep(key, overview);
  return overview;
}

JobOverviews::Overview JobOverviews::Find(const std::string& key, const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  const Overview& known = place->second->overview;
  if (known->job.events != job.events || known->job.created_at != job.created_at) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  return known;
}

void JobOverviews::Keep(const std::string& key, Overview overview) {
  const auto size = [](const Entry& entry) { return entry.overview->recurrences.size() + 1; };
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(key); place != places_.end()) {
    held_ -= size(*place->second);
    entries_.erase(place->second);
    places_.erase(place);
  }
  entries_.push_front({.key = key, .overview = std::move(overview)});
  places_[key] = entries_.begin();
  held_ += size(entries_.front());
  while (held_ > most_ && entries_.size() > 1) {
    held_ -= size(entries_.back());
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

namespace {

// The charged recurrences of one job in a span.
struct Charge {
  int recurrences = 0;
  int reached = 0;
  Joules energy{};
  Seconds time{};
};

Charge ChargeIn(const JobOverview& job, const SpanSavings& span) {
  Charge charge;
  for (const ChargedRecurrence& recurrence : job.charged) {
    if (recurrence.ended_at < span.from || recurrence.ended_at >= span.until) continue;
    ++charge.recurrences;
    charge.reached += recurrence.reached ? 1 : 0;
    charge.energy += recurrence.energy;
    charge.time += recurrence.time;
  }
  return charge;
}

// The variances of an amount of a job in a span: of what undisturbed runs would have taken, and of
// what is charged.
struct Variances {
  double baseline = 0;
  double own = 0;
  double sum() const { return baseline + own; }
};

Variances VariancesOf(const JobOverview& job, const Charge& charge,
                      MeanAmount UsualAmounts::*amount) {
  const double baseline = charge.reached * (job.savings.baseline.*amount).sigma.value_or(0);
  const double all = job.savings.zeus.count * (job.savings.zeus.*amount).sigma.value_or(0);
  const double share =
      static_cast<double>(charge.recurrences) / static_cast<double>(job.charged.size());
  return {.baseline = baseline * baseline, .own = all * all * share};
}

// Sets the percentage of a span and its sigma: that of a ratio of two sums, as in savings.cc.
void SetPercent(const Variances& energy, SpanSavings& span) {
  const double undisturbed = span.energy + span.charged.value();
  if (!(undisturbed > 0)) return;
  const double ratio = span.charged.value() / undisturbed;
  span.energy_percent = 100 * (1 - ratio);
  span.energy_percent_sigma =
      100 / undisturbed * std::sqrt(energy.own + ratio * ratio * energy.baseline);
}

// Adds a job to the sums of a span, and its variances of energy to `energy`.
void Add(const JobOverview& job, SpanSavings& span, Variances& energy) {
  const Charge charge = ChargeIn(job, span);
  if (charge.recurrences == 0) return;
  if (!job.savings.saved) {
    span.unknown.push_back(job.job.spec.id);
    return;
  }
  ++span.jobs;
  span.recurrences += charge.reached;
  span.charged += charge.energy;
  span.energy += charge.reached * job.savings.baseline.energy.mean - charge.energy.value();
  span.time += charge.reached * job.savings.baseline.time.mean - charge.time.count();
  const Variances of_energy = VariancesOf(job, charge, &UsualAmounts::energy);
  energy.baseline += of_energy.baseline;
  energy.own += of_energy.own;
  span.time_sigma += VariancesOf(job, charge, &UsualAmounts::time).sum();
}

}  // namespace

std::vector<SpanSavings> SavingsBetween(std::span<const JobOverviews::Overview> jobs,
                                        std::span<const WallTime> bounds) {
  std::vector<SpanSavings> spans;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    SpanSavings& span = spans.emplace_back(SpanSavings{.from = bounds[i], .until = bounds[i + 1]});
    Variances energy;
    for (const JobOverviews::Overview& job : jobs) Add(*job, span, energy);
    span.energy_sigma = std::sqrt(energy.sum());
    span.time_sigma = std::sqrt(span.time_sigma);  // A variance until here.
    SetPercent(energy, span);
  }
  return spans;
}

}  // namespace zeus
