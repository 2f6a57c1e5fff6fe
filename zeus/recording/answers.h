#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/recording/arguments.h"
#include "zeus/recording/recording_file.h"

namespace zeus::recording {

// How an answer was found.
enum class Match {
  kInOrder,  // The call that the same thread of the recorded program made.
  kNearest,  // The same question at the nearest time.
  kUnknown,  // This was never asked; the answer is "not supported".
};

struct FoundAnswer {
  Match match = Match::kUnknown;
  const Call* call = nullptr;  // Null where nothing was found.
};

// The answers of a recording, found by question and time. The calls must outlive it. Reading is
// thread-safe.
class Answers {
 public:
  explicit Answers(const std::vector<RecordedCall>& calls);

  // The same question at the nearest time, of any process. A failure for want of room only where
  // there is nothing else.
  FoundAnswer Nearest(std::uint16_t function, std::string_view question, std::uint64_t time) const;

  // One field of one GPU at the nearest time, from calls that asked for any fields: its 40 bytes,
  // or the failure of the whole call.
  struct FieldAnswer {
    std::int32_t code;
    std::string_view value;
    std::uint64_t begin;
  };
  std::optional<FieldAnswer> NearestField(std::string_view device, std::string_view field,
                                          std::uint64_t time) const;

  // The calls of a process that asked so, by thread, in their order.
  using ThreadQuestion = std::pair<std::uint16_t, std::string>;
  using Track = std::map<ThreadQuestion, std::vector<const Call*>>;
  Track TrackOf(const std::vector<RecordedCall>& calls, std::uint32_t process) const;

  static std::string Key(std::uint16_t function, std::string_view question);

 private:
  std::unordered_map<std::string, std::vector<const Call*>> by_question_;
  std::unordered_map<std::string, std::vector<FieldAnswer>> by_field_;
};

}  // namespace zeus::recording
