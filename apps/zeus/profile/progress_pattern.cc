#include "apps/zeus/profile/progress_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "apps/zeus/profile/expression.h"
#include "zeus/base/text.h"

namespace zeus::cli {
Result<ProgressPattern> ProgressPattern::Compile(const std::string& expression) {
  ZEUS_TRY(
      auto compiled,
      CompileExpression(expression, "--progress takes a regular expression as in 'step (\\d+)'"));
  return ProgressPattern(std::move(compiled));
}

std::optional<double> ProgressPattern::Count(std::string_view line, double before) const {
  const re2::StringPiece text(line.data(), line.size());
  const int groups = std::min(expression_->NumberOfCapturingGroups(), 1);
  std::array<re2::StringPiece, 2> found;
  std::optional<double> count;
  for (std::size_t from = 0; from <= line.size();) {
    if (!expression_->Match(text, from, line.size(), re2::RE2::UNANCHORED, found.data(),
                            1 + groups))
      break;
    if (groups == 0) {
      count = count.value_or(before) + 1;
    } else if (const auto number = ParseCount({found[1].data(), found[1].size()})) {
      count = number;
    }
    const auto end = static_cast<std::size_t>(found[0].data() + found[0].size() - line.data());
    from = found[0].empty() ? end + 1 : end;
  }
  return count;
}

std::optional<double> ParseCount(std::string_view text) {
  constexpr double kMost = 1e15;  // Beyond it steps can no longer be told apart.
  const auto number = ParseDouble(text);
  if (!number.ok() || !(std::abs(number.value()) <= kMost)) return std::nullopt;
  return number.value();
}

}  // namespace zeus::cli
