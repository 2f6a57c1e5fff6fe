#include "zeus/metrics/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "zeus/base/json.h"

namespace zeus {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// The JSON library knows UTF-8: it replaces what is none.
std::string ValidUtf8(std::string_view text) {
  return Json::parse(JsonText(std::string(text))).get<std::string>();
}

std::string LabelText(const Labels& labels) {
  if (labels.empty()) return "";
  std::string text = "{";
  for (const auto& [name, value] : labels) {
    if (text.size() > 1) text += ',';
    text += fmt::format("{}=\"{}\"", name, EscapeLabel(value));
  }
  return text + "}";
}

Labels WithBound(Labels labels, const std::string& bound) {
  labels.emplace_back("le", bound);
  return labels;
}

}  // namespace

const char* MetricTypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string EscapeLabel(std::string_view value) {
  std::string escaped;
  for (const char c : ValidUtf8(value)) {
    switch (c) {
      case '\\':
        escaped += "\\\\";
        break;
      case '"':
        escaped += "\\\"";
        break;
      case '\n':
        escaped += "\\n";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

void Histogram::Observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += value;
}

std::vector<unsigned long long> Histogram::Cumulative() const {
  std::vector<unsigned long long> sums;
  unsigned long long sum = 0;
  for (const unsigned long long count : counts_) sums.push_back(sum += count);
  return sums;
}

MetricSet::Family& MetricSet::FindOrAddFamily(const MetricDescription& metric) {
  const auto same = [&](const Family& family) { return family.metric->name == metric.name; };
  const auto found = std::ranges::find_if(families_, same);
  if (found != families_.end()) return *found;
  return families_.emplace_back(Family{&metric, ""});
}

void MetricSet::Add(const MetricDescription& metric, const Labels& labels, double value) {
  fmt::format_to(std::back_inserter(FindOrAddFamily(metric).lines), "{}{} {}\n", metric.name,
                 LabelText(labels), Number(value));
}

void MetricSet::Add(const MetricDescription& metric, const Labels& labels,
                    const Histogram& histogram) {
  const auto out = std::back_inserter(FindOrAddFamily(metric).lines);
  const auto counts = histogram.Cumulative();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool last = i + 1 == counts.size();
    const std::string bound = last ? "+Inf" : Number(histogram.bounds()[i]);
    fmt::format_to(out, "{}_bucket{} {}\n", metric.name, LabelText(WithBound(labels, bound)),
                   counts[i]);
  }
  fmt::format_to(out, "{}_sum{} {}\n", metric.name, LabelText(labels), Number(histogram.sum()));
  fmt::format_to(out, "{}_count{} {}\n", metric.name, LabelText(labels), counts.back());
}

std::string MetricSet::Text() const {
  std::string text;
  for (const Family& family : families_) {
    fmt::format_to(std::back_inserter(text), "# HELP {0} {1}\n# TYPE {0} {2}\n{3}",
                   family.metric->name, family.metric->help, MetricTypeName(family.metric->type),
                   family.lines);
  }
  return text;
}

}  // namespace zeus
