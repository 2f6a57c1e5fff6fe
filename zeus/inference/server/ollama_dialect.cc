#include "zeus/inference/server/ollama_dialect.h"

#include <chrono>
#include <cmath>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::inference {
namespace {

std::string Timestamp(long long created) {
  return ToExactText(WallTime(std::chrono::seconds(created)));
}

long long Nanoseconds(Seconds time) { return std::llround(time.count() * 1e9); }

std::string OllamaLine(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

class OllamaFormat final : public AnswerFormat {
 public:
  OllamaFormat(Endpoint endpoint, std::string_view model, long long created)
      : endpoint_(endpoint), model_(model), created_(Timestamp(created)) {}

  const char* stream_content_type() const override { return "application/x-ndjson"; }
  std::string FirstEvent(unsigned /*sequence*/) const override { return ""; }

  std::string Event(unsigned /*sequence*/, std::string_view text, const char* /*finish_reason*/,
                    const Usage* /*usage*/) const override {
    Json line = Begin(text);
    line["done"] = false;
    return OllamaLine(line);
  }

  // The last line both has the counts and marks the end.
  std::string UsageEvent(const AnswerEnd& end) const override {
    Json line = Begin("");
    AddEnd(end, line);
    return OllamaLine(line);
  }
  std::string DoneEvent() const override { return ""; }
  std::string ErrorEvent(std::string_view message) const override {
    return OllamaLine(OllamaError(message));
  }

  Json Whole(const std::vector<AnswerChoice>& choices, const AnswerEnd& end) const override {
    Json whole = Begin(choices.empty() ? "" : choices.front().text);
    AddEnd(end, whole);
    return whole;
  }

 private:
  Json Begin(std::string_view text) const {
    Json line = {{"model", model_}, {"created_at", created_}};
    if (endpoint_ == Endpoint::kOllamaChat)
      line["message"] = {{"role", "assistant"}, {"content", text}};
    else
      line["response"] = text;
    return line;
  }

  // There is no prompt_eval_duration: the time before the first token includes that in the queue.
  static void AddEnd(const AnswerEnd& end, Json& line) {
    line["done"] = true;
    line["done_reason"] = end.finish_reason;
    line["total_duration"] = Nanoseconds(end.duration);
    line["eval_duration"] = Nanoseconds(end.decode);
    if (end.usage == nullptr) return;
    line["prompt_eval_count"] = end.usage->prompt_tokens;
    line["eval_count"] = end.usage->output_tokens;
  }

  const Endpoint endpoint_;
  const std::string model_;
  const std::string created_;
};

}  // namespace

Result<Json> OllamaToOpenAi(Endpoint endpoint, const Json& body) {
  if (!body.is_object()) return InvalidArgument("the body must be a JSON object");
  Json request = {{"stream", true}, {"stream_options", {{"include_usage", true}}}};
  const char* const prompt = endpoint == Endpoint::kOllamaChat ? "messages" : "prompt";
  for (const char* name : {"model", "stream", prompt})
    if (const auto found = body.find(name); found != body.end() && !found->is_null())
      request[name] = *found;
  const auto options = body.find("options");
  if (options == body.end() || options->is_null()) return request;
  if (!options->is_object()) return InvalidArgument("field \"options\" must be an object");
  for (const char* name : {"stop", "temperature", "top_p", "seed"})
    if (const auto found = options->find(name); found != options->end()) request[name] = *found;
  const auto limit = options->find("num_predict");
  if (limit == options->end() || limit->is_null()) return request;
  // A negative number is no limit.
  if (limit->is_number_integer() && *limit < 0) return request;
  request["max_tokens"] = *limit;
  return request;
}

std::unique_ptr<AnswerFormat> MakeOllamaFormat(Endpoint endpoint, std::string_view model,
                                               long long created) {
  return std::make_unique<OllamaFormat>(endpoint, model, created);
}

Json OllamaTags(std::string_view model, long long created) {
  Json entry = {{"name", model},
                {"model", model},
                {"modified_at", Timestamp(created)},
                {"size", 0},
                {"digest", ""},
                {"details", {{"format", "simulated"}, {"family", "zeus"}}}};
  return {{"models", Json::array({std::move(entry)})}};
}

Json OllamaError(std::string_view message) { return {{"error", message}}; }

}  // namespace zeus::inference
