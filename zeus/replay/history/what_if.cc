#include "zeus/replay/history/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/replay/history/translation.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay {
namespace {

ReplayJob MakeReplayJob(const MeasuredJob& measured, double eta, Watts max_power,
                        std::vector<std::vector<LimitRecord>> limits) {
  ReplayJob job{.gpu_model = measured.gpu_model,
                .label = measured.spec.id,
                .title = measured.spec.id,
                .max_epochs = measured.spec.max_epochs,
                .default_batch_size = measured.default_arm().batch_size,
                .eta = eta,
                .max_power = max_power};
  for (std::size_t i = 0; i < measured.arms.size(); ++i)
    job.arms.push_back(MakeArm(measured.arms[i].batch_size, measured.arms[i].epochs_to_target,
                               std::move(limits[i]), eta, max_power));
  return job;
}

ReplayJob AsMeasured(const MeasuredJob& measured, double eta) {
  std::vector<std::vector<LimitRecord>> limits;
  for (const MeasuredArm& arm : measured.arms) limits.push_back(arm.limits);
  return MakeReplayJob(measured, eta, measured.max_power, std::move(limits));
}

ReplayJob Translated(const MeasuredJob& measured, double eta, const Translation& translation) {
  std::vector<std::vector<LimitRecord>> limits;
  for (const MeasuredArm& arm : measured.arms)
    limits.push_back(TranslateLimits(measured, arm, translation));
  const double scale = translation.to->limit_range.max / translation.from->limit_range.max;
  return MakeReplayJob(measured, eta, scale * measured.max_power, std::move(limits));
}

// The job as it would be: the likeliest first, then with every other workload as translator.
struct Scenario {
  std::vector<ReplayJob> jobs{};
  std::string gpu_model{};
};

Result<const sim::GpuModel*> Target(const WhatIfQuestion& question, const sim::GpuModel* from) {
  if (question.gpu_model.empty()) return from;
  const sim::GpuModel* const to = CatalogueModel(question.gpu_model);
  if (to != nullptr) return to;
  return sim::FindGpuModel(question.gpu_model);  // Whose error lists the models.
}

Result<Scenario> MakeScenario(const MeasuredJob& measured, const WhatIfQuestion& question,
                              double eta, WhatIfAnswer& answer) {
  const sim::GpuModel* const from = CatalogueModel(measured.gpu_model);
  ZEUS_TRY(const sim::GpuModel* const to, Target(question, from));
  if (from == nullptr && to != nullptr)
    return Error{
        ErrorCode::kNotSupported,
        fmt::format("{} is not in the built-in catalogue, so nothing is known about how it "
                    "compares with {}",
                    Quote(measured.gpu_model), to->id)};
  if (from == nullptr) {
    answer.unknown.push_back(
        fmt::format("{} is not in the built-in catalogue: only power limits "
                    "that were really set can be chosen.",
                    Printable(measured.gpu_model)));
    return Scenario{.jobs = {AsMeasured(measured, eta)}, .gpu_model = measured.gpu_model};
  }
  const sim::Workload& nearest = NearestWorkload(measured, *from);
  Scenario scenario{.gpu_model = from == to ? measured.gpu_model : std::string(to->id)};
  scenario.jobs.push_back(Translated(measured, eta, {&nearest, from, to}));
  for (const sim::Workload& workload : sim::Workloads())
    if (&workload != &nearest)
      scenario.jobs.push_back(Translated(measured, eta, {&workload, from, to}));
  answer.estimated.push_back(fmt::format(
      "{} by how {} of the built-in catalogue, which is most like it in power, behaves there; "
      "ranges say what comes out if it behaves like another workload of it.",
      from == to ? "Power limits that were never set are filled in"
                 : fmt::format("Time and power on {} are carried over from {}", to->id, from->id),
      nearest.name));
  return scenario;
}

struct Totals {
  std::vector<double> energy{}, time{}, cost{}, reached{};  // By seed.
};

Result<Totals> ReplayAll(const ReplayJob& job, const ContenderSpec& contender,
                         std::int64_t recurrences, int seeds) {
  Totals totals;
  for (int seed = 0; seed < seeds; ++seed) {
    ZEUS_TRY(JobReplay replay, JobReplay::Make(job, contender, static_cast<std::uint64_t>(seed)));
    Usage usage;
    double reached = 0.0;
    for (std::int64_t i = 0; i < recurrences; ++i) {
      const ReplayedRecurrence& recurrence = replay.Next();
      usage += recurrence.usage;
      if (recurrence.converged()) ++reached;
    }
    totals.energy.push_back(usage.energy.value());
    totals.time.push_back(usage.time.count());
    totals.cost.push_back(usage.cost.value());
    totals.reached.push_back(reached / static_cast<double>(recurrences));
  }
  return totals;
}

Estimate EstimateOf(const std::vector<Totals>& by_translation,
                    std::vector<double> Totals::*figure) {
  const SampleSummary likeliest = zeus::Summarize(by_translation.front().*figure);
  Estimate estimate{.mean = likeliest.mean,
                    .deviation = likeliest.StandardDeviation(),
                    .low = likeliest.mean,
                    .high = likeliest.mean};
  for (const Totals& totals : by_translation) {
    const double mean = zeus::Summarize(totals.*figure).mean;
    estimate.low = std::min(estimate.low, mean);
    estimate.high = std::max(estimate.high, mean);
  }
  return estimate;
}

Result<WhatIfOutcome> OutcomeOf(const Scenario& scenario, const ContenderSpec& contender,
                                std::int64_t recurrences, int seeds) {
  std::vector<Totals> by_translation;
  for (const ReplayJob& job : scenario.jobs) {
    ZEUS_TRY(Totals totals, ReplayAll(job, contender, recurrences, seeds));
    by_translation.push_back(std::move(totals));
  }
  return WhatIfOutcome{.contender = contender.name,
                       .energy = EstimateOf(by_translation, &Totals::energy),
                       .time = EstimateOf(by_translation, &Totals::time),
                       .cost = EstimateOf(by_translation, &Totals::cost),
                       .reached = EstimateOf(by_translation, &Totals::reached)};
}

void DescribeMeasured(const MeasuredJob& measured, WhatIfAnswer& answer) {
  for (const MeasuredArm& arm : measured.arms) {
    const std::size_t runs = arm.epochs_to_target.size();
    std::vector<double> limits;
    for (const LimitRecord& record : arm.limits) limits.push_back(record.limit.value());
    answer.measured.push_back(fmt::format("Batch size {}: {} run{}, at {} W.", arm.batch_size, runs,
                                          runs == 1 ? "" : "s", fmt::join(limits, ", ")));
  }
  for (const std::string& remark : measured.remarks) answer.unknown.push_back(remark);
}

}  // namespace

Result<WhatIfAnswer> Answer(const RunHistory& history, const WhatIfQuestion& question) {
  ZEUS_TRY(const MeasuredJob measured, MeasureHistory(history, ""));
  const double eta = question.eta.value_or(measured.spec.eta);
  WhatIfAnswer answer{
      .job_id = measured.spec.id,
      .recorded_gpu_model = measured.gpu_model,
      .eta = eta,
      .recorded_recurrences = measured.recurrences,
      .recorded = {.time = measured.time,
                   .energy = measured.energy,
                   .cost = ZeusCostOf(eta, measured.max_power, measured.energy, measured.time)},
      .recurrences = question.recurrences > 0 ? question.recurrences : measured.recurrences};
  DescribeMeasured(measured, answer);
  ZEUS_TRY(const Scenario scenario, MakeScenario(measured, question, eta, answer));
  answer.gpu_model = scenario.gpu_model;
  const ReplayJob& likeliest = scenario.jobs.front();
  if (likeliest.HasOracle()) {
    answer.best_batch_size = likeliest.oracle().batch_size;
    answer.best_limit = likeliest.oracle().best_limit;
  } else {
    answer.unknown.emplace_back("No batch size reached the target in all of its runs.");
  }
  for (const ContenderSpec& contender : question.contenders) {
    ZEUS_TRY(WhatIfOutcome outcome,
             OutcomeOf(scenario, contender, answer.recurrences, question.seeds));
    answer.outcomes.push_back(std::move(outcome));
  }
  return answer;
}

}  // namespace zeus::replay
