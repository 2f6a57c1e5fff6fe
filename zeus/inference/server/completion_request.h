#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::inference {

enum class Endpoint { kChat, kText, kEmbeddings, kOllamaChat, kOllamaGenerate };

// A request in OpenAI's or Ollama's dialect, as far as an engine without weights can follow it.
struct CompletionRequest {
  Endpoint endpoint = Endpoint::kChat;
  std::string model{};  // Empty if the client named none.
  unsigned prompt_tokens = 1;
  unsigned sequences = 1;                // "n"; inputs of an embedding request.
  std::optional<unsigned> max_tokens{};  // Each sequence ends after so many.
  unsigned min_tokens = 1;
  bool ignore_eos = false;  // Every sequence has exactly max_tokens.
  bool stream = false;
  bool include_usage = false;     // An event with the counts comes before the end of the stream.
  bool continuous_usage = false;  // Every event has the counts so far.
  std::vector<std::string> stop{};
};

// A text has one token for every five characters of each word, rounded up: about what real
// vocabularies have for English. So N short words are N tokens.
unsigned CountTokens(std::string_view text);

// kInvalidArgument names the field that is missing or wrong.
Result<CompletionRequest> ParseCompletionRequest(Endpoint endpoint, std::string_view body);

// The text of the answer to a request without streaming; empty where there is none.
std::string AnswerText(const Json& response);

}  // namespace zeus::inference
