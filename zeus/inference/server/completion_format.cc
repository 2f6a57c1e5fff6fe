#include "zeus/inference/server/completion_format.h"

#include <fmt/format.h>

#include "zeus/base/json.h"

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

}  // namespace

CompletionFormat::CompletionFormat(Endpoint endpoint, std::string_view name, std::string_view model,
                                   long long created)
    : endpoint_(endpoint),
      name_((endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + std::string(name)),
      model_(model),
      created_(created),
      prefix_(MakePrefix(endpoint, name_, model, created)) {}

std::string CompletionFormat::Event(unsigned sequence, std::string_view text,
                                    const char* finish_reason, const Usage* usage) const {
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

std::string CompletionFormat::FirstEvent(unsigned sequence) const {
  if (endpoint_ != Endpoint::kChat) return "";
  return fmt::format(
      "{}{{\"index\":{},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\"logprobs\":null,"
      "\"finish_reason\":null}}]}}\n\n",
      prefix_, sequence);
}

std::string CompletionFormat::UsageEvent(const Usage& usage) const {
  return fmt::format("{}],\"usage\":{}}}\n\n", prefix_, UsageJson(usage).dump());
}

std::string CompletionFormat::ErrorEvent(std::string_view message) {
  return fmt::format("data: {}\n\n", ErrorJson(500, message).dump());
}

Json CompletionFormat::Whole(const Usage& usage) const {
  return {{"id", name_},
          {"object", endpoint_ == Endpoint::kChat ? "chat.completion" : "text_completion"},
          {"created", created_},
          {"model", model_},
          {"choices", Json::array()},
          {"usage", UsageJson(usage)}};
}

void CompletionFormat::AddChoice(Json& whole, unsigned sequence, const std::string& text,
                                 const char* finish_reason) const {
  Json choice = {{"index", sequence}, {"logprobs", nullptr}, {"finish_reason", finish_reason}};
  if (endpoint_ == Endpoint::kChat)
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  else
    choice["text"] = text;
  whole["choices"].push_back(std::move(choice));
}

Json CompletionFormat::Embeddings(unsigned inputs, const Usage& usage) const {
  Json data = Json::array();
  for (unsigned i = 0; i < inputs; ++i) {
    Json vector = Json::array();
    for (unsigned k = 0; k < kEmbeddingSize; ++k) vector.push_back(k == i % kEmbeddingSize ? 1 : 0);
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(vector)}});
  }
  return {
      {"object", "list"},
      {"model", model_},
      {"data", std::move(data)},
      {"usage", {{"prompt_tokens", usage.prompt_tokens}, {"total_tokens", usage.prompt_tokens}}}};
}

Json ErrorJson(int status, std::string_view message) {
  const char* const type = status == 404  ? "not_found_error"
                           : status < 500 ? "invalid_request_error"
                                          : "server_error";
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
}

}  // namespace zeus::inference
