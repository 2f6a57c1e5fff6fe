#include "zeus/replay/history/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {
namespace {

// Limits closer than this count as the same.
constexpr Watts kSameLimit(5.0);

// Maps a batch size to one of the workload by its ratio to the default: batch sizes of different
// workloads have nothing else in common.
unsigned CorrespondingBatchSize(const MeasuredJob& job, const MeasuredArm& arm,
                                const sim::Workload& workload) {
  const double of_default = static_cast<double>(arm.batch_size) / job.spec.default_batch_size;
  return static_cast<unsigned>(std::max(1.0, std::round(workload.default_batch_size * of_default)));
}

// Clamps the limit to the model's range. nullopt: the catalogue cannot predict this point.
std::optional<sim::OperatingPoint> PredictAt(const sim::GpuModel& model,
                                             const sim::Workload& workload, unsigned batch_size,
                                             Watts limit) {
  const Watts possible = std::clamp(limit, model.limit_range.min, model.limit_range.max);
  const auto point =
      sim::Predict(model, workload, batch_size, {.power_limit = possible, .clock_cap = {}});
  return point.ok() ? std::optional(point.value()) : std::nullopt;
}

Watts Distance(Watts a, Watts b) { return a < b ? b - a : a - b; }

const LimitRecord& NearestLimit(const MeasuredArm& arm, Watts limit) {
  return *std::ranges::min_element(
      arm.limits, {}, [limit](const LimitRecord& record) { return Distance(record.limit, limit); });
}

}  // namespace

const sim::GpuModel* CatalogueModel(std::string_view gpu_model) {
  const std::string wanted = LowerCase(gpu_model);
  for (const sim::GpuModel& model : sim::GpuModels())
    if (wanted == LowerCase(model.id) || wanted == LowerCase(model.name)) return &model;
  for (const sim::GpuModel& model : sim::GpuModels())
    if (wanted.find(LowerCase(model.id)) != std::string::npos) return &model;
  return nullptr;
}

const sim::Workload& NearestWorkload(const MeasuredJob& job, const sim::GpuModel& model) {
  const auto distance = [&](const sim::Workload& workload) {
    double sum = 0.0;
    for (const MeasuredArm& arm : job.arms) {
      for (const LimitRecord& record : arm.limits) {
        const auto point =
            PredictAt(model, workload, CorrespondingBatchSize(job, arm, workload), record.limit);
        if (!point) continue;
        const double per_gpu = record.power.value() / std::max(1, job.spec.number_of_gpus);
        sum += std::pow(std::log(per_gpu / point->average_power.value()), 2);
      }
    }
    return sum;
  };
  return *std::ranges::min_element(sim::Workloads(), {}, distance);
}

std::vector<LimitRecord> TranslateLimits(const MeasuredJob& job, const MeasuredArm& arm,
                                         const Translation& translation) {
  const bool same_model = translation.from == translation.to;
  std::vector<LimitRecord> limits;
  if (same_model) limits = arm.limits;
  const unsigned batch_size = CorrespondingBatchSize(job, arm, *translation.workload);
  for (const Watts limit : CatalogueLimits(*translation.to)) {
    const LimitRecord& known = NearestLimit(arm, limit);
    if (same_model && Distance(known.limit, limit) < kSameLimit) continue;
    const auto before =
        PredictAt(*translation.from, *translation.workload, batch_size, known.limit);
    const auto after = PredictAt(*translation.to, *translation.workload, batch_size, limit);
    if (!before || !after) continue;
    const Seconds time = after->time_per_epoch / before->time_per_epoch * known.epoch.time;
    const Watts power = after->average_power / before->average_power * known.power;
    limits.push_back(
        {.limit = limit, .power = power, .epoch = {.time = time, .energy = power * time}});
  }
  std::ranges::sort(limits, {}, &LimitRecord::limit);
  return limits;
}

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

// The job under the asked conditions: first translated by the likeliest workload of the catalogue,
// then by each of the others.
struct Scenario {
  std::vector<ReplayJob> jobs{};
  std::string gpu_model{};
};

Result<const sim::GpuModel*> FindTarget(const WhatIfQuestion& question, const sim::GpuModel* from) {
  if (question.gpu_model.empty()) return from;
  const sim::GpuModel* const to = CatalogueModel(question.gpu_model);
  if (to != nullptr) return to;
  return sim::FindGpuModel(question.gpu_model);  // Its error lists the models.
}

Result<Scenario> MakeScenario(const MeasuredJob& measured, const WhatIfQuestion& question,
                              double eta, WhatIfAnswer& answer) {
  const sim::GpuModel* const from = CatalogueModel(measured.gpu_model);
  ZEUS_TRY(const sim::GpuModel* const to, FindTarget(question, from));
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
  std::vector<double> energy{}, time{}, cost{}, reached{};  // One entry per seed.
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

Estimate MakeEstimate(const std::vector<Totals>& by_translation,
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

Result<WhatIfOutcome> ReplayOutcome(const Scenario& scenario, const ContenderSpec& contender,
                                    std::int64_t recurrences, int seeds) {
  std::vector<Totals> by_translation;
  for (const ReplayJob& job : scenario.jobs) {
    ZEUS_TRY(Totals totals, ReplayAll(job, contender, recurrences, seeds));
    by_translation.push_back(std::move(totals));
  }
  return WhatIfOutcome{.contender = contender.name,
                       .energy = MakeEstimate(by_translation, &Totals::energy),
                       .time = MakeEstimate(by_translation, &Totals::time),
                       .cost = MakeEstimate(by_translation, &Totals::cost),
                       .reached = MakeEstimate(by_translation, &Totals::reached)};
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
                   .cost =
                       ComputeZeusCost(eta, measured.max_power, measured.energy, measured.time)},
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
             ReplayOutcome(scenario, contender, answer.recurrences, question.seeds));
    answer.outcomes.push_back(std::move(outcome));
  }
  return answer;
}

namespace {

struct ColumnUnit {
  double size;  // In joules or seconds.
  const char* name;
};

// Returns the largest unit that does not exceed the largest number of the column, so that a job of
// a few kilojoules is not shown as 0.003 MJ, and one of weeks not as 1000000 s.
template <std::size_t kCount>
ColumnUnit UnitFor(double largest, const std::array<ColumnUnit, kCount>& units) {
  for (const ColumnUnit& unit : units)
    if (largest >= unit.size) return unit;
  return units.back();
}

ColumnUnit EnergyUnitFor(double largest) {
  constexpr std::array kUnits = {ColumnUnit{1e9, "GJ"}, ColumnUnit{1e6, "MJ"},
                                 ColumnUnit{1e3, "kJ"}, ColumnUnit{1, "J"}};
  return UnitFor(largest, kUnits);
}

ColumnUnit TimeUnitFor(double largest) {
  constexpr std::array kUnits = {ColumnUnit{86400, "d"}, ColumnUnit{3600, "h"},
                                 ColumnUnit{60, "min"}, ColumnUnit{1, "s"}};
  return UnitFor(largest, kUnits);
}

// Energy and cost share one unit, so that they can be compared.
struct AnswerUnits {
  ColumnUnit energy;
  ColumnUnit time;
};

AnswerUnits ChooseUnits(const WhatIfAnswer& answer) {
  double energy = std::max(answer.recorded.energy.value(), answer.recorded.cost.value());
  double time = answer.recorded.time.count();
  for (const WhatIfOutcome& outcome : answer.outcomes) {
    energy = std::max({energy, outcome.energy.mean, outcome.cost.mean});
    time = std::max(time, outcome.time.mean);
  }
  return {.energy = EnergyUnitFor(energy), .time = TimeUnitFor(time)};
}

Json ToJson(const Estimate& estimate) {
  return {{"mean", estimate.mean},
          {"deviation", estimate.deviation},
          {"low", estimate.low},
          {"high", estimate.high}};
}

// "12.3 ± 0.4 (11.9 to 13.0)"
report::Cell EstimateCell(const Estimate& estimate, double unit) {
  std::string text = FixedWithSigma(estimate.mean / unit, estimate.deviation / unit, 3);
  if (estimate.low != estimate.high)
    text += fmt::format(" ({:.3f} to {:.3f})", estimate.low / unit, estimate.high / unit);
  return {.text = std::move(text), .value = estimate.mean / unit};
}

report::Cell Number(double value, int decimals) {
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

bool Reaches(const WhatIfOutcome& outcome) { return outcome.reached.mean > 0.0; }

// A policy that never reaches the target saves nothing, however little it uses: the report says so.
void AddFailures(const WhatIfAnswer& answer, report::Report& report) {
  std::vector<std::string> never;
  for (const WhatIfOutcome& outcome : answer.outcomes)
    if (!Reaches(outcome)) never.push_back(outcome.contender);
  if (never.empty()) return;
  report.findings.push_back(fmt::format(
      "The target is not reached by {}: what {} is what failing takes, and cannot be "
      "compared.",
      never.size() == answer.outcomes.size() ? "any policy"
                                             : fmt::format("{}", fmt::join(never, ", ")),
      never.size() == 1 ? "its row says" : "their rows say"));
}

report::Table OutcomeTable(const WhatIfAnswer& answer) {
  const auto [energy, time] = ChooseUnits(answer);
  report::Table table{
      .id = "table-what-if",
      .title = "What it would take",
      .caption =
          "Mean over the seeds ± their standard deviation; in brackets, what comes out under "
          "other assumptions about what was not measured.",
      .columns = {"policy", "recurrences", fmt::format("energy ({})", energy.name),
                  fmt::format("time ({})", time.name), fmt::format("cost ({})", energy.name),
                  "target reached"}};
  table.rows.push_back({{.text = "as recorded on " + answer.recorded_gpu_model},
                        Number(static_cast<double>(answer.recorded_recurrences), 0),
                        Number(answer.recorded.energy.value() / energy.size, 3),
                        Number(answer.recorded.time.count() / time.size, 3),
                        Number(answer.recorded.cost.value() / energy.size, 3),
                        {}});
  for (const WhatIfOutcome& outcome : answer.outcomes)
    table.rows.push_back(
        {{.text = outcome.contender + (Reaches(outcome) ? "" : " (fails)")},
         Number(static_cast<double>(answer.recurrences), 0),
         EstimateCell(outcome.energy, energy.size),
         EstimateCell(outcome.time, time.size),
         EstimateCell(outcome.cost, energy.size),
         {.text = PercentText(outcome.reached.mean, 0), .value = outcome.reached.mean}});
  return table;
}

report::Figure OutcomeFigure(const WhatIfAnswer& answer) {
  const AnswerUnits units = ChooseUnits(answer);
  report::Panel energy{
      .title = "energy",
      .y = {.title = fmt::format("energy ({})", units.energy.name), .from_zero = true}};
  report::Panel time{.title = "time",
                     .y = {.title = fmt::format("time ({})", units.time.name), .from_zero = true}};
  const auto add = [](report::Panel& panel, const WhatIfOutcome& outcome, const Estimate& estimate,
                      double unit) {
    const double place = static_cast<double>(panel.x.categories.size());
    panel.x.categories.push_back(outcome.contender);
    panel.series.push_back({.name = outcome.contender,
                            .role = outcome.contender,
                            .mark = report::Mark::kBars,
                            .x = {place},
                            .y = {estimate.mean / unit},
                            .low = {estimate.low / unit},
                            .high = {estimate.high / unit}});
  };
  for (const WhatIfOutcome& outcome : answer.outcomes) {
    if (!Reaches(outcome)) continue;
    add(energy, outcome, outcome.energy, units.energy.size);
    add(time, outcome, outcome.time, units.time.size);
  }
  return {.id = "figure-what-if",
          .title = "Energy and time of all recurrences",
          .caption =
              "What each policy would take; the spread is what comes out under other "
              "assumptions about what was not measured.",
          .panels = {std::move(energy), std::move(time)}};
}

}  // namespace

Json ToJson(const WhatIfAnswer& answer) {
  Json policies = Json::object();
  for (const WhatIfOutcome& outcome : answer.outcomes)
    policies[outcome.contender] = {{"energy_joules", ToJson(outcome.energy)},
                                   {"time_seconds", ToJson(outcome.time)},
                                   {"cost_joules", ToJson(outcome.cost)},
                                   {"target_reached", ToJson(outcome.reached)}};
  return {{"schema", "zeus.replay_history/1"},
          {"job", answer.job_id},
          {"recorded",
           {{"gpu_model", answer.recorded_gpu_model},
            {"recurrences", answer.recorded_recurrences},
            {"energy_joules", answer.recorded.energy.value()},
            {"time_seconds", answer.recorded.time.count()},
            {"cost_joules", answer.recorded.cost.value()}}},
          {"gpu_model", answer.gpu_model},
          {"eta", answer.eta},
          {"recurrences", answer.recurrences},
          {"best", answer.best_batch_size ? Json{{"batch_size", *answer.best_batch_size},
                                                 {"power_limit_watts", answer.best_limit->value()}}
                                          : Json(nullptr)},
          {"policies", std::move(policies)},
          {"measured", answer.measured},
          {"estimated", answer.estimated},
          {"unknown", answer.unknown}};
}

report::Report ToReport(const WhatIfAnswer& answer) {
  report::Report report{.title = "What if: " + answer.job_id,
                        .subtitle = fmt::format("eta = {:g}, on {}, {} recurrences", answer.eta,
                                                answer.gpu_model, answer.recurrences)};
  if (answer.best_batch_size)
    report.findings.push_back(fmt::format("Least cost: batch size {} at {:g} W.",
                                          *answer.best_batch_size, answer.best_limit->value()));
  AddFailures(answer, report);
  for (const std::string& text : answer.measured) report.remarks.push_back("Measured. " + text);
  for (const std::string& text : answer.estimated) report.remarks.push_back("Estimated. " + text);
  for (const std::string& text : answer.unknown) report.remarks.push_back("Not known. " + text);
  report.sections.push_back({.title = "Answer", .tables = {OutcomeTable(answer)}});
  if (std::ranges::any_of(answer.outcomes, Reaches))
    report.sections.back().figures.push_back(OutcomeFigure(answer));
  return report;
}

}  // namespace zeus::replay
