#include "apps/zeus/profile/line_cutter.h"

#include <utility>

namespace zeus::cli {
namespace {

// No line that says something is longer.
constexpr std::size_t kLongestLine = 4096;

}  // namespace

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
