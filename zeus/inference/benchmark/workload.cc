#include "zeus/inference/benchmark/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::inference {
namespace {

constexpr std::size_t kLargestInput = std::size_t{1} << 30;
constexpr double kMostTokens = 10e6;

constexpr std::array<std::string_view, 48> kWords = {
    "time",  "year",   "people", "way",    "day",    "man",     "thing",  "woman", "life",  "child",
    "world", "school", "state",  "family", "group",  "country", "hand",   "part",  "place", "case",
    "week",  "work",   "point",  "home",   "water",  "room",    "mother", "area",  "money", "story",
    "fact",  "month",  "lot",    "right",  "study",  "book",    "eye",    "job",   "word",  "side",
    "kind",  "head",   "house",  "page",   "friend", "hour",    "game",   "line"};

// The numbers of "500,100" or "100-900".
std::optional<std::pair<double, double>> ParsePair(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = ParseDouble(Trim(text.substr(0, at)));
  const auto second = ParseDouble(Trim(text.substr(at + 1)));
  if (!first.ok() || !second.ok()) return std::nullopt;
  return std::pair(first.value(), second.value());
}

// Wall times of traces have a blank instead of T, seven decimals, and no zone, which is UTC.
Result<WallTime> ParseTraceTime(std::string_view text) {
  constexpr std::size_t kMicroseconds = 26;  // Length of "2023-11-16 18:17:03.979960".
  std::string rfc(text.substr(0, std::min(text.size(), kMicroseconds)));
  if (const std::size_t blank = rfc.find(' '); blank != std::string::npos) rfc[blank] = 'T';
  return ParseWallTime(rfc + "Z");
}

Result<unsigned> ParseTokens(std::string_view text) {
  const auto number = ParseDouble(text);
  if (!number.ok() || !(number.value() >= 0 && number.value() <= kMostTokens))
    return InvalidArgument(fmt::format("not a number of tokens: {}", Quote(text)));
  return static_cast<unsigned>(std::max(1.0, number.value()));
}

Result<std::pair<WallTime, TraceEntry>> ParseTraceRow(const std::vector<std::string_view>& row) {
  if (row.size() < 3)
    return InvalidArgument(
        "a row has fewer than three fields: TIMESTAMP,ContextTokens,GeneratedTokens");
  ZEUS_TRY(const WallTime time, ParseTraceTime(row[0]));
  ZEUS_TRY(const unsigned prompt, ParseTokens(row[1]));
  ZEUS_TRY(const unsigned output, ParseTokens(row[2]));
  return std::pair(time, TraceEntry{Seconds(0), prompt, output});
}

Result<Prompt> ParsePromptLine(std::string_view line) {
  if (!line.starts_with('{')) return Prompt{std::string(line), std::nullopt};
  ZEUS_TRY(const Json json, ParseJson(line));
  ZEUS_TRY(std::string text, GetField<std::string>(json, "prompt"));
  ZEUS_TRY(const std::optional<unsigned> tokens, GetOptionalField<unsigned>(json, "max_tokens"));
  return Prompt{std::move(text), tokens};
}

}  // namespace

Result<TokenCount> TokenCount::Parse(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument(
        fmt::format("not a number of tokens: {}; write 512, uniform:100-900, exponential:300, "
                    "normal:500,100 or lognormal:400,0.8",
                    Quote(text)));
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto number = ParseDouble(text);
    if (!number.ok() || !(number.value() >= 1 && number.value() <= kMostTokens)) return wrong();
    return TokenCount(std::round(number.value()));
  }
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  TokenCount count;
  std::optional<std::pair<double, double>> pair;
  if (name == "uniform") {
    pair = ParsePair(rest, '-');
    count.shape_ = Shape::kUniform;
    if (pair && pair->second < pair->first) return wrong();
  } else if (name == "exponential") {
    const auto mean = ParseDouble(rest);
    if (mean.ok()) pair = std::pair(mean.value(), 0.0);
    count.shape_ = Shape::kExponential;
  } else if (name == "normal" || name == "lognormal") {
    pair = ParsePair(rest, ',');
    count.shape_ = name == "normal" ? Shape::kNormal : Shape::kLogNormal;
  }
  const auto is_sound = [](double value, double least) {
    return value >= least && value <= kMostTokens;  // Also false for NaN.
  };
  if (!pair || !is_sound(pair->first, 1) || !is_sound(pair->second, 0)) return wrong();
  count.low_ = pair->first;
  count.high_ = pair->second;
  return count;
}

unsigned TokenCount::Draw(Random& random) const {
  double drawn = low_;
  switch (shape_) {
    case Shape::kUniform:
      if (high_ > low_) drawn = std::floor(random.Uniform(low_, high_ + 1));
      break;
    case Shape::kExponential:
      drawn = -low_ * std::log1p(-random.Uniform());
      break;
    case Shape::kNormal:
      drawn = low_ + high_ * random.Normal();
      break;
    case Shape::kLogNormal:
      drawn = low_ * std::exp(high_ * random.Normal());
      break;
  }
  return static_cast<unsigned>(std::clamp(std::round(drawn), 1.0, kMostTokens));
}

Result<std::vector<TraceEntry>> ParseTrace(std::string_view text) {
  CsvText csv(text);
  std::vector<TraceEntry> entries;
  std::optional<WallTime> first;
  for (bool header = true;; header = false) {
    const auto at_line = [&csv] { return fmt::format("line {}", csv.line()); };
    auto found = csv.Next();
    if (!found.ok()) return std::move(found).error().While(at_line());
    if (!found.value()) break;
    auto row = ParseTraceRow(csv.fields());
    if (!row.ok()) {
      if (header && csv.fields().front() == "TIMESTAMP") continue;
      return std::move(row).error().While(at_line());
    }
    auto [time, entry] = row.value();
    if (!first) first = time;
    entry.at = time - *first;
    if (!entries.empty() && entry.at < entries.back().at)
      return InvalidArgument(fmt::format("{}: the rows are not in the order of time", at_line()));
    entries.push_back(entry);
  }
  if (entries.empty()) return InvalidArgument("the trace has no requests");
  return entries;
}

Result<std::vector<TraceEntry>> ReadTrace(const std::string& file_or_name) {
  std::string path = file_or_name;
  if (file_or_name == "conversation" || file_or_name == "code") {
    const bool conversation = file_or_name == "conversation";
    const char* const original =
        conversation ? "AzureLLMInferenceTrace_conv.csv" : "AzureLLMInferenceTrace_code.csv";
    const char* const folder = std::getenv("ZEUS_LLM_TRACE_DIR");  // NOLINT(concurrency-mt-unsafe)
    path.clear();
    if (folder != nullptr) {
      for (const std::string& name :
           {std::string(original), fmt::format("azure_llm_2023_{}.csv", file_or_name)}) {
        const std::filesystem::path candidate = std::filesystem::path(folder) / name;
        std::error_code ignored;
        if (std::filesystem::exists(candidate, ignored)) path = candidate.string();
      }
    }
    if (path.empty()) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("the trace {} is {} of github.com/Azure/AzurePublicDataset: name "
                               "the downloaded file, or set ZEUS_LLM_TRACE_DIR to its folder",
                               Quote(file_or_name), original)};
    }
  }
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kLargestInput));
  auto entries = ParseTrace(text);
  if (!entries.ok()) return std::move(entries).error().While(path);
  return entries;
}

Result<std::vector<Prompt>> ParsePrompts(std::string_view lines) {
  std::vector<Prompt> prompts;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = Trim(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty()) continue;
    auto prompt = ParsePromptLine(line);
    if (!prompt.ok()) return std::move(prompt).error().While(fmt::format("line {}", number));
    prompts.push_back(std::move(prompt).value());
  }
  if (prompts.empty()) return InvalidArgument("there is no prompt");
  return prompts;
}

Result<Seconds> ParseTime(std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 4> kUnits = {{{"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}}};
  double scale = 1;
  std::string_view number = Trim(text);
  for (const Unit& unit : kUnits) {
    if (!number.ends_with(unit.name)) continue;
    number.remove_suffix(unit.name.size());
    scale = unit.seconds;
    break;
  }
  const auto value = ParseDouble(Trim(number));
  if (!value.ok() || !(value.value() > 0) || !std::isfinite(value.value()))
    return InvalidArgument(
        fmt::format("not a time above zero: {}; write 50ms, 1.5s, 2min or 1h", Quote(text)));
  return Seconds(value.value() * scale);
}

Result<std::vector<RateStep>> ParseSteps(std::string_view text) {
  std::vector<RateStep> steps;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view step = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t at = step.find('@');
    const auto rate = ParseDouble(Trim(step.substr(0, std::min(at, step.size()))));
    if (at == std::string_view::npos || !rate.ok() || !(rate.value() >= 0) ||
        !std::isfinite(rate.value()))
      return InvalidArgument(fmt::format(
          "not a step of a load: {}; write requests per second and a time, as in 1@30s,4@30s",
          Quote(step)));
    ZEUS_TRY(const Seconds time, ParseTime(step.substr(at + 1)));
    steps.push_back({rate.value(), time});
  }
  if (steps.empty()) return InvalidArgument("a load of steps needs at least one, as in 1@30s");
  return steps;
}

std::string MakePrompt(unsigned tokens, Random& random) {
  std::string text;
  constexpr std::size_t kUsualWord = 6;
  text.reserve(tokens * kUsualWord);
  for (unsigned i = 0; i < tokens; ++i) {
    if (i > 0) text += ' ';
    text += kWords.at(random.Below(kWords.size()));
  }
  return text;
}

Workload::Workload(WorkloadOptions options)
    : options_(std::move(options)),
      arrivals_(Random(options_.seed).Fork("arrivals")),
      lengths_(Random(options_.seed).Fork("lengths")),
      words_(Random(options_.seed).Fork("words")) {}

std::optional<std::size_t> Workload::concurrency() const {
  if (const auto* const loop = std::get_if<ClosedLoop>(&options_.arrivals))
    return loop->concurrency;
  return std::nullopt;
}

std::optional<Seconds> Workload::NextArrival() {
  if (const auto* const poisson = std::get_if<PoissonArrivals>(&options_.arrivals)) {
    time_ += Seconds(-std::log1p(-arrivals_.Uniform()) / poisson->rate);
    return time_;
  }
  if (const auto* const traced = std::get_if<TracedArrivals>(&options_.arrivals)) {
    if (made_ >= traced->entries.size()) return std::nullopt;
    return traced->entries[made_].at / traced->speed;
  }
  const auto* const stepped = std::get_if<SteppedArrivals>(&options_.arrivals);
  if (stepped == nullptr) return std::nullopt;
  // A unit exponential is used up at the rates of the steps that it crosses.
  double left = -std::log1p(-arrivals_.Uniform());
  Seconds begin{0};
  for (const RateStep& step : stepped->steps) {
    const Seconds end = begin + step.time;
    if (time_ < end) {
      const double possible = (end - std::max(time_, begin)).count() * step.rate;
      if (left < possible) {
        time_ = std::max(time_, begin) + Seconds(left / step.rate);
        return time_;
      }
      left -= possible;
      time_ = end;
    }
    begin = end;
  }
  return std::nullopt;
}

unsigned Workload::PromptTokens() {
  if (options_.prompt_tokens) return options_.prompt_tokens->Draw(lengths_);
  if (const auto* const traced = std::get_if<TracedArrivals>(&options_.arrivals))
    return traced->entries[made_].prompt_tokens;
  return kDefaultPromptTokens;
}

std::optional<unsigned> Workload::OutputTokens(const Prompt* prompt) {
  if (options_.output_tokens) return options_.output_tokens->Draw(lengths_);
  if (prompt != nullptr && prompt->output_tokens) return prompt->output_tokens;
  if (const auto* const traced = std::get_if<TracedArrivals>(&options_.arrivals))
    return traced->entries[made_].output_tokens;
  if (prompt != nullptr) return std::nullopt;
  return kDefaultOutputTokens;
}

std::optional<PlannedRequest> Workload::Next() {
  if (made_ >= options_.requests) return std::nullopt;
  PlannedRequest request;
  if (!concurrency()) {
    request.at = NextArrival();
    if (!request.at) return std::nullopt;
  }
  const Prompt* const prompt =
      options_.prompts.empty() ? nullptr : &options_.prompts[made_ % options_.prompts.size()];
  request.prompt = prompt != nullptr ? prompt->text : MakePrompt(PromptTokens(), words_);
  request.output_tokens = OutputTokens(prompt);
  ++made_;
  return request;
}

}  // namespace zeus::inference
