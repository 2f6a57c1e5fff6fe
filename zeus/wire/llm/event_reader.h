#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "zeus/wire/llm/json_cursor.h"
#include "zeus/wire/llm/request.h"
#include "zeus/wire/llm/response_facts.h"

namespace zeus::llm {

// An object in the text of an event, and where a member can be added to it.
struct ObjectSite {
  bool found = false;
  std::size_t closing = 0;  // The offset of its closing bracket.
  bool empty = true;
  bool has_energy = false;  // It has a member of that name already.
};

// Tokens as a server counts them.
struct TokenCounts {
  std::optional<double> prompt{};
  std::optional<double> cached{};
  std::optional<double> output{};
};

// The parts of one event, line or body that matter for the way it is handled.
struct EventShape {
  bool understood = false;   // It is one JSON object.
  double tokens = 0;         // Output tokens that it brings, in a stream.
  double text_bytes = 0;     // Bytes of output text.
  bool only_usage = false;   // It has usage and an empty list of choices.
  bool final = false;        // It has the final counts: the energy belongs here.
  bool ends_stream = false;  // Clients stop reading here.
  ObjectSite object;
  ObjectSite usage;
};

// Reads the events of one response in the request's dialect, one after the other, and adds to the
// response's facts whatever they tell. One owner; both arguments must outlive it.
class EventReader {
 public:
  EventReader(const RequestFacts& request, ResponseFacts& facts)
      : request_(request), facts_(facts) {}

  // `json` is the data of an event, a line, or a body. A text that breaks off tells what it can.
  EventShape Read(std::string_view json);

 private:
  struct Choice;
  struct Event;

  void ReadMember(std::string_view key, JsonCursor& cursor, Event& event);
  bool ReadCommonMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadOpenAiMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadOllamaMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadLlamaCppMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadTgiMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadAnthropicMember(std::string_view key, JsonCursor& cursor, Event& event);
  void ReadResponsesMember(std::string_view key, JsonCursor& cursor, Event& event);

  void ReadChoices(JsonCursor& cursor, Event& event);
  void ReadChoice(JsonCursor& cursor, Event& event);
  void ReadTgiDetails(JsonCursor& cursor, TokenCounts& counts);
  void ReadAnthropicStart(JsonCursor& cursor, Event& event);
  void ReadAnthropicDelta(JsonCursor& cursor, Event& event);
  TokenCounts ReadUsage(JsonCursor& cursor, ObjectSite& site) const;
  void ReadTimings(JsonCursor& cursor, TokenCounts& counts);
  void ReadMetrics(JsonCursor& cursor);
  void ReadError(JsonCursor& cursor);
  void AddFinishReason(std::string_view json_string);

  void Conclude(Event& event);
  void ConcludeOpenAi(Event& event);
  void ConcludeTyped(Event& event);
  TokenCounts CountsIn(const Event& event);
  void AddCounts(const Event& event);
  // Tokens that the server counted and no event showed.
  double UnseenTokens() const;

  const RequestFacts& request_;
  ResponseFacts& facts_;
  bool counted_by_usage_ = false;  // Counts in `usage` rank above those in `timings`.
  bool counts_run_ = false;        // Every event repeats the counts so far (continuous usage).
};

}  // namespace zeus::llm
