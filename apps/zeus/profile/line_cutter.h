#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"

namespace zeus::cli {

// Cuts a stream into lines, which end with a newline or, as those of progress bars, with a carriage
// return. A line has the time at which its last byte arrived: bars that begin with the carriage
// return end a line only when the next one is due. One owner.
class LineCutter {
 public:
  struct Line {
    std::string text;
    TimePoint when;
  };

  void Feed(TimePoint when, std::string_view bytes);
  // The next complete line.
  std::optional<Line> Next();
  // What the stream ended with.
  std::optional<Line> Rest();

 private:
  std::string pending_;       // Not yet cut.
  TimePoint pending_when_{};  // Of what came before the last Feed().
  TimePoint fed_when_{};
  std::size_t fed_at_ = 0;  // Where in `pending_` the last Feed() begins.
};

}  // namespace zeus::cli
