#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/wire/llm/response_filter.h"

// The promises of a ResponseFilter, checked with any bytes in any pieces. The first bytes of the
// input choose the dialect and how the rest is split.
namespace zeus::llm::fuzzing {

class Listener final : public ResponseFilter::Listener {
 public:
  void OnTokens(double tokens) override { tokens_.push_back(tokens); }
  std::optional<EnergyNote> OnEnergyWanted(const ResponseFacts& /*facts*/) override {
    EnergyNote note;
    note.absent_reason = "fuzzing";
    note.request = "7f3a9c";
    return note;
  }
  const std::vector<double>& tokens() const { return tokens_; }
  // The object that OnEnergyWanted() stands for.
  static std::string Text() { return ToJsonText(*Listener().OnEnergyWanted({})); }

 private:
  std::vector<double> tokens_{};
};

struct Outcome {
  std::string out;
  std::vector<double> tokens;
  ResponseFacts facts;
};

// Feeds the bytes in pieces of `piece`.
inline Outcome Filter(const RequestFacts& request, const ResponsePlan& plan, std::string_view bytes,
                      std::size_t piece) {
  Listener listener;
  ResponseFilter filter(request, plan, listener);
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    filter.Feed(bytes.substr(at, piece), outcome.out);
  filter.Finish(outcome.out);
  outcome.tokens = listener.tokens();
  outcome.facts = filter.facts();
  return outcome;
}

inline void Require(bool promise) {
  if (!promise) __builtin_trap();
}

inline void RequireSame(const Outcome& one, const Outcome& other) {
  Require(one.out == other.out && one.tokens == other.tokens);
  Require(one.facts.prompt_tokens == other.facts.prompt_tokens);
  Require(one.facts.cached_tokens == other.facts.cached_tokens);
  Require(one.facts.output_tokens == other.facts.output_tokens);
  Require(one.facts.finish_reasons == other.facts.finish_reasons);
  Require(one.facts.error == other.facts.error);
}

inline void Remove(std::string& text, const std::string& part) {
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at))
    text.erase(at, part.size());
}

// The output with all insertions taken out again.
inline std::string WithoutEnergy(std::string text) {
  for (const char* end : {"\r\n\r\n", "\n\n", "\r\r"})
    Remove(text, ": energy " + Listener::Text() + end);
  Remove(text, ",\"energy\":" + Listener::Text());
  Remove(text, "\"energy\":" + Listener::Text());
  return text;
}

// A stream that ends inside of a comment gets a line end before the energy.
inline bool IsInput(std::string_view stripped, std::string_view input) {
  if (!stripped.starts_with(input)) return false;
  const std::string_view rest = stripped.substr(input.size());
  return rest.empty() || rest == "\n" || rest == "\r\n" || rest == "\r";
}

// Bytes from 0xE0 on stand for pieces of real responses, which chance would not find.
inline std::string Expanded(std::string_view bytes) {
  static constexpr std::array<std::string_view, 32> kPieces{
      "data: ",
      "data:",
      "data: [DONE]",
      "event: message_stop\n",
      ": ping\n",
      "\n\n",
      "\r\n\r\n",
      "\xEF\xBB\xBF",
      "{\"choices\":[",
      "{\"delta\":{\"content\":\"",
      "\"}}",
      "]}",
      "\"finish_reason\":\"stop\"",
      "{\"role\":\"assistant\"",
      ",\"usage\":{",
      "\"usage\":null",
      "\"completion_tokens\":",
      "\"prompt_tokens\":",
      "\"timings\":{\"predicted_n\":",
      "\"message\":{",
      "\"done\":true",
      "\"done\":false",
      "\"type\":\"message_stop\"",
      "\"type\":\"message_delta\"",
      "\"token\":{",
      "\"details\":{",
      "\"content\":\"",
      "\"stop\":true",
      "\"energy\":",
      "\"error\":",
      "\\\"",
      "{\"choices\":[],\"usage\":{\"completion_tokens\":3}}"};
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0xE0)
      text += byte;
    else
      text += kPieces[code - 0xE0U];
  }
  return text;
}

// Checks one input as a response of this content type.
inline void CheckResponse(std::string_view content_type, const std::uint8_t* data,
                          std::size_t size) {
  if (size < 2) return;
  RequestFacts request;
  request.dialect = static_cast<Dialect>(data[0] % 8);
  request.prompts = data[1] % 64 == 0 ? 2 : 1;
  request.sequences = data[1] >= 192 ? 2 : request.prompts;
  request.streamed = content_type != "application/json";
  const std::size_t piece = 1 + data[1] % 16;
  const std::string text = Expanded({reinterpret_cast<const char*>(data) + 2, size - 2});
  const std::string_view bytes = text;
  ResponsePlan plan{.content_type = content_type, .content_encoding = ""};
  if (data[0] >= 128) plan.largest_event = plan.largest_body = 64;

  const Outcome whole = Filter(request, plan, bytes, bytes.size() + 1);
  RequireSame(whole, Filter(request, plan, bytes, piece));
  if (bytes.find("7f3a9c") == bytes.npos) Require(IsInput(WithoutEnergy(whole.out), bytes));

  plan.remove_usage_event = true;
  RequireSame(Filter(request, plan, bytes, bytes.size() + 1), Filter(request, plan, bytes, piece));

  plan.remove_usage_event = false;
  plan.annotate = Annotate::kNone;
  const Outcome plain = Filter(request, plan, bytes, piece);
  Require(plain.out == bytes && plain.tokens == whole.tokens);
}

}  // namespace zeus::llm::fuzzing
