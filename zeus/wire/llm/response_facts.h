#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/wire/llm/request.h"

namespace zeus::llm {

// How a server timed its work on a request, as far as it told. `load` is the time in which it
// loaded the model.
struct ServerTimes {
  std::optional<Seconds> queue{};
  std::optional<Seconds> load{};
  std::optional<Seconds> prefill{};
  std::optional<Seconds> decode{};
};

// The tokens and times that a response has told so far. The server's counts come last in it, if at
// all.
struct ResponseFacts {
  // Tokens seen in the events that passed, of all sequences. One event may hold several tokens
  // without saying so: the server's count, when it comes, is the true one.
  double seen_tokens = 0;

  // As the server counted. The prompt's tokens include those of its cached part, which were not
  // computed again.
  std::optional<double> prompt_tokens;
  std::optional<double> cached_tokens;
  std::optional<double> output_tokens;

  ServerTimes times;

  std::vector<std::string> finish_reasons;  // "stop", "length", ...: of each finished sequence.
  std::string error;  // The server's message when it reported an error in its response.

  double OutputTokens() const { return output_tokens.value_or(seen_tokens); }
  double PromptTokens(const RequestFacts& request) const {
    return prompt_tokens.value_or(request.EstimatedPromptTokens());
  }
  // Whether OutputTokens() or PromptTokens() is not a count of the server.
  bool estimated() const { return !prompt_tokens || !output_tokens; }
};

}  // namespace zeus::llm
