#include "apps/zeus/profile/progress_pattern.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// std::regex recurses for each character, and no progress line is longer.
constexpr std::size_t kLongestLine = 4096;

}  // namespace

Result<ProgressPattern> ProgressPattern::Compile(const std::string& expression) {
  try {
    return ProgressPattern(std::regex(expression, std::regex::ECMAScript | std::regex::optimize));
  } catch (const std::regex_error&) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--progress takes a regular expression as in 'step (\\d+)', not {}",
                             Quote(expression))};
  }
}

std::optional<double> ProgressPattern::Count(std::string_view line, double before) const {
  std::optional<double> count;
  const std::cregex_iterator end;
  for (std::cregex_iterator match(line.begin(), line.end(), expression_); match != end; ++match) {
    if (expression_.mark_count() == 0) {
      count = count.value_or(before) + 1;
    } else if (const auto number = ParseDouble((*match)[1].str()); number.ok()) {
      count = number.value();
    }
  }
  return count;
}

void LineCutter::Feed(TimePoint when, std::string_view bytes) {
  if (bytes.empty()) return;
  if (!pending_.empty()) pending_when_ = fed_when_;
  fed_when_ = when;
  fed_at_ = pending_.size();
  pending_ += bytes;
}

std::optional<LineCutter::Line> LineCutter::Next() {
  for (;;) {
    const std::size_t end = pending_.find_first_of("\r\n");
    if (end == std::string::npos) {
      // Of an endless line the end is what counts.
      if (pending_.size() > kLongestLine) pending_.erase(0, pending_.size() - kLongestLine);
      return std::nullopt;
    }
    const bool all_before = end <= fed_at_ && fed_at_ > 0;
    Line line{pending_.substr(0, end), all_before ? pending_when_ : fed_when_};
    pending_.erase(0, end + 1);
    fed_at_ = 0;
    if (line.text.size() > kLongestLine) line.text.erase(0, line.text.size() - kLongestLine);
    if (!line.text.empty()) return line;
  }
}

std::optional<LineCutter::Line> LineCutter::Rest() {
  if (pending_.empty()) return std::nullopt;
  return Line{std::exchange(pending_, {}), fed_when_};
}

}  // namespace zeus::cli
