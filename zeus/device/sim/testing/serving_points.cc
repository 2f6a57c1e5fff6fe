#include "zeus/device/sim/testing/serving_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/inference/physics.h"

namespace zeus::sim::testing {
namespace {

// The recorded tasks have short prompts.
constexpr double kPromptTokens = 100.0;

// Names in the file and in the catalogue.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNames = {{
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
    {"meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"},
    {"meta-llama/Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b-fp8"},
    {"Qwen/Qwen3-8B", "qwen3-8b"},
    {"Qwen/Qwen3-14B", "qwen3-14b"},
    {"google/gemma-3-27b-it", "gemma-3-27b"},
    {"Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
    {"Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3-30b-a3b"},
    {"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"},
    {"Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-235b-a22b"},
    {"Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b-fp8"},
    {"Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "qwen3-235b-a22b-fp8"},
    {"openai/gpt-oss-20b", "gpt-oss-20b"},
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout"},
    {"meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick-fp8"},
}};

using PointRow = std::map<std::string_view, std::string_view, std::less<>>;

Result<double> Number(const PointRow& row, std::string_view column) {
  const auto found = row.find(column);
  if (found == row.end()) return InvalidArgument(fmt::format("no column {}", column));
  return ParseDouble(std::string(found->second));
}

Result<ServingPoint> ReadPoint(const PointRow& row, const LanguageModel& model,
                               const GpuModel& gpu) {
  ZEUS_TRY(const double gpus, Number(row, "gpus"));
  ZEUS_TRY(const double batch, Number(row, "batch"));
  ZEUS_TRY(const double rate, Number(row, "output_tokens_per_s"));
  ZEUS_TRY(const double joules, Number(row, "j_per_output_token"));
  ZEUS_TRY(const double output, Number(row, "output_tokens"));
  return ServingPoint{.model = &model,
                      .task = std::string(row.at("task")),
                      .gpu = &gpu,
                      .gpus = static_cast<unsigned>(gpus),
                      .batch = batch,
                      .output_tokens = output,
                      .time = Seconds(batch / rate),
                      .energy = Joules(batch * joules)};
}

// Tokens that attention looks at on average while an answer grows.
double MeanSeenContext(const LanguageModel& model, double output_tokens) {
  constexpr int kSteps = 100;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step)
    sum += model.SeenContext(kPromptTokens + output_tokens * (step + 0.5) / kSteps);
  return sum / kSteps;
}

}  // namespace

Result<std::vector<ServingPoint>> ParseServingPoints(std::string_view csv, std::string_view gpu) {
  ZEUS_TRY(const GpuModel* const gpu_model, FindGpuModel(gpu));
  CsvText text(csv);
  std::vector<std::string> columns;
  std::vector<ServingPoint> points;
  while (true) {
    ZEUS_TRY(const bool found, text.Next());
    if (!found) return points;
    const auto& fields = text.fields();
    if (columns.empty()) {
      columns.assign(fields.begin(), fields.end());
      continue;
    }
    PointRow row;
    for (std::size_t i = 0; i < std::min(columns.size(), fields.size()); ++i)
      row.emplace(columns[i], fields[i]);
    const auto* const name = std::ranges::find(
        kNames, row["model"], &std::pair<std::string_view, std::string_view>::first);
    if (row["gpu"] != gpu || name == kNames.end()) continue;
    ZEUS_TRY(const LanguageModel* const model, FindLanguageModel(name->second));
    ZEUS_TRY(ServingPoint point, ReadPoint(row, *model, *gpu_model));
    points.push_back(std::move(point));
  }
}

PointError Compare(const ServingPoint& point, const ServingLaw& law) {
  const IterationParts parts(*point.model, point.gpus, law.overheads);
  // In steady state a prompt begins whenever a sequence ends.
  const double prompt = point.batch * kPromptTokens / point.output_tokens;
  const double context = MeanSeenContext(*point.model, point.output_tokens);
  const IterationWork work = parts.Fixed() + parts.Experts(point.batch + prompt) +
                             parts.Decode(point.batch, point.batch * context) +
                             parts.Prompt({.start = 0.0, .tokens = prompt});
  const auto predicted =
      PredictIteration(*point.gpu, law.constants, work,
                       {.power_limit = point.gpu->default_limit, .clock_cap = std::nullopt});
  const OperatingPoint& iteration = predicted.value();
  const Joules energy = iteration.average_power * iteration.time_per_epoch * point.gpus;
  return {.time = iteration.time_per_epoch / point.time - 1.0,
          .energy = energy / point.energy - 1.0};
}

ErrorSummary Summarize(const std::vector<PointError>& errors, double PointError::*part) {
  std::vector<double> sizes;
  for (const PointError& error : errors) sizes.push_back(std::abs(error.*part));
  if (sizes.empty()) return {.median = 0, .percentile_95 = 0, .worst = 0};
  std::ranges::sort(sizes);
  const auto at = [&](double share) {
    return sizes[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(sizes.size() - 1)))];
  };
  return {.median = at(0.5), .percentile_95 = at(0.95), .worst = sizes.back()};
}

Result<std::vector<TraceRequest>> ParseTrace(std::string_view csv) {
  constexpr double kDay = 86400.0;
  CsvText text(csv);
  std::vector<TraceRequest> requests;
  std::optional<Seconds> first;
  Seconds last{0};
  while (true) {
    ZEUS_TRY(const bool found, text.Next());
    if (!found) return requests;
    const auto& fields = text.fields();
    if (fields.size() < 3 || fields[0] == "TIMESTAMP") continue;
    int hour = 0;
    int minute = 0;
    double second = 0;
    const std::string time(fields[0].substr(std::min<std::size_t>(11, fields[0].size())));
    if (std::sscanf(time.c_str(), "%d:%d:%lf", &hour, &minute, &second) !=
        3)  // NOLINT(cert-err34-c)
      return InvalidArgument(fmt::format("line {}: no time of day", text.line()));
    Seconds arrival(3600.0 * hour + 60.0 * minute + second);
    if (!first) first = arrival;
    arrival -= *first;
    if (arrival < last - Seconds(kDay / 2)) arrival += Seconds(kDay);  // Past midnight.
    last = arrival;
    ZEUS_TRY(const auto prompt, ParseUnsigned(std::string(fields[1])));
    ZEUS_TRY(const auto output, ParseUnsigned(std::string(fields[2])));
    requests.push_back({.arrival = arrival,
                        .prompt_tokens = std::max(1U, static_cast<unsigned>(prompt)),
                        .output_tokens = std::max(1U, static_cast<unsigned>(output))});
  }
}

}  // namespace zeus::sim::testing
