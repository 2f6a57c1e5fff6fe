// A BenchReport as JSON.
#include <algorithm>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/inference/benchmark/bench_report.h"
#include "zeus/inference/benchmark/governor_comparison.h"
#include "zeus/monitor/measurement_json.h"

namespace zeus::inference {
namespace {

constexpr const char* kSchema = "zeus.llm_bench/1";
constexpr int kNothingFinished = 1;
constexpr int kInterrupted = 130;

// Adds the number and its sigma: "x" and "x_sigma".
void AddEstimate(Json& json, const std::string& name, const std::optional<Estimate>& estimate) {
  json[name] = estimate ? FiniteOrNull(estimate->value) : Json(nullptr);
  json[name + "_sigma"] =
      estimate && estimate->sigma > 0 ? FiniteOrNull(estimate->sigma) : Json(nullptr);
}

Json LatencyJson(const LatencySummary& latency) {
  Json json = {{"count", latency.count}};
  const auto value = [&latency](const Estimate& estimate) {
    return latency.count > 0 ? std::optional<Estimate>(estimate) : std::nullopt;
  };
  AddEstimate(json, "mean", value(latency.mean));
  AddEstimate(json, "p50", value(latency.p50));
  AddEstimate(json, "p90", value(latency.p90));
  AddEstimate(json, "p99", value(latency.p99));
  return json;
}

Json EnergyJson(const std::optional<EnergySummary>& energy) {
  if (!energy) return nullptr;
  Json json = {{"requests", energy->requests}};
  AddEstimate(json, "energy_joules", energy->total);
  AddEstimate(json, "joules_per_request", energy->per_request);
  AddEstimate(json, "joules_per_output_token", energy->per_output_token);
  AddEstimate(json, "steady_joules_per_output_token", energy->steady_per_output_token);
  AddEstimate(json, "prefill_joules_per_prompt_token", energy->prefill_per_prompt_token);
  AddEstimate(json, "decode_joules_per_output_token", energy->decode_per_output_token);
  json["prefill_share"] = energy->prefill_share ? Json(*energy->prefill_share) : Json(nullptr);
  AddEstimate(json, "power_watts", energy->power);
  AddEstimate(json, "steady_power_watts", energy->steady_power);
  return json;
}

Json SteadyJson(const BenchmarkRun& run) {
  const RunSummary& summary = run.summary;
  Json json = {{"saturation", summary.saturation}};
  if (!summary.steady) {
    json["reason"] = summary.no_steady_reason;
    return json;
  }
  json["begin_seconds"] = (summary.steady->begin - run.record.begin).count();
  json["end_seconds"] = (summary.steady->end - run.record.begin).count();
  return json;
}

Json InferenceJson(const BenchmarkRun& run) {
  const RunSummary& summary = run.summary;
  Json failures = Json::object();
  for (const auto& [kind, failure] : summary.failures)
    failures[kind] = {{"count", failure.count}, {"first_message", failure.first_message}};
  Json json = {{"requests_sent", summary.sent},
               {"requests_finished", summary.finished},
               {"failures", std::move(failures)},
               {"interrupted", summary.interrupted},
               {"prompt_tokens", summary.prompt_tokens},
               {"output_tokens", summary.output_tokens},
               {"tokens_estimated", summary.tokens_estimated},
               {"peak_in_flight", summary.peak_in_flight},
               {"steady_state", SteadyJson(run)},
               {"output_tokens_per_second", summary.output_tokens_per_second},
               {"requests_per_second", summary.requests_per_second},
               {"ttft_seconds", LatencyJson(summary.ttft)},
               {"tpot_seconds", LatencyJson(summary.tpot)},
               {"latency_seconds", LatencyJson(summary.latency)},
               {"gateway", EnergyJson(summary.gateway)},
               {"gpus", EnergyJson(summary.gpus)},
               {"clock_hertz", summary.clock ? Json(summary.clock->value()) : Json(nullptr)}};
  AddEstimate(json, "steady_output_tokens_per_second", summary.steady_output_tokens_per_second);
  AddEstimate(json, "goodput_per_second", summary.goodput);
  AddEstimate(json, "good_share", summary.good_share);
  const EnergySummary* const energy = summary.energy();
  const auto of = [energy](auto member) {
    return energy != nullptr ? energy->*member : std::optional<Estimate>();
  };
  json["energy_source"] = energy == nullptr ? Json(nullptr) : summary.gateway ? "gateway" : "gpus";
  AddEstimate(json, "joules_per_request", of(&EnergySummary::per_request));
  const auto token = energy != nullptr ? energy->best_per_output_token() : std::nullopt;
  AddEstimate(json, "joules_per_output_token", token);
  json["tokens_per_joule"] = token && token->value > 0 ? Json(1 / token->value) : Json(nullptr);
  return json;
}

Json DeviceJson(const BenchReport& report, const DeviceMeasurement& device, Seconds time) {
  Json json = {{"device", device.device}};
  const auto gpu = std::ranges::find(report.gpus, device.device, &MeasuredGpu::device);
  if (gpu != report.gpus.end() && !gpu->model.empty()) json["model"] = gpu->model;
  if (gpu != report.gpus.end() && !gpu->uuid.empty()) json["uuid"] = gpu->uuid;
  json.update(zeus::ToJson(device));
  json["average_power_watts"] = device.energy.ok() && time.count() > 0
                                    ? Json((device.energy.value().energy / time).value())
                                    : Json(nullptr);
  return json;
}

// The sum over the GPUs, or over the requests where no GPU was measured here.
Json TotalJson(const BenchmarkRun& run) {
  const Seconds time = run.summary.time;
  const auto power = [time](double joules) {
    return time.count() > 0 ? Json(joules / time.count()) : Json(nullptr);
  };
  if (!run.summary.gpus && run.summary.gateway) {
    const Estimate& total = run.summary.gateway->total;
    return {{"energy_joules", total.value},     {"energy_sigma_joules", total.sigma},
            {"attributed_joules", total.value}, {"average_power_watts", power(total.value)},
            {"contains", Json::array()},        {"missing", Json::array()}};
  }
  const Measurement::Total total = run.gpus.whole ? run.gpus.whole->Sum() : Measurement::Total{};
  Json json = zeus::ToJson(total);
  json["average_power_watts"] =
      total.contains.empty() ? Json(nullptr) : power(total.energy.value());
  return json;
}

Json RunJson(const BenchReport& report, const BenchmarkRun& run) {
  Json devices = Json::array();
  if (run.gpus.whole)
    for (const DeviceMeasurement& device : run.gpus.whole->devices)
      devices.push_back(DeviceJson(report, device, run.summary.time));
  return {{"started", ToExactText(run.started)},
          {"exit_code", ExitCodeOf(run.summary)},
          {"time_seconds", run.summary.time.count()},
          {"devices", std::move(devices)},
          {"total", TotalJson(run)},
          {"inference", InferenceJson(run)}};
}

Json FiguresJson(const GovernorFigures& figures) {
  Json json = {{"mode", figures.mode}};
  AddEstimate(json, "energy_joules", figures.energy);
  AddEstimate(json, "joules_per_request", figures.per_request);
  AddEstimate(json, "missed_share", figures.missed);
  AddEstimate(json, "ttft_p90_seconds", figures.ttft);
  AddEstimate(json, "tpot_p90_seconds", figures.tpot);
  json["clock_hertz"] = figures.clock ? Json(figures.clock->value()) : Json(nullptr);
  return json;
}

// The comparison of a governor's modes, with the runs that "runs" does not have.
Json GovernorJson(const BenchReport& report, const GovernorComparison& comparison) {
  Json json = {{"energy_source", comparison.energy_source},
               {"modes", {FiguresJson(comparison.baseline), FiguresJson(comparison.present)}}};
  AddEstimate(json, "saved_share", comparison.saved);
  Json runs = Json::array();
  for (const BenchmarkRun& run : report.baseline) runs.push_back(RunJson(report, run));
  json["baseline_runs"] = std::move(runs);
  return json;
}

}  // namespace

int ExitCodeOf(const RunSummary& run) {
  if (run.finished == 0) return kNothingFinished;
  return run.interrupted ? kInterrupted : 0;
}

Json ToJson(const BenchReport& report) {
  Json json = {{"schema", kSchema},        {"command", report.command},
               {"host", report.host},      {"url", report.url},
               {"model", report.model},    {"load", report.load},
               {"seed", report.seed},      {"planned_runs", report.planned_runs},
               {"remarks", report.remarks}};
  Json runs = Json::array();
  for (const BenchmarkRun& run : report.runs) runs.push_back(RunJson(report, run));
  json["runs"] = std::move(runs);
  if (const auto comparison = CompareGovernor(report))
    json["governor"] = GovernorJson(report, *comparison);
  return json;
}

std::string ToRequestLines(const BenchmarkRun& run) {
  std::string lines;
  for (const RequestRecord& request : run.record.requests) {
    const auto after = [&run](TimePoint time) { return (time - run.record.begin).count(); };
    Json json = {{"request", request.id.empty() ? Json(nullptr) : Json(request.id)},
                 {"planned_seconds", after(request.planned)},
                 {"sent_seconds", after(request.sent)},
                 {"ended_seconds", after(request.ended)},
                 {"finished", request.finished},
                 {"prompt_tokens", request.prompt_tokens},
                 {"output_tokens", request.output_tokens}};
    if (!request.arrivals.empty()) {
      json["first_token_seconds"] = after(request.arrivals.front().at);
      json["last_token_seconds"] = after(request.arrivals.back().at);
    }
    if (request.failure)
      json["failure"] = {{"kind", FailureName(request.failure->kind)},
                         {"message", request.failure->message}};
    if (request.energy) {
      json["energy_joules"] = request.energy->energy.value();
      json["sigma_joules"] = request.energy->sigma.value();
      if (request.energy->prefill) json["prefill_joules"] = request.energy->prefill->value();
      if (request.energy->decode) json["decode_joules"] = request.energy->decode->value();
      json["final"] = request.energy->final;
    }
    lines += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return lines;
}

}  // namespace zeus::inference
