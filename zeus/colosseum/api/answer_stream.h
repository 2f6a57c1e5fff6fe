#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/colosseum/duel.h"

namespace zeus::colosseum {

// Reads the stream of a chat completion in OpenAI's dialect, as the gateway passes it on: the text,
// the token counts, and the energy that the gateway puts into it. One owner.
class AnswerStream {
 public:
  explicit AnswerStream(std::function<void(std::string_view)> on_text)
      : on_text_(std::move(on_text)) {}

  void Feed(std::string_view bytes);
  // Returns what is known about the answer at the end of the stream, or why it is no answer.
  Result<Contestant> Finish();
  // The server has reported an error within the stream.
  bool failed() const { return !error_.empty(); }

 private:
  void ReadLine(std::string_view line);
  void ReadEvent(const Json& event);

  const std::function<void(std::string_view)> on_text_;
  std::string line_{};
  bool skips_line_ = false;
  bool has_text_ = false;
  std::string error_{};
  Contestant facts_{};
};

// Adds to an answer what the gateway tells of its request: in the stream, or under
// /zeus/requests/ID. Members that are not there change nothing.
void ReadRequestFacts(const Json& json, Contestant& answer);

}  // namespace zeus::colosseum
