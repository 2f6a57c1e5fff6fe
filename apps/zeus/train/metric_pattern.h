#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"

namespace re2 {
class RE2;
}

namespace zeus::cli {

// A user's regular expression for the metric in a program's output: its group is the number, each
// match one epoch. RE2 syntax.
class MetricPattern {
 public:
  // kInvalidArgument quotes an expression that is none, or has no group.
  static Result<MetricPattern> Compile(const std::string& expression);

  // The metrics on this line; what the group holds and is no number counts as not a number, for a
  // training that diverged prints such things. A group that holds nothing is no match.
  std::vector<double> Metrics(std::string_view line) const;

 private:
  explicit MetricPattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace zeus::cli
