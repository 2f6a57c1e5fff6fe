#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/result.h"

namespace re2 {
class RE2;
}

namespace zeus::cli {

// What a user's regular expression says about a program's output. RE2 syntax, because no expression
// of its kind takes longer than the line is long: the first group is a count of steps
// ("step (\d+)"); without a group each match is one step.
class ProgressPattern {
 public:
  // kInvalidArgument quotes an expression that is none.
  static Result<ProgressPattern> Compile(const std::string& expression);

  // The count after this line, when the last one was `before`; nullopt where it says nothing.
  std::optional<double> Count(std::string_view line, double before) const;

 private:
  explicit ProgressPattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

// A number that can be one of steps; nullopt for nan, inf and what is too large to be.
std::optional<double> ParseCount(std::string_view text);

}  // namespace zeus::cli
