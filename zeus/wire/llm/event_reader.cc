#include "zeus/wire/llm/event_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace zeus::llm {
namespace {

// More finished sequences than any request has, and longer messages than are worth keeping.
constexpr std::size_t kMostFinishReasons = 256;
constexpr std::size_t kLongestKeptText = 512;

// A count or a time; nullopt for values that cannot be one.
std::optional<double> ReadAmount(JsonCursor& cursor) {
  const std::optional<double> number = cursor.ReadNumber();
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  return number;
}

void ReadTime(JsonCursor& cursor, double units_per_second, std::optional<Seconds>& time) {
  if (const auto amount = ReadAmount(cursor)) time = Seconds(*amount / units_per_second);
}

void ReadCount(JsonCursor& cursor, std::optional<double>& count) {
  if (const auto amount = ReadAmount(cursor)) count = amount;
}

constexpr double kMilli = 1e3;
constexpr double kNano = 1e9;

// Text that a model wrote, in one of the fields of an event.
struct OutputText {
  bool some = false;   // A string that is not empty, or a call of a tool.
  bool empty = false;  // An empty string.
  double bytes = 0;
};

void ReadOutputText(JsonCursor& cursor, OutputText& text) {
  const bool is_string = cursor.Peek() == '"';
  const std::optional<std::string_view> string = cursor.ReadString();
  if (string && string->empty()) {
    text.empty = true;
  } else if (is_string) {  // A string that breaks off is one as well.
    text.some = true;
    text.bytes += string ? static_cast<double>(string->size()) : 0;
  }
}

void ReadToolCalls(JsonCursor& cursor, OutputText& text) {
  const std::size_t start = cursor.position();
  if (cursor.ReadLength() == 0) return;
  text.some = true;
  text.bytes += static_cast<double>(cursor.position() - start);
}

// OpenAI's `delta` and `message`, Ollama's `message`. Returns whether it names a role.
bool ReadMessage(JsonCursor& cursor, OutputText& text) {
  bool has_role = false;
  if (!cursor.EnterObject()) return has_role;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "content" || key == "reasoning_content" || key == "reasoning" || key == "thinking" ||
        key == "refusal") {
      ReadOutputText(cursor, text);
    } else if (key == "tool_calls") {
      ReadToolCalls(cursor, text);
    } else if (key == "function_call") {
      text.some = text.some || cursor.Peek() == '{';
      cursor.Skip();
    } else {
      has_role = has_role || (key == "role" && cursor.Peek() == '"');
      cursor.Skip();
    }
  }
  return has_role;
}

// The number of tokens that a list of their probabilities holds: chat has them in `content`, text
// in `tokens`.
std::size_t ReadLogprobs(JsonCursor& cursor) {
  std::size_t tokens = 0;
  if (!cursor.EnterObject()) return tokens;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "content" || key == "tokens")
      tokens = std::max(tokens, cursor.ReadLength());
    else
      cursor.Skip();
  }
  return tokens;
}

// The members of `usage`.
struct UsageCounts {
  TokenCounts counts{};
  std::optional<double> uncached{};  // Anthropic counts the prompt without its cached parts.
  std::optional<double> cache_written{};
};

void ReadUsageMember(std::string_view key, JsonCursor& cursor, UsageCounts& usage) {
  if (key == "prompt_tokens") {
    ReadCount(cursor, usage.counts.prompt);
  } else if (key == "completion_tokens" || key == "output_tokens") {
    ReadCount(cursor, usage.counts.output);
  } else if (key == "input_tokens") {
    ReadCount(cursor, usage.uncached);
  } else if (key == "cache_read_input_tokens") {
    ReadCount(cursor, usage.counts.cached);
  } else if (key == "cache_creation_input_tokens") {
    ReadCount(cursor, usage.cache_written);
  } else if (key == "prompt_tokens_details" || key == "input_tokens_details") {
    if (!cursor.EnterObject()) return;
    while (cursor.NextMember(key)) {
      if (key == "cached_tokens")
        ReadCount(cursor, usage.counts.cached);
      else
        cursor.Skip();
    }
  } else {
    cursor.Skip();
  }
}

void AddCount(std::optional<double>& sum, const std::optional<double>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

void KeepLargest(std::optional<double>& largest, const std::optional<double>& other) {
  if (other) largest = std::max(largest.value_or(0), *other);
}

}  // namespace

// A sequence's part of an event.
struct EventReader::Choice {
  OutputText text;
  bool has_role = false;
  bool finished = false;
  std::size_t listed_tokens = 0;  // Tokens that the event names one by one.

  // An event with a role and no text opens the message, one with a reason and no text closes it.
  // Any other event without text is a token whose text cannot be shown yet, such as the first half
  // of a character.
  double Tokens() const {
    if (listed_tokens > 0) return static_cast<double>(listed_tokens);
    return text.some || (text.empty && !has_role && !finished) ? 1 : 0;
  }
};

struct EventReader::Event {
  EventShape shape{};
  Choice own{};  // Dialects without choices: the event itself.
  TokenCounts in_usage{};
  TokenCounts elsewhere{};  // In `timings` and in the fields of other servers than OpenAI's.
  bool timed = false;       // It has `timings`.
  bool has_choices = false;
  std::size_t choices = 0;
  bool finished = false;
  bool under_way = false;   // Ollama's `done` is false.
  bool done = false;        // Ollama's `done`, llama.cpp's `stop`, TGI's whole text.
  bool of_prompt = false;   // llama.cpp reports how far the prompt is; its counts are stale then.
  std::string_view type{};  // The kind of event that Anthropic and OpenAI's responses name.

  bool CountsOutput() const { return in_usage.output || elsewhere.output; }
};

EventShape EventReader::Read(std::string_view json) {
  JsonCursor cursor(json);
  Event event;
  if (cursor.Peek() != '{' || !cursor.EnterObject()) return event.shape;
  ObjectSite& object = event.shape.object;
  std::string_view key;
  while (cursor.NextMember(key)) {
    object.empty = false;
    object.has_energy = object.has_energy || key == "energy";
    ReadMember(key, cursor, event);
  }
  object.closing = cursor.position() - 1;
  object.found = cursor.ok();
  event.shape.understood = cursor.ok() && cursor.AtEnd();
  Conclude(event);
  return event.shape;
}

void EventReader::ReadMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (ReadCommonMember(key, cursor, event)) return;
  switch (request_.dialect) {
    case Dialect::kOpenAiChat:
    case Dialect::kOpenAiText:
      return ReadOpenAiMember(key, cursor, event);
    case Dialect::kOllama:
    case Dialect::kEmbeddings:
      return ReadOllamaMember(key, cursor, event);
    case Dialect::kLlamaCpp:
      return ReadLlamaCppMember(key, cursor, event);
    case Dialect::kTgi:
      return ReadTgiMember(key, cursor, event);
    case Dialect::kAnthropic:
      return ReadAnthropicMember(key, cursor, event);
    case Dialect::kOpenAiResponses:
      return ReadResponsesMember(key, cursor, event);
  }
  cursor.Skip();
}

bool EventReader::ReadCommonMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "usage") {
    event.in_usage = ReadUsage(cursor, event.shape.usage);
  } else if (key == "timings") {
    event.timed = true;
    ReadTimings(cursor, event.elsewhere);
  } else if (key == "metrics") {
    ReadMetrics(cursor);
  } else if (key == "error") {
    ReadError(cursor);
  } else {
    return false;
  }
  return true;
}

void EventReader::ReadOpenAiMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "choices")
    ReadChoices(cursor, event);
  else
    cursor.Skip();
}

void EventReader::ReadChoices(JsonCursor& cursor, Event& event) {
  if (!cursor.EnterArray()) return;
  while (cursor.NextElement()) {
    ++event.choices;
    ReadChoice(cursor, event);
  }
  event.has_choices = cursor.ok() || event.choices > 0;
}

void EventReader::ReadChoice(JsonCursor& cursor, Event& event) {
  Choice choice;
  std::string_view key;
  if (!cursor.EnterObject()) return;
  while (cursor.NextMember(key)) {
    if (key == "delta" || key == "message") {
      choice.has_role = ReadMessage(cursor, choice.text);
    } else if (key == "text") {
      ReadOutputText(cursor, choice.text);
    } else if (key == "logprobs") {
      choice.listed_tokens = std::max(choice.listed_tokens, ReadLogprobs(cursor));
    } else if (key == "token_ids") {
      choice.listed_tokens = std::max(choice.listed_tokens, cursor.ReadLength());
    } else if (key == "finish_reason") {
      const auto reason = cursor.ReadString();
      choice.finished = reason && !reason->empty();
      if (choice.finished) AddFinishReason(*reason);
    } else {
      cursor.Skip();
    }
  }
  event.finished = event.finished || choice.finished;
  event.shape.tokens += choice.Tokens();
  event.shape.text_bytes += choice.text.bytes;
}

// Ollama, and the counts of its embeddings.
void EventReader::ReadOllamaMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "choices") {
    ReadChoices(cursor, event);
  } else if (key == "message") {
    (void)ReadMessage(cursor, event.own.text);
  } else if (key == "response" || key == "thinking") {
    ReadOutputText(cursor, event.own.text);
  } else if (key == "done") {
    event.under_way = cursor.Peek() == 'f';
    event.done = cursor.ReadTrue();
  } else if (key == "done_reason") {
    if (const auto reason = cursor.ReadString()) AddFinishReason(*reason);
  } else if (key == "prompt_eval_count") {
    ReadCount(cursor, event.elsewhere.prompt);
  } else if (key == "eval_count") {
    ReadCount(cursor, event.elsewhere.output);
  } else if (key == "prompt_eval_duration") {
    ReadTime(cursor, kNano, facts_.times.prefill);
  } else if (key == "eval_duration") {
    ReadTime(cursor, kNano, facts_.times.decode);
  } else if (key == "load_duration") {
    ReadTime(cursor, kNano, facts_.times.load);
  } else {
    cursor.Skip();
  }
}

void EventReader::ReadLlamaCppMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "content") {
    ReadOutputText(cursor, event.own.text);
  } else if (key == "tokens") {
    event.own.listed_tokens = cursor.ReadLength();
  } else if (key == "stop") {
    event.done = cursor.ReadTrue();
  } else if (key == "stop_type") {
    const auto reason = cursor.ReadString();
    if (reason && !reason->empty() && *reason != "none") AddFinishReason(*reason);
  } else if (key == "tokens_evaluated") {
    ReadCount(cursor, event.elsewhere.prompt);
  } else if (key == "tokens_predicted") {
    ReadCount(cursor, event.elsewhere.output);
  } else if (key == "prompt_progress") {
    event.of_prompt = true;
    cursor.Skip();
  } else {
    cursor.Skip();
  }
}

void EventReader::ReadTgiMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "token") {
    event.own.text.some = event.own.text.some || cursor.Peek() == '{';
    cursor.Skip();
  } else if (key == "generated_text") {
    event.done = event.done || cursor.Peek() == '"';
    if (const auto text = cursor.ReadString())
      event.shape.text_bytes += static_cast<double>(text->size());
  } else if (key == "details") {
    event.done = event.done || cursor.Peek() == '{';
    ReadTgiDetails(cursor, event.elsewhere);
  } else {
    cursor.Skip();
  }
}

void EventReader::ReadTgiDetails(JsonCursor& cursor, TokenCounts& counts) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "generated_tokens") {
      ReadCount(cursor, counts.output);
    } else if (key == "input_length") {
      ReadCount(cursor, counts.prompt);
    } else if (key == "prefill") {
      if (const std::size_t length = cursor.ReadLength(); length > 0)
        counts.prompt = static_cast<double>(length);
    } else if (key == "finish_reason") {
      if (const auto reason = cursor.ReadString()) AddFinishReason(*reason);
    } else {
      cursor.Skip();
    }
  }
}

void EventReader::ReadAnthropicMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "type") {
    event.type = cursor.ReadString().value_or("");
  } else if (key == "stop_reason") {
    if (const auto reason = cursor.ReadString()) AddFinishReason(*reason);
  } else if (key == "message") {
    ReadAnthropicStart(cursor, event);
  } else if (key == "delta") {
    ReadAnthropicDelta(cursor, event);
  } else {
    cursor.Skip();
  }
}

// The message that a stream begins with has the counts of the prompt, and none of the output yet.
void EventReader::ReadAnthropicStart(JsonCursor& cursor, Event& event) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  ObjectSite ignored;
  while (cursor.NextMember(key)) {
    if (key == "usage")
      event.in_usage = ReadUsage(cursor, ignored);
    else
      cursor.Skip();
  }
  event.in_usage.output.reset();
}

void EventReader::ReadAnthropicDelta(JsonCursor& cursor, Event& event) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "text" || key == "thinking" || key == "partial_json") {
      ReadOutputText(cursor, event.own.text);
    } else if (key == "stop_reason") {
      if (const auto reason = cursor.ReadString()) AddFinishReason(*reason);
    } else {
      cursor.Skip();
    }
  }
}

// Events name their kind; the last one has the whole response with its usage. Bodies are that
// response.
void EventReader::ReadResponsesMember(std::string_view key, JsonCursor& cursor, Event& event) {
  if (key == "type") {
    event.type = cursor.ReadString().value_or("");
  } else if (key == "delta") {
    ReadOutputText(cursor, event.own.text);
  } else if (key == "status") {
    const auto status = cursor.ReadString();
    if (status && *status != "in_progress") AddFinishReason(*status);
  } else if (key == "response" && cursor.Peek() == '{' && cursor.EnterObject()) {
    while (cursor.NextMember(key)) {
      if (!ReadCommonMember(key, cursor, event)) {
        if (key == "status")
          ReadResponsesMember(key, cursor, event);
        else
          cursor.Skip();
      }
    }
  } else {
    cursor.Skip();
  }
}

TokenCounts EventReader::ReadUsage(JsonCursor& cursor, ObjectSite& site) const {
  UsageCounts usage;
  if (!cursor.EnterObject()) return {};
  std::string_view key;
  while (cursor.NextMember(key)) {
    site.empty = false;
    site.has_energy = site.has_energy || key == "energy";
    ReadUsageMember(key, cursor, usage);
  }
  site.found = cursor.ok();
  site.closing = cursor.position() - 1;
  TokenCounts& counts = usage.counts;
  if (usage.uncached && request_.dialect == Dialect::kAnthropic)
    counts.prompt = *usage.uncached + counts.cached.value_or(0) + usage.cache_written.value_or(0);
  else if (!counts.prompt)
    counts.prompt = usage.uncached;
  return counts;
}

// llama.cpp. The prompt's tokens without those that were in the cache are `prompt_n`.
void EventReader::ReadTimings(JsonCursor& cursor, TokenCounts& counts) {
  std::optional<double> computed;
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "cache_n") {
      ReadCount(cursor, counts.cached);
    } else if (key == "prompt_n") {
      ReadCount(cursor, computed);
    } else if (key == "predicted_n") {
      ReadCount(cursor, counts.output);
    } else if (key == "prompt_ms") {
      ReadTime(cursor, kMilli, facts_.times.prefill);
    } else if (key == "predicted_ms") {
      ReadTime(cursor, kMilli, facts_.times.decode);
    } else {
      cursor.Skip();
    }
  }
  // Old servers do not say how much of the prompt was in the cache.
  if (computed && (counts.cached || !counts.prompt))
    counts.prompt = *computed + counts.cached.value_or(0);
}

// vLLM. The time to the first token counts from when the request was scheduled.
void EventReader::ReadMetrics(JsonCursor& cursor) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "queue_time_ms")
      ReadTime(cursor, kMilli, facts_.times.queue);
    else if (key == "time_to_first_token_ms")
      ReadTime(cursor, kMilli, facts_.times.prefill);
    else if (key == "generation_time_ms")
      ReadTime(cursor, kMilli, facts_.times.decode);
    else
      cursor.Skip();
  }
}

// A message, or an object that has one.
void EventReader::ReadError(JsonCursor& cursor) {
  std::optional<std::string_view> message;
  if (cursor.Peek() == '"') {
    message = cursor.ReadString();
  } else if (cursor.Peek() == '{' && cursor.EnterObject()) {
    message = "error";
    std::string_view key;
    while (cursor.NextMember(key)) {
      if (key != "message")
        cursor.Skip();
      else if (const auto text = cursor.ReadString())
        message = text;
    }
  } else {
    cursor.Skip();
  }
  if (message && facts_.error.empty())
    facts_.error = Unescaped(*message).substr(0, kLongestKeptText);
}

void EventReader::AddFinishReason(std::string_view json_string) {
  if (facts_.finish_reasons.size() < kMostFinishReasons)
    facts_.finish_reasons.push_back(Unescaped(json_string).substr(0, kLongestKeptText));
}

void EventReader::Conclude(Event& event) {
  EventShape& shape = event.shape;
  shape.text_bytes += event.own.text.bytes;
  switch (request_.dialect) {
    case Dialect::kOpenAiChat:
    case Dialect::kOpenAiText:
      return ConcludeOpenAi(event);
    case Dialect::kAnthropic:
    case Dialect::kOpenAiResponses:
      return ConcludeTyped(event);
    case Dialect::kEmbeddings:
      shape.final = true;
      AddCounts(event);
      facts_.output_tokens = 0;
      return;
    case Dialect::kOllama:
      if (event.has_choices) return ConcludeOpenAi(event);  // A server that imitates the path only.
      shape.final = event.done;
      AddCounts(event);
      // A line without text is a token too: a part of a character, or a mark.
      shape.tokens = event.under_way || event.own.text.some ? 1 : 0;
      return;
    case Dialect::kLlamaCpp:
    case Dialect::kTgi:
      event.own.finished = event.done;
      shape.final = event.done;
      AddCounts(event);
      shape.tokens = event.of_prompt ? 0 : event.own.Tokens();
      if (event.CountsOutput() && !event.of_prompt && !event.done && request_.sequences == 1)
        shape.tokens = UnseenTokens();
  }
}

// The event's counts: those in `usage` rank above others, also above those of other events.
TokenCounts EventReader::CountsIn(const Event& event) {
  TokenCounts counts = event.in_usage;
  if (counts.prompt || counts.output) {
    counted_by_usage_ = true;
    if (!counts.cached) counts.cached = event.elsewhere.cached;
  } else {
    counts = counted_by_usage_ ? TokenCounts() : event.elsewhere;
  }
  if (event.timed && event.choices > 1) {  // llama-server counts the first of several choices.
    facts_.seen_tokens = counts.output.value_or(0) * static_cast<double>(event.choices);
    counts.output.reset();
  }
  return counts;
}

// Adds the event's counts to those of the response. The server counts one sequence after the other
// (llama-server: an event with usage for each) or all of them at the end (vLLM): the sum over the
// events that end a sequence is right for both.
void EventReader::AddCounts(const Event& event) {
  if (event.of_prompt) return;
  const TokenCounts counts = CountsIn(event);
  if (request_.sequences == 1) {
    // The last event of Anthropic's streams repeats the prompt's count as 0 on some servers.
    if (counts.prompt.value_or(0) > 0 || !facts_.prompt_tokens)
      facts_.prompt_tokens = counts.prompt;
    if (counts.cached.value_or(0) > 0 || !facts_.cached_tokens)
      facts_.cached_tokens = counts.cached;
    if (counts.output) facts_.output_tokens = counts.output;
  } else if (event.shape.final || (event.finished && !counts_run_)) {
    AddCount(facts_.output_tokens, counts.output);
    const auto merge = request_.prompts > 1 ? AddCount : KeepLargest;
    merge(facts_.prompt_tokens, counts.prompt);
    merge(facts_.cached_tokens, counts.cached);
  }
}

double EventReader::UnseenTokens() const {
  return std::max(0.0, facts_.output_tokens.value_or(0) - facts_.seen_tokens);
}

// Some servers repeat the counts in every event when asked to, and then the difference to the
// tokens seen so far is exact. With several sequences each event counts one of them.
void EventReader::ConcludeOpenAi(Event& event) {
  EventShape& shape = event.shape;
  const bool counts = event.CountsOutput() && event.choices > 0;
  if (counts && !event.finished) counts_run_ = true;
  shape.only_usage = shape.usage.found && event.has_choices && event.choices == 0;
  shape.final = shape.only_usage || (shape.usage.found && event.finished && !counts_run_);
  AddCounts(event);
  if (counts && counts_run_ && request_.sequences == 1) shape.tokens = UnseenTokens();
}

// Anthropic's events and those of OpenAI's responses.
void EventReader::ConcludeTyped(Event& event) {
  EventShape& shape = event.shape;
  const bool ends = event.type == "response.completed" || event.type == "response.incomplete" ||
                    event.type == "response.failed";
  const bool text = event.type == "content_block_delta" || event.type.ends_with(".delta");
  shape.final = shape.usage.found && (ends || event.type == "message_delta");
  shape.ends_stream = ends || event.type == "message_stop";
  shape.tokens = text && event.own.text.some ? 1 : 0;
  AddCounts(event);
}

}  // namespace zeus::llm
