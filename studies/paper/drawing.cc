#include "studies/paper/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "zeus/base/quantity_text.h"

namespace zeus::replay::paper {

std::string GpuTitle(std::string_view gpu_model) {
  std::string title(gpu_model);
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return title;
}

std::vector<std::string> WorkloadTitles(std::span<const ReplayJob> jobs) {
  std::vector<std::string> titles;
  for (const ReplayJob& job : jobs) titles.push_back(job.title);
  return titles;
}

std::string Knobs(int batch_size, Watts limit) {
  return fmt::format("batch {}, {:g} W", batch_size, limit.value());
}

report::Cell NumberCell(double value, int decimals) {
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

report::Cell PercentCell(double share) { return {.text = PercentText(share), .value = share}; }

report::Series LevelAcross(std::string name, std::string role, double level, std::size_t count) {
  constexpr double kHalf = 0.5;
  return {.name = std::move(name),
          .role = std::move(role),
          .mark = report::Mark::kRule,
          .x = {-kHalf, static_cast<double>(count) - kHalf},
          .y = {level, level}};
}

report::Series Scatter(std::string name, std::string role, report::Mark mark,
                       std::span<const Configuration> configurations) {
  report::Series series{.name = std::move(name), .role = std::move(role), .mark = mark};
  for (const Configuration& configuration : configurations) {
    series.x.push_back(configuration.usage.time.count() / kKilo);
    series.y.push_back(configuration.usage.energy.value() / kMega);
    series.labels.push_back(Knobs(configuration.batch_size, configuration.limit));
  }
  return series;
}

report::Axis TimeAxis() { return {.title = "time to accuracy (ks)"}; }
report::Axis EnergyAxis() { return {.title = "energy to accuracy (MJ)"}; }

}  // namespace zeus::replay::paper
