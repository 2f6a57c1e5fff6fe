#include "zeus/inference/server/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "zeus/base/json.h"
#include "zeus/inference/server/ollama_dialect.h"

namespace zeus::inference {
namespace {

constexpr unsigned kMostSequences = 128;
constexpr std::size_t kLettersPerToken = 5;

Error WrongField(std::string_view field, std::string_view expected) {
  return InvalidArgument(fmt::format("field \"{}\" must be {}", field, expected));
}

Result<std::optional<unsigned>> GetCount(const Json& body, std::string_view field, unsigned least) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) return std::optional<unsigned>();
  if (!found->is_number_integer() || *found < least ||
      *found > std::numeric_limits<std::int32_t>::max())
    return WrongField(field, fmt::format("a whole number of at least {}", least));
  return std::optional<unsigned>(found->get<unsigned>());
}

Result<bool> GetFlag(const Json& body, std::string_view field) {
  ZEUS_TRY(const auto flag, GetOptionalField<bool>(body, field));
  return flag.value_or(false);
}

// The text of a message: a string, or parts of which those of type "text" count.
Result<unsigned> CountMessage(const Json& message) {
  if (!message.is_object()) return WrongField("messages", "a list of objects");
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return 0U;
  if (content->is_string()) return CountTokens(content->get_ref<const std::string&>());
  if (!content->is_array()) return WrongField("content", "a text or a list of parts");
  unsigned tokens = 0;
  for (const Json& part : *content)
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      tokens += CountTokens(part["text"].get_ref<const std::string&>());
  return tokens;
}

Result<unsigned> CountMessages(const Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty())
    return WrongField("messages", "a list of at least one message");
  unsigned tokens = 0;
  for (const Json& message : *messages) {
    ZEUS_TRY(const unsigned more, CountMessage(message));
    tokens += more;
  }
  return tokens;
}

bool IsTokenList(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& token) { return token.is_number_integer(); });
}

// A prompt: a text, a list of token numbers, or a list with one of these.
Result<unsigned> CountPrompt(const Json& body) {
  const auto prompt = body.find("prompt");
  if (prompt == body.end()) return WrongField("prompt", "a text or a list of token numbers");
  const bool nested = prompt->is_array() && prompt->size() == 1 && !IsTokenList(*prompt);
  const Json& value = nested ? prompt->front() : *prompt;
  if (value.is_string()) return CountTokens(value.get_ref<const std::string&>());
  if (IsTokenList(value)) return static_cast<unsigned>(value.size());
  return WrongField("prompt", "one text or one list of token numbers; send several as requests");
}

Status ReadInput(const Json& body, CompletionRequest& request) {
  const auto input = body.find("input");
  if (input == body.end()) return WrongField("input", "a text or a list");
  if (input->is_string() || IsTokenList(*input)) {
    request.sequences = 1;
    request.prompt_tokens = input->is_string() ? CountTokens(input->get_ref<const std::string&>())
                                               : static_cast<unsigned>(input->size());
    return Ok();
  }
  if (!input->is_array() || input->empty()) return WrongField("input", "a text or a list");
  request.sequences = static_cast<unsigned>(input->size());
  request.prompt_tokens = 0;
  for (const Json& element : *input) {
    if (element.is_string())
      request.prompt_tokens += CountTokens(element.get_ref<const std::string&>());
    else if (IsTokenList(element))
      request.prompt_tokens += static_cast<unsigned>(element.size());
    else
      return WrongField("input", "texts or lists of token numbers");
  }
  return Ok();
}

Status ReadStop(const Json& body, CompletionRequest& request) {
  const auto stop = body.find("stop");
  if (stop == body.end() || stop->is_null()) return Ok();
  if (stop->is_string()) {
    request.stop.push_back(stop->get<std::string>());
  } else if (stop->is_array()) {
    for (const Json& text : *stop) {
      if (!text.is_string()) return WrongField("stop", "a text or a list of texts");
      request.stop.push_back(text.get<std::string>());
    }
  } else {
    return WrongField("stop", "a text or a list of texts");
  }
  std::erase(request.stop, "");
  return Ok();
}

Status ReadStreaming(const Json& body, CompletionRequest& request) {
  ZEUS_TRY(request.stream, GetFlag(body, "stream"));
  const auto options = body.find("stream_options");
  if (options == body.end() || options->is_null()) return Ok();
  if (!options->is_object()) return WrongField("stream_options", "an object");
  ZEUS_TRY(request.include_usage, GetFlag(*options, "include_usage"));
  ZEUS_TRY(request.continuous_usage, GetFlag(*options, "continuous_usage_stats"));
  return Ok();
}

Status ReadLengths(const Json& body, CompletionRequest& request) {
  ZEUS_TRY(request.max_tokens, GetCount(body, "max_tokens", 1));
  ZEUS_TRY(const auto newer_name, GetCount(body, "max_completion_tokens", 1));
  if (newer_name) request.max_tokens = newer_name;
  ZEUS_TRY(const auto least, GetCount(body, "min_tokens", 0));
  request.min_tokens = std::max(1U, least.value_or(1));
  if (request.max_tokens && request.min_tokens > *request.max_tokens)
    return WrongField("min_tokens", "at most max_tokens");
  ZEUS_TRY(request.ignore_eos, GetFlag(body, "ignore_eos"));
  ZEUS_TRY(const auto sequences, GetCount(body, "n", 1));
  request.sequences = sequences.value_or(1);
  if (request.sequences > kMostSequences)
    return WrongField("n", fmt::format("at most {}", kMostSequences));
  return Ok();
}

}  // namespace

unsigned CountTokens(std::string_view text) {
  unsigned tokens = 0;
  std::size_t letters = 0;
  const auto end_word = [&] {
    tokens += static_cast<unsigned>((letters + kLettersPerToken - 1) / kLettersPerToken);
    letters = 0;
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      end_word();
    else
      ++letters;
  }
  end_word();
  return tokens;
}

Result<CompletionRequest> ParseCompletionRequest(Endpoint endpoint, std::string_view text) {
  ZEUS_TRY(Json body, ParseJson(text));
  if (IsOllama(endpoint)) {
    ZEUS_TRY(body, OllamaToOpenAi(endpoint, body));
  }
  if (!body.is_object()) return InvalidArgument("the body must be a JSON object");
  CompletionRequest request{.endpoint = endpoint};
  ZEUS_TRY(const auto model, GetOptionalField<std::string>(body, "model"));
  request.model = model.value_or("");
  if (endpoint == Endpoint::kEmbeddings) {
    ZEUS_RETURN_IF_ERROR(ReadInput(body, request));
  } else {
    const bool chat = endpoint == Endpoint::kChat || endpoint == Endpoint::kOllamaChat;
    ZEUS_TRY(request.prompt_tokens, chat ? CountMessages(body) : CountPrompt(body));
    ZEUS_RETURN_IF_ERROR(ReadLengths(body, request));
    ZEUS_RETURN_IF_ERROR(ReadStop(body, request));
    ZEUS_RETURN_IF_ERROR(ReadStreaming(body, request));
  }
  request.prompt_tokens = std::max(1U, request.prompt_tokens);
  return request;
}

std::string AnswerText(const Json& response) {
  const auto choices = response.find("choices");
  if (choices == response.end() || !choices->is_array() || choices->empty()) return "";
  const Json& choice = choices->front();
  for (const char* path : {"/message/content", "/text"}) {
    const Json::json_pointer pointer(path);
    if (choice.contains(pointer) && choice[pointer].is_string())
      return choice[pointer].get<std::string>();
  }
  return "";
}

}  // namespace zeus::inference
