#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// What a user's regular expression says about a program's output. ECMAScript syntax: the first
// group is a count of steps ("step (\d+)"); without a group each match is one step.
class ProgressPattern {
 public:
  // kInvalidArgument quotes an expression that is none.
  static Result<ProgressPattern> Compile(const std::string& expression);

  // The count after this line, when the last one was `before`; nullopt where it says nothing.
  std::optional<double> Count(std::string_view line, double before) const;

 private:
  explicit ProgressPattern(std::regex expression) : expression_(std::move(expression)) {}

  std::regex expression_;
};

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
