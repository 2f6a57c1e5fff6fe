#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "zeus/base/testing/places.h"
#include "zeus/optimizer/pipeline/convex_cost.h"

namespace zeus::pipeline {

// Returns the folder of pipelines with published or exactly known frontiers (instances/*.json and
// frontiers/*.csv), which do not ship with Zeus: ZEUS_PIPELINE_DIR if it is set, else a folder
// beside the repository.
inline std::filesystem::path InstanceDirectory() {
  return zeus::testing::RecordedData("ZEUS_PIPELINE_DIR", "pipeline");
}

struct KnownPoint {
  Ticks ticks = 0;
  Joules effective_energy{};  // Energy less blocking power over the whole time.
};

// Reads the exact frontier of an instance, slowest first; empty if there is no file.
inline std::vector<KnownPoint> KnownFrontier(const std::string& instance, CostKind kind) {
  const char* const model = kind == CostKind::kHull ? ".exact_hull.csv" : ".exact_exp.csv";
  std::ifstream file(InstanceDirectory() / "frontiers" / (instance + model));
  std::vector<KnownPoint> points;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::size_t comma = line.find(',');
    points.push_back({std::atoll(line.c_str()), Joules(std::atof(line.c_str() + comma + 1))});
  }
  return points;
}

// Returns the names of all instances, sorted.
inline std::vector<std::string> InstanceNames() {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry :
       std::filesystem::directory_iterator(InstanceDirectory() / "instances", absent))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace zeus::pipeline
