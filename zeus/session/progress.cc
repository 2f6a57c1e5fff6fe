#include "zeus/session/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

// Longer lines are not numbers.
constexpr std::uint64_t kTail = 256;
constexpr std::uint64_t kPiece = 1 << 16;
constexpr std::uint64_t kMostAtOnce = 1 << 24;

std::string_view LastLine(std::string_view text) {
  text = Trim(text);
  const auto line_end = text.find_last_of("\r\n");
  return line_end == std::string_view::npos ? text : Trim(text.substr(line_end + 1));
}

std::string ReadFrom(int file, std::uint64_t begin, std::uint64_t end) {
  std::string text(end - begin, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// Returns a number that can be a count of steps; nullopt for nan, inf and numbers that are too
// large.
std::optional<double> ParseCount(std::string_view text) {
  constexpr double kMost = 1e15;  // Larger doubles cannot tell single steps apart.
  const auto number = ParseDouble(text);
  if (!number.ok() || !(std::abs(number.value()) <= kMost)) return std::nullopt;
  return number.value();
}

double ToMetric(const std::string& text) {
  const auto number = ParseDouble(Trim(text));
  return number.ok() && std::isfinite(number.value()) ? number.value()
                                                      : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Result<std::shared_ptr<const re2::RE2>> CompileExpression(const std::string& expression,
                                                          const char* expected) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // Programs print any bytes.
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (compiled->ok()) return compiled;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}, not {}: {}", expected, Quote(expression), Printable(compiled->error()))};
}

Result<ProgressPattern> ProgressPattern::Compile(const std::string& expression) {
  ZEUS_TRY(
      auto compiled,
      CompileExpression(expression, "progress takes a regular expression as in 'step (\\d+)'"));
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

std::optional<double> ProgressFile::Count() {
  // O_NONBLOCK, because the path may name a pipe without a writer.
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::string tail = ReadFrom(file.get(), size - std::min(size, kTail), size);
  if (const auto number = ParseCount(LastLine(tail))) return number;

  if (size < counted_bytes_) counted_bytes_ = lines_ = 0;  // The file was truncated.
  // The rest of a file that grew by more is counted the next time.
  const std::uint64_t until = std::min(size, counted_bytes_ + kMostAtOnce);
  while (counted_bytes_ < until) {
    const std::string piece =
        ReadFrom(file.get(), counted_bytes_, std::min(until, counted_bytes_ + kPiece));
    if (piece.empty()) break;
    lines_ += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    counted_bytes_ += piece.size();
  }
  return static_cast<double>(lines_);
}

bool ProgressSeries::Begun() const {
  const std::lock_guard lock(mutex_);
  return last_count_.has_value();
}

void ProgressSeries::Observe(TimePoint when, double count) {
  const std::lock_guard lock(mutex_);
  const bool first = !last_count_;
  const double before = last_count_.value_or(count);
  last_count_ = count;
  if (!first && count == before) return;
  if (!first) total_ += count > before ? count - before : count;
  // Lines that arrive together were not printed together; the last one is the freshest.
  if (!changes_.empty() && changes_.back().when >= when) {
    changes_.back().total = total_;
  } else {
    changes_.push_back({when, total_});
  }
}

std::optional<StepRate> ProgressSeries::Between(TimePoint begin, TimePoint end) const {
  const std::lock_guard lock(mutex_);
  const auto first = std::ranges::lower_bound(changes_, begin, {}, &Change::when);
  const auto after = std::ranges::upper_bound(changes_, end, {}, &Change::when);
  if (after - first < 2) return std::nullopt;
  const auto last = after - 1;
  const double steps = last->total - first->total;
  const Seconds time = last->when - first->when;
  if (steps <= 0) return std::nullopt;

  const Seconds per_step = time / steps;
  double squares = 0;  // Deviations of the intervals from the mean rate, squared.
  for (auto change = first + 1; change <= last; ++change) {
    const auto& before = *(change - 1);
    const Seconds excess = change->when - before.when - per_step * (change->total - before.total);
    squares += excess.count() * excess.count();
  }
  const auto intervals = static_cast<double>(last - first);
  const double scatter =
      intervals > 1 ? squares * intervals / (intervals - 1) : time.count() * time.count() / 12;
  const double variance = scatter + 2 * stamp_sigma_.count() * stamp_sigma_.count();
  return StepRate{.steps = (end - begin) / per_step,
                  .time_per_step = per_step,
                  .sigma = Seconds(std::sqrt(variance) / steps),
                  .intervals = static_cast<std::size_t>(last - first)};
}

void ProgressSeries::ForgetBefore(TimePoint when) {
  const std::lock_guard lock(mutex_);
  const auto keep = std::ranges::lower_bound(changes_, when, {}, &Change::when);
  changes_.erase(changes_.begin(), keep);
}

Result<MetricPattern> MetricPattern::Compile(const std::string& expression) {
  ZEUS_TRY(auto compiled, CompileExpression(expression,
                                            "metric-regex takes a regular expression as in "
                                            "'val_acc=([0-9.]+)'"));
  if (compiled->NumberOfCapturingGroups() != 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("metric-regex {} needs one group, around the metric, as in "
                             "'val_acc=([0-9.]+)'",
                             Quote(expression))};
  return MetricPattern(std::move(compiled));
}

std::vector<double> MetricPattern::Metrics(std::string_view line) const {
  std::vector<double> metrics;
  re2::StringPiece rest(line.data(), line.size());
  std::string group;
  std::size_t left = rest.size();
  while (re2::RE2::FindAndConsume(&rest, *expression_, &group)) {
    if (!Trim(group).empty()) metrics.push_back(ToMetric(group));
    if (rest.empty()) break;
    // After an empty match the search must move on, or it would find the same match again.
    if (rest.size() == left) rest.remove_prefix(1);
    left = rest.size();
  }
  return metrics;
}

}  // namespace zeus
