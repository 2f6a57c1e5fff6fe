#include "apps/zeus/train/metric_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cmath>
#include <limits>

#include "apps/zeus/profile/expression.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

double ToMetric(const std::string& text) {
  const auto number = ParseDouble(Trim(text));
  return number.ok() && std::isfinite(number.value()) ? number.value()
                                                      : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Result<MetricPattern> MetricPattern::Compile(const std::string& expression) {
  ZEUS_TRY(auto compiled, CompileExpression(expression,
                                            "--metric-regex takes a regular expression as in "
                                            "'val_acc=([0-9.]+)'"));
  if (compiled->NumberOfCapturingGroups() != 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--metric-regex {} needs one group, around the metric, as in "
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
    // Where nothing was consumed, the same nothing would be found again.
    if (rest.size() == left) rest.remove_prefix(1);
    left = rest.size();
  }
  return metrics;
}

}  // namespace zeus::cli
