#include "zeus/metrics/metric_catalogue.h"

#include <fmt/format.h>

#include <iterator>

namespace zeus::metrics {

std::string Reference() {
  std::string table = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricDescription* metric : kAll) {
    fmt::format_to(std::back_inserter(table), "| `{}` | {} | {} | {} |\n", metric->name,
                   MetricTypeName(metric->type), metric->labels, metric->help);
  }
  return table;
}

}  // namespace zeus::metrics
