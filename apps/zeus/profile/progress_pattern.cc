#include "apps/zeus/profile/progress_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// No progress line is longer.
constexpr std::size_t kLongestLine = 4096;

}  // namespace

Result<ProgressPattern> ProgressPattern::Compile(const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // Programs print any bytes.
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (compiled->ok()) return ProgressPattern(std::move(compiled));
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--progress takes a regular expression as in 'step (\\d+)', not {}: {}",
                           Quote(expression), Printable(compiled->error()))};
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
