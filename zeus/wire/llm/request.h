#pragma once

#include <optional>
#include <string>
#include <string_view>

// Requests to servers of language models: which of them are metered, and what they ask for.
namespace zeus::llm {

// A way in which servers and clients talk. One server speaks several: llama-server all but TGI's.
enum class Dialect {
  kOpenAiChat,       // /v1/chat/completions
  kOpenAiText,       // /v1/completions
  kOllama,           // /api/chat and /api/generate: one JSON object in each line
  kLlamaCpp,         // /completion and /infill
  kTgi,              // /generate and /generate_stream
  kAnthropic,        // /v1/messages
  kEmbeddings,       // Embeddings and rerank of every server: prompts without output
  kOpenAiResponses,  // /v1/responses
};
// "openai-chat", "openai-text", "ollama", "llama.cpp", "tgi", "anthropic", "embeddings",
// "openai-responses".
std::string_view ToText(Dialect dialect);

struct RequestFacts {
  Dialect dialect = Dialect::kOpenAiChat;
  std::string model;      // Empty when the request names none.
  bool streamed = false;  // The client wants tokens as they are made.
  unsigned prompts = 1;
  unsigned sequences = 1;     // Prompts times choices (n, best_of, beams) of this request.
  double prompt_bytes = 0;    // Bytes of text in the prompt; a token given by its id counts as 4.
  bool usage_wanted = false;  // The client asked for usage in the stream.
  std::optional<double> most_output_tokens;  // The limit that the client set for each sequence.

  // The prompt's tokens as far as they are known before the server has counted them.
  double EstimatedPromptTokens() const { return prompt_bytes / 4; }
};

// Returns nullopt when the request is not metered: another method or path, or a body that is not
// understood. Such a request is passed on like any other. The target may have a query and, before
// the paths above, a prefix such as "/openai".
std::optional<RequestFacts> InspectRequest(std::string_view method, std::string_view target,
                                           std::string_view content_type, std::string_view body);

// Returns the body with stream_options.include_usage set to true and everything else byte for byte
// as it was. Returns nullopt when that is not needed (no stream, already asked, a dialect that
// counts anyway) or not possible.
std::optional<std::string> WithUsageAsked(const RequestFacts& facts, std::string_view body);

}  // namespace zeus::llm
