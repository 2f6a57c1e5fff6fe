#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// The load of a benchmark before it is sent: when requests arrive, how long their prompts are, and
// how long their answers may become. Nothing here knows of servers or of the time of day.
namespace zeus::inference {

// Numbers of tokens: all alike, or drawn at random.
class TokenCount {
 public:
  TokenCount() : TokenCount(1) {}
  explicit TokenCount(double tokens) : low_(tokens), high_(tokens) {}

  // Parses "512", "uniform:100-900", "exponential:300" (mean), "normal:500,100" (mean, standard
  // deviation) and "lognormal:400,0.8" (median, sigma of the logarithm).
  static Result<TokenCount> Parse(std::string_view text);

  // At least 1.
  unsigned Draw(Random& random) const;

 private:
  enum class Shape { kUniform, kExponential, kNormal, kLogNormal };

  Shape shape_ = Shape::kUniform;
  double low_ = 1;   // Or the mean, or the median.
  double high_ = 1;  // Or the standard deviation, or sigma.
};

// One row of a trace.
struct TraceEntry {
  Seconds at;  // After the first one.
  unsigned prompt_tokens;
  unsigned output_tokens;
};

// Reads the format of Azure's traces of language-model inference: a header and rows
// "TIMESTAMP,ContextTokens,GeneratedTokens" in the order of their times. kInvalidArgument names the
// line that is wrong.
Result<std::vector<TraceEntry>> ParseTrace(std::string_view csv);

// Reads the trace of a file, or of a name: "conversation" and "code" are files of
// ZEUS_LLM_TRACE_DIR. kNotFound says where to get them.
Result<std::vector<TraceEntry>> ReadTrace(const std::string& file_or_name);

// A prompt from a file, and the length of its answer where the file gives one.
struct Prompt {
  std::string text;
  std::optional<unsigned> output_tokens;
};

// Each line is a prompt, or a JSON object {"prompt": ..., "max_tokens": ...}.
Result<std::vector<Prompt>> ParsePrompts(std::string_view lines);

// A part of an open load: a rate that holds for a time.
struct RateStep {
  double rate;  // Requests per second.
  Seconds time;
};
// Parses "1@30s,4@30s,2@1min".
Result<std::vector<RateStep>> ParseSteps(std::string_view text);
// Parses "50ms", "1.5s", "2min" and "1h"; a number alone is in seconds.
Result<Seconds> ParseTime(std::string_view text);

// How requests arrive. Those of open loops do not wait for answers.
struct ClosedLoop {
  std::size_t concurrency = 1;  // Requests under way at any time.
};
struct PoissonArrivals {
  double rate = 1;  // Requests per second.
};
struct SteppedArrivals {
  std::vector<RateStep> steps;  // Poisson within each; the last one ends the load.
};
struct TracedArrivals {
  std::vector<TraceEntry> entries;
  double speed = 1;  // 2 replays twice as fast.
};
using Arrivals = std::variant<ClosedLoop, PoissonArrivals, SteppedArrivals, TracedArrivals>;

struct WorkloadOptions {
  Arrivals arrivals{};
  std::size_t requests = 100;  // At most; a trace or steps may end earlier.
  // Texts, used in turn. Without any, prompts are made of words.
  std::vector<Prompt> prompts{};
  // Lengths in tokens. Without them those of the trace hold; without a trace the defaults.
  std::optional<TokenCount> prompt_tokens{};
  std::optional<TokenCount> output_tokens{};
  std::uint64_t seed = 1;
};

inline constexpr unsigned kDefaultPromptTokens = 256;
inline constexpr unsigned kDefaultOutputTokens = 128;

struct PlannedRequest {
  std::optional<Seconds> at;  // After the start of the load; absent in a closed loop.
  std::string prompt;
  // The length that the answer shall have; absent when the model decides.
  std::optional<unsigned> output_tokens;
};

// The same options give the same requests. One owner.
class Workload {
 public:
  explicit Workload(WorkloadOptions options);

  // The next request; nullopt after the last one.
  std::optional<PlannedRequest> Next();
  // Requests under way at any time of a closed loop; absent in an open one.
  std::optional<std::size_t> concurrency() const;

 private:
  std::optional<Seconds> NextArrival();  // In an open loop; nullopt when the load has ended.
  unsigned PromptTokens();
  std::optional<unsigned> OutputTokens(const Prompt* prompt);

  const WorkloadOptions options_;
  Random arrivals_;
  Random lengths_;
  Random words_;
  std::size_t made_ = 0;
  Seconds time_{0};
};

// A text of so many words. Common short English words are one token each for most tokenizers. The
// words are drawn, so that no two prompts begin alike and no prefix cache helps.
std::string MakePrompt(unsigned tokens, Random& random);

}  // namespace zeus::inference
