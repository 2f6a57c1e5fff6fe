#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/usage.h"

// Jobs as the traces of the Zeus paper (NSDI'23) recorded them. The traces do not ship.
namespace zeus::replay {

// One batch size at one power limit.
struct LimitRecord {
  Watts limit{};
  Watts power{};  // On average.
  Usage epoch{};
};

// One batch size on one GPU model, at one eta.
struct ReplayArm {
  int batch_size = 0;
  std::vector<std::optional<int>> epochs_to_target{};  // One per recorded run; nullopt: never.
  std::vector<LimitRecord> limits{};                   // Ascending, at least one.
  Watts best_limit{};
  Usage epoch{};            // At the best limit.
  Usage profiling_epoch{};  // Mean over the limits: a slice of the first epoch at each of them.
  Usage full_power_epoch{};

  // The mean of the recorded runs; nullopt unless all of them arrive within `max_epochs`.
  std::optional<double> MeanEpochs(int max_epochs) const;
};

struct ReplayJob {
  std::string gpu_model;  // v100, a40, rtx6000, p100.
  std::string label;      // deepspeech2, …
  int max_epochs = 0;
  int default_batch_size = 0;
  double eta = 0.5;
  Watts max_power{};
  std::vector<ReplayArm> arms{};  // Ascending.

  std::string name() const { return gpu_model + "/" + label; }
  const ReplayArm& arm(int batch_size) const;
  const ReplayArm& oracle()
      const;  // The arm of least expected cost among those that always converge.
  Joules OracleCost() const;
  Usage DefaultUsage() const;  // Expected, with the default batch size at the greatest limit.
  int recurrences() const;     // 2 |B| |P|, as the paper evaluates.

  PolicySpec Spec(std::string_view policy, std::uint64_t seed) const;
};

// The six jobs of the paper on one GPU model.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta);

}  // namespace zeus::replay
