#include "zeus/inference/server/completion_format.h"

#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/inference/server/ollama_dialect.h"

namespace zeus::inference {
namespace {

constexpr unsigned kEmbeddingSize = 16;

Json UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.output_tokens},
          {"total_tokens", usage.prompt_tokens + usage.output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::string Quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string MakePrefix(Endpoint endpoint, std::string_view name, std::string_view model,
                       long long created) {
  return fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)",
                     Quoted(name),
                     endpoint == Endpoint::kChat ? "chat.completion.chunk" : "text_completion",
                     created, Quoted(model));
}

// OpenAI's chats and texts: server-sent events, or one object.
class OpenAiFormat final : public AnswerFormat {
 public:
  OpenAiFormat(Endpoint endpoint, std::string_view name, std::string_view model, long long created)
      : endpoint_(endpoint),
        name_((endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + std::string(name)),
        model_(model),
        created_(created),
        prefix_(MakePrefix(endpoint, name_, model, created)) {}

  const char* stream_content_type() const override { return "text/event-stream; charset=utf-8"; }

  std::string FirstEvent(unsigned sequence) const override {
    if (endpoint_ != Endpoint::kChat) return "";
    return fmt::format(
        "{}{{\"index\":{},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\"logprobs\":null,"
        "\"finish_reason\":null}}]}}\n\n",
        prefix_, sequence);
  }

  std::string Event(unsigned sequence, std::string_view text, const char* finish_reason,
                    const Usage* usage) const override {
    const std::string content = endpoint_ == Endpoint::kChat
                                    ? fmt::format(R"("delta":{{"content":{}}})", Quoted(text))
                                    : fmt::format(R"("text":{})", Quoted(text));
    const std::string finish =
        finish_reason == nullptr ? "null" : fmt::format("\"{}\"", finish_reason);
    const std::string counts =
        usage == nullptr ? "" : fmt::format(R"(,"usage":{})", UsageJson(*usage).dump());
    return fmt::format("{}{{\"index\":{},{},\"logprobs\":null,\"finish_reason\":{}}}]{}}}\n\n",
                       prefix_, sequence, content, finish, counts);
  }

  std::string UsageEvent(const AnswerEnd& end) const override {
    if (end.usage == nullptr) return "";
    return fmt::format("{}],\"usage\":{}}}\n\n", prefix_, UsageJson(*end.usage).dump());
  }

  std::string DoneEvent() const override { return "data: [DONE]\n\n"; }

  std::string ErrorEvent(std::string_view message) const override {
    return fmt::format("data: {}\n\n", ErrorJson(500, message).dump());
  }

  Json Whole(const std::vector<AnswerChoice>& choices, const AnswerEnd& end) const override {
    const bool chat = endpoint_ == Endpoint::kChat;
    Json whole = {{"id", name_},
                  {"object", chat ? "chat.completion" : "text_completion"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", Json::array()}};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      Json choice = {
          {"index", i}, {"logprobs", nullptr}, {"finish_reason", choices[i].finish_reason}};
      if (chat)
        choice["message"] = {{"role", "assistant"}, {"content", choices[i].text}};
      else
        choice["text"] = choices[i].text;
      whole["choices"].push_back(std::move(choice));
    }
    if (end.usage != nullptr) whole["usage"] = UsageJson(*end.usage);
    return whole;
  }

 private:
  const Endpoint endpoint_;
  const std::string name_;
  const std::string model_;
  const long long created_;
  const std::string prefix_;  // All events begin with it.
};

}  // namespace

std::unique_ptr<AnswerFormat> MakeFormat(Endpoint endpoint, std::string_view name,
                                         std::string_view model, long long created) {
  if (IsOllama(endpoint)) return MakeOllamaFormat(endpoint, model, created);
  return std::make_unique<OpenAiFormat>(endpoint, name, model, created);
}

Json EmbeddingsJson(std::string_view model, unsigned inputs, const Usage* usage) {
  Json data = Json::array();
  for (unsigned i = 0; i < inputs; ++i) {
    Json vector = Json::array();
    for (unsigned k = 0; k < kEmbeddingSize; ++k) vector.push_back(k == i % kEmbeddingSize ? 1 : 0);
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(vector)}});
  }
  Json whole = {{"object", "list"}, {"model", model}, {"data", std::move(data)}};
  if (usage != nullptr)
    whole["usage"] = {{"prompt_tokens", usage->prompt_tokens},
                      {"total_tokens", usage->prompt_tokens}};
  return whole;
}

Json ErrorJson(int status, std::string_view message) {
  const char* const type = status == 404  ? "not_found_error"
                           : status < 500 ? "invalid_request_error"
                                          : "server_error";
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
}

}  // namespace zeus::inference
