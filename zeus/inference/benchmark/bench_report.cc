// A BenchReport for people: tables, and the figures of its page.
#include "zeus/inference/benchmark/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "zeus/base/quantity_text.h"
#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/inference/benchmark/governor_comparison.h"

namespace zeus::inference {
namespace {

using report::Cell;

constexpr std::size_t kCurveSlices = 200;  // Curves over time have this many points.

using Getter = std::function<std::optional<Estimate>(const RunSummary&)>;

Cell NumberCell(const std::optional<Estimate>& estimate, std::string_view unit) {
  if (!estimate) return {"-", std::nullopt};
  return {WithSigma(estimate->value, estimate->sigma, unit), estimate->value};
}

Cell Words(std::string text) { return {std::move(text), std::nullopt}; }

std::optional<Estimate> Inverse(const std::optional<Estimate>& estimate) {
  if (!estimate || estimate->value <= 0) return std::nullopt;
  const double inverse = 1 / estimate->value;
  return Estimate{inverse, inverse * estimate->sigma / estimate->value};
}

// Rows of the table of energies, from one source.
class EnergyRows {
 public:
  using Source = std::optional<EnergySummary> RunSummary::*;
  using Field = std::optional<Estimate> EnergySummary::*;

  EnergyRows(const std::vector<BenchmarkRun>& runs, Source source, std::string name,
             report::Table& table)
      : runs_(runs), source_(source), name_(std::move(name)), table_(table) {}

  void AddAll() {
    if (std::ranges::none_of(
            runs_, [&](const BenchmarkRun& run) { return (run.summary.*source_).has_value(); }))
      return;
    const auto steady = Find(&EnergySummary::steady_per_output_token);
    const auto whole = Find(&EnergySummary::per_output_token);
    Add("energy per output token", NumberCell(steady, "J"), NumberCell(whole, "J"));
    Add("output tokens per joule", NumberCell(Inverse(steady), "/J"),
        NumberCell(Inverse(whole), "/J"));
    Add("energy per request", Words(""), NumberCell(Find(&EnergySummary::per_request), "J"));
    AddIfThere("prefill energy per prompt token", &EnergySummary::prefill_per_prompt_token, "J");
    AddIfThere("decode energy per output token", &EnergySummary::decode_per_output_token, "J");
    Add("power", NumberCell(Find(&EnergySummary::steady_power), "W"),
        NumberCell(Find(&EnergySummary::power), "W"));
  }

 private:
  std::optional<Estimate> Find(Field field) const {
    return MeanOver(runs_, [&](const RunSummary& run) -> std::optional<Estimate> {
      const std::optional<EnergySummary>& energy = run.*source_;
      return energy ? (*energy).*field : std::nullopt;
    });
  }
  void AddIfThere(const std::string& what, Field field, std::string_view unit) {
    if (const auto estimate = Find(field)) Add(what, Words(""), NumberCell(estimate, unit));
  }
  void Add(const std::string& what, Cell steady, Cell whole) {
    table_.rows.push_back({Words(what), std::move(steady), std::move(whole), Words(name_)});
  }

  const std::vector<BenchmarkRun>& runs_;
  const Source source_;
  const std::string name_;
  report::Table& table_;
};

report::Table MainTable(const BenchReport& report) {
  report::Table table{.id = "figures",
                      .title = "energy and throughput",
                      .columns = {"figure", "steady state", "whole run", "source"}};
  EnergyRows(report.runs, &RunSummary::gateway, "gateway", table).AddAll();
  EnergyRows(report.runs, &RunSummary::gpus, "GPU sensors", table).AddAll();
  const auto mean = [&](const Getter& getter) { return MeanOver(report.runs, getter); };
  table.rows.push_back(
      {Words("output tokens per second"),
       NumberCell(mean([](const RunSummary& run) { return run.steady_output_tokens_per_second; }),
                  "/s"),
       NumberCell(mean([](const RunSummary& run) {
                    return std::optional<Estimate>({run.output_tokens_per_second, 0});
                  }),
                  "/s"),
       Words("client")});
  table.rows.push_back({Words("requests per second"), Words(""),
                        NumberCell(mean([](const RunSummary& run) {
                                     return std::optional<Estimate>({run.requests_per_second, 0});
                                   }),
                                   "/s"),
                        Words("client")});
  if (const auto goodput = mean([](const RunSummary& run) { return run.goodput; })) {
    const auto share = mean([](const RunSummary& run) { return run.good_share; });
    table.rows.push_back(
        {Words(fmt::format("goodput ({} kept the targets)", PercentText(share ? share->value : 0))),
         Words(""), NumberCell(goodput, "/s"), Words("client")});
  }
  if (const auto clock = mean([](const RunSummary& run) -> std::optional<Estimate> {
        if (!run.clock) return std::nullopt;
        return Estimate{run.clock->ToMega(), 0};
      }))
    table.rows.push_back({Words("graphics clock"),
                          {fmt::format("{:.0f} MHz", clock->value), clock->value},
                          Words(""),
                          Words("GPU sensors")});
  return table;
}

report::Table LatencyTable(const BenchReport& report) {
  report::Table table{
      .id = "latency", .title = "latency", .columns = {"latency", "mean", "p50", "p90", "p99"}};
  const auto add = [&](const char* name, LatencySummary RunSummary::*which) {
    std::vector<Cell> row = {Words(name)};
    for (const auto member :
         {&LatencySummary::mean, &LatencySummary::p50, &LatencySummary::p90, &LatencySummary::p99})
      row.push_back(NumberCell(MeanOver(report.runs,
                                        [&](const RunSummary& run) -> std::optional<Estimate> {
                                          if ((run.*which).count == 0) return std::nullopt;
                                          return (run.*which).*member;
                                        }),
                               "s"));
    table.rows.push_back(std::move(row));
  };
  add("time to first token", &RunSummary::ttft);
  add("time per output token", &RunSummary::tpot);
  add("whole answer", &RunSummary::latency);
  return table;
}

std::optional<report::Table> FailureTable(const BenchReport& report) {
  std::map<std::string, FailureCount> failures;
  for (const BenchmarkRun& run : report.runs) {
    for (const auto& [kind, failure] : run.summary.failures) {
      FailureCount& sum = failures[kind];
      if (sum.count == 0) sum.first_message = failure.first_message;
      sum.count += failure.count;
    }
  }
  if (failures.empty()) return std::nullopt;
  report::Table table{.id = "failures",
                      .title = "requests that failed",
                      .columns = {"kind", "requests", "the first one"}};
  for (const auto& [kind, failure] : failures)
    table.rows.push_back({Words(kind),
                          {std::to_string(failure.count), static_cast<double>(failure.count)},
                          Words(failure.first_message)});
  return table;
}

report::Table RunTable(const BenchReport& report) {
  report::Table table{.id = "runs",
                      .title = "runs",
                      .columns = {"run", "time", "finished", "energy per output token",
                                  "output tokens per second"}};
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunSummary& run = report.runs[i].summary;
    const EnergySummary* const energy = run.energy();
    table.rows.push_back(
        {{std::to_string(i + 1), static_cast<double>(i + 1)},
         {TimeText(run.time), run.time.count()},
         {std::to_string(run.finished), static_cast<double>(run.finished)},
         NumberCell(energy != nullptr ? energy->best_per_output_token() : std::optional<Estimate>(),
                    "J"),
         NumberCell(Estimate{run.output_tokens_per_second, 0}, "/s")});
  }
  return table;
}

// Tokens per second in equal slices of the run.
report::Panel ThroughputPanel(const BenchmarkRun& run) {
  report::Panel panel{.title = "output tokens per second",
                      .x = {.title = "time (s)", .from_zero = true},
                      .y = {.title = "output tokens per second", .from_zero = true}};
  const double length = run.summary.time.count() / static_cast<double>(kCurveSlices);
  if (length <= 0) return panel;
  std::vector<double> rate(kCurveSlices, 0.0);
  for (const RequestRecord& request : run.record.requests) {
    for (const TokenArrival& arrival : request.arrivals) {
      const double slice = (arrival.at - run.record.begin).count() / length;
      rate[std::min(kCurveSlices - 1, static_cast<std::size_t>(std::max(0.0, slice)))] +=
          arrival.tokens / length;
    }
  }
  report::Series& series = panel.series.emplace_back();
  series = {.name = "output tokens per second", .role = "zeus", .mark = report::Mark::kSteps};
  for (std::size_t i = 0; i < kCurveSlices; ++i) {
    series.x.push_back(static_cast<double>(i) * length);
    series.y.push_back(rate[i]);
  }
  if (!run.summary.steady) return panel;
  const double highest = *std::ranges::max_element(rate);
  for (const TimePoint edge : {run.summary.steady->begin, run.summary.steady->end}) {
    const double x = (edge - run.record.begin).count();
    panel.series.push_back({.name = "steady state",
                            .role = "front",
                            .mark = report::Mark::kRule,
                            .x = {x, x},
                            .y = {0, highest}});
  }
  return panel;
}

report::Panel PowerPanel(const BenchmarkRun& run) {
  report::Panel panel{.title = "power of the GPUs",
                      .x = {.title = "time (s)", .from_zero = true},
                      .y = {.title = "power (W)", .from_zero = true}};
  for (const PowerCurve& curve : run.power) {
    report::Series& series = panel.series.emplace_back();
    series = {.name = curve.device, .role = curve.device, .mark = report::Mark::kSteps};
    for (const auto& [time, power] : curve.points) {
      series.x.push_back(time.count());
      series.y.push_back(power.value());
    }
  }
  return panel;
}

// The share of requests, in per cent, whose latency was at most x.
report::Panel SharePanel(const BenchmarkRun& run, const char* title,
                         std::optional<Seconds> (RequestRecord::*latency)() const) {
  report::Panel panel{.title = title,
                      .x = {.title = std::string(title) + " (ms)", .from_zero = true},
                      .y = {.title = "requests (%)", .from_zero = true}};
  std::vector<double> times;
  for (const RequestRecord& request : run.record.requests)
    if (const auto time = (request.*latency)(); time && request.finished)
      times.push_back(time->count() * 1e3);
  std::ranges::sort(times);
  report::Series& series = panel.series.emplace_back();
  series = {.name = title, .role = "zeus", .mark = report::Mark::kSteps};
  const std::size_t stride = std::max<std::size_t>(1, times.size() / 1000);
  for (std::size_t i = 0; i < times.size(); i += stride) {
    series.x.push_back(times[i]);
    series.y.push_back(100 * static_cast<double>(i + 1) / static_cast<double>(times.size()));
  }
  return panel;
}

report::Panel RequestPanel(const BenchmarkRun& run) {
  report::Panel panel{.title = "energy of each request",
                      .x = {.title = "output tokens", .from_zero = true},
                      .y = {.title = "energy (J)", .from_zero = true}};
  report::Series& series = panel.series.emplace_back();
  series = {.name = "requests", .role = "zeus", .mark = report::Mark::kPoints};
  for (const RequestRecord& request : run.record.requests) {
    if (!request.energy) continue;
    const double energy = request.energy->energy.value();
    const double sigma = request.energy->sigma.value();
    series.x.push_back(request.output_tokens);
    series.y.push_back(energy);
    series.low.push_back(energy - sigma);
    series.high.push_back(energy + sigma);
    series.labels.push_back(fmt::format("{}: {}, {:.0f} prompt tokens", request.id,
                                        WithSigma(energy, sigma, "J"), request.prompt_tokens));
  }
  return panel;
}

std::vector<report::Figure> Figures(const BenchmarkRun& run) {
  std::vector<report::Figure> figures;
  report::Figure time{.id = "over-time",
                      .title = "over time",
                      .caption = "Throughput and power; thin lines bound the steady state.",
                      .panels = {ThroughputPanel(run)}};
  if (!run.power.empty()) time.panels.push_back(PowerPanel(run));
  figures.push_back(std::move(time));
  figures.push_back(
      {.id = "latencies",
       .title = "latencies",
       .caption = "Share of the finished requests whose latency was at most so long.",
       .panels = {SharePanel(run, "time to first token", &RequestRecord::TimeToFirstToken),
                  SharePanel(run, "time per output token", &RequestRecord::TimePerOutputToken)}});
  if (run.summary.gateway)
    figures.push_back({.id = "requests",
                       .title = "requests",
                       .caption = "Energy of each request as the gateway attributed it.",
                       .panels = {RequestPanel(run)}});
  return figures;
}

std::string Finding(const BenchReport& report) {
  const auto token = MeanOver(report.runs, [](const RunSummary& run) -> std::optional<Estimate> {
    const EnergySummary* const energy = run.energy();
    return energy != nullptr ? energy->best_per_output_token() : std::nullopt;
  });
  const RunSummary& first = report.runs.front().summary;
  if (!token) return "no energy: no gateway told it, and no local GPU was measured";
  return fmt::format("{} takes {} per output token in {}", report.model,
                     WithSigma(token->value, token->sigma, "J"),
                     first.steady ? "steady state" : "the whole run");
}

std::vector<std::string> Remarks(const BenchReport& report) {
  std::vector<std::string> remarks = report.remarks;
  const RunSummary& run = report.runs.front().summary;
  if (run.steady)
    remarks.push_back(fmt::format(
        "the steady state is {} of {}: from the first token of request {} to the end of the last "
        "but {}",
        TimeText(run.steady->time()), TimeText(run.time), run.saturation, run.saturation + 1));
  else
    remarks.push_back("no steady state: " + run.no_steady_reason);
  if (run.tokens_estimated)
    remarks.emplace_back("the server did not count tokens: events were counted instead");
  if (run.interrupted)
    remarks.emplace_back("the run was ended early: figures are of what was done");
  remarks.emplace_back("± is one standard deviation");
  return remarks;
}

}  // namespace

std::optional<Estimate> MeanOver(
    const std::vector<BenchmarkRun>& runs,
    const std::function<std::optional<Estimate>(const RunSummary&)>& getter) {
  std::vector<double> values;
  double sigma = 0;
  for (const BenchmarkRun& run : runs) {
    const auto estimate = getter(run.summary);
    if (!estimate) continue;
    values.push_back(estimate->value);
    sigma += estimate->sigma;
  }
  if (values.empty()) return std::nullopt;
  const SampleSummary sample = Summarize(values);
  return Estimate{sample.mean,
                  std::max(sigma / static_cast<double>(values.size()), sample.StandardError())};
}

report::Report ToReport(const BenchReport& report) {
  const RunSummary& first = report.runs.front().summary;
  report::Report result{
      .title = fmt::format("zeus llm bench: {}", Printable(report.model)),
      .subtitle = fmt::format("{}; {}; {} of {} requests finished in {}, {:.0f} output tokens",
                              Printable(report.url), report.load, first.finished, first.sent,
                              TimeText(first.time), first.output_tokens),
      .findings = {Finding(report)},
      .remarks = Remarks(report)};
  report::Section& figures = result.sections.emplace_back();
  if (const auto comparison = CompareGovernor(report)) {
    result.findings.insert(result.findings.begin(), FindingOf(*comparison));
    figures.tables.push_back(ToTable(*comparison));
  }
  figures.tables.push_back(MainTable(report));
  figures.tables.push_back(LatencyTable(report));
  if (report.runs.size() > 1) figures.tables.push_back(RunTable(report));
  if (auto failures = FailureTable(report)) figures.tables.push_back(std::move(*failures));
  figures.figures = Figures(report.runs.front());
  return result;
}

}  // namespace zeus::inference
