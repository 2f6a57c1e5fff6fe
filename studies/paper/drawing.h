#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "studies/paper/configurations.h"
#include "zeus/report/figure.h"

// Helpers that all figures of the paper share.
namespace zeus::replay::paper {

constexpr double kKilo = 1e3;
constexpr double kMega = 1e6;

// "V100", "RTX6000".
std::string GpuTitle(std::string_view gpu_model);
std::vector<std::string> WorkloadTitles(std::span<const ReplayJob> jobs);

// "batch 32, 100 W".
std::string Knobs(int batch_size, Watts limit);

// A number in a table, as it is and with so many decimals.
report::Cell NumberCell(double value, int decimals);
report::Cell PercentCell(double share);

// A level line over all of `count` categories.
report::Series LevelAcross(std::string name, std::string role, double level, std::size_t count);

// Where configurations lie: time in kiloseconds, energy in megajoules, labelled with the knobs.
report::Series Scatter(std::string name, std::string role, report::Mark mark,
                       std::span<const Configuration> configurations);
report::Axis TimeAxis();
report::Axis EnergyAxis();

}  // namespace zeus::replay::paper
