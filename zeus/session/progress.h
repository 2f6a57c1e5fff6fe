#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/power_limit/step_source.h"

namespace re2 {
class RE2;
}

// How far a foreign command is: it prints a count of its steps, or writes one to a file. The counts
// and the times at which they changed form a series, from which step rates follow.
namespace zeus {

// Compiles a regular expression of a user for the output of a program, in the syntax of RE2: no
// expression of its kind takes longer than the line is long. On a mistake kInvalidArgument says
// "<expected>, not <expression>: <reason>".
Result<std::shared_ptr<const re2::RE2>> CompileExpression(const std::string& expression,
                                                          const char* expected);

// Reads the count of steps from lines of a program's output. The first group of the expression is
// the count ("step (\d+)"); without a group each match is one step.
class ProgressPattern {
 public:
  // kInvalidArgument quotes a malformed expression.
  static Result<ProgressPattern> Compile(const std::string& expression);

  // Returns the count after this line, when the last count was `before`; nullopt if the line does
  // not match.
  std::optional<double> Count(std::string_view line, double before) const;

 private:
  explicit ProgressPattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

// Reads the count of steps from a file that a program writes: the number on its last line or, if
// that line is not a number, the number of lines. One owner.
class ProgressFile {
 public:
  explicit ProgressFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Returns nullopt while the file does not exist or is empty.
  std::optional<double> Count();

 private:
  std::filesystem::path path_;
  // Each line is counted once, because the file may be a long log.
  std::uint64_t counted_bytes_ = 0;
  std::uint64_t lines_ = 0;
};

// When the count of a program's steps changed, and the rates that follow from it. Thread-safe: a
// search may ask on another thread than the one that reads the program's output.
class ProgressSeries final : public StepSource {
 public:
  // Standard error of the time at which a line of a pipe was printed.
  static constexpr Seconds kPipeStamp{0.001};

  // `stamp_sigma` is one standard deviation of the error of the times given to Observe().
  explicit ProgressSeries(Seconds stamp_sigma) : stamp_sigma_(stamp_sigma) {}

  // Notes that the program has made `count` steps. A count below the last one means that the
  // program counts from the beginning again, as in the next epoch. Times must not decrease.
  void Observe(TimePoint when, double count);

  bool Begun() const override;

  // The rate of a stretch of time, from the changes inside it alone, so that steps at another
  // setting of a knob have no part in it: the line through its first and its last change gives the
  // counts at its edges. nullopt with fewer than two changes.
  //
  // Sigma is that of the sum of the intervals between changes, estimated from their scatter. A
  // single interval has no scatter: it is as uncertain as a count that is known to one interval.
  std::optional<StepRate> Between(TimePoint begin, TimePoint end) const override;

  void ForgetBefore(TimePoint when) override;

 private:
  struct Change {
    TimePoint when;
    double total;  // Steps over all epochs.
  };

  const Seconds stamp_sigma_;
  mutable std::mutex mutex_;  // Guards the members below.
  std::optional<double> last_count_;
  double total_ = 0;
  std::vector<Change> changes_;  // Ascending in both members.
};

// Reads the metric from lines of a program's output: each match is one epoch, and the group of the
// expression is the metric. RE2 syntax.
class MetricPattern {
 public:
  // kInvalidArgument quotes an expression that is malformed or does not have exactly one group.
  static Result<MetricPattern> Compile(const std::string& expression);

  // Returns the metrics on this line. A group that is not a number counts as not-a-number, which is
  // what trainings that diverged print. An empty group is not a match.
  std::vector<double> Metrics(std::string_view line) const;

 private:
  explicit MetricPattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace zeus
