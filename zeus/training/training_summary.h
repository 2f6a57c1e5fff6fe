#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"

namespace zeus {

enum class StopReason {
  kTargetReached,
  kCostBound,  // The training cost more than TrainingOptions::cost_bound allows.
  kMaxEpochs,
  kStoppedByUser,  // TrainingLoop::Stop(), or a break out of the epochs.
  kException,      // One left the epochs.
  kOthersGone,     // The ranks that trained along cannot be reached any more.
};

// "target_reached", "cost_bound", "max_epochs", "stopped_by_user", "exception", "others_gone"
const char* StopReasonName(StopReason reason);

// What training took. Sigmas are one standard deviation, everything included.
struct TrainingAmounts {
  std::int64_t steps = 0;  // Of this rank.
  Seconds time{0};         // Of the slowest rank.
  Joules energy{0};        // Of all ranks, and of their GPUs where they have any.
  Joules energy_sigma{0};
  // eta * energy + (1 - eta) * max_power * time; nullopt where max_power or an
  // energy is needed and not known.
  std::optional<Joules> cost{};
  Joules cost_sigma{0};
};

// One epoch with its evaluation.
struct EpochRecord {
  int epoch = 0;
  TrainingAmounts amounts{};
  std::optional<double> metric{};  // Rank 0's; nullopt if none was reported.
};

struct TrainingSummary {
  int epochs = 0;  // That were begun.
  TrainingAmounts amounts{};
  std::optional<double> best_metric{};
  std::optional<StopReason> reason{};  // nullopt while training goes on.
  std::vector<EpochRecord> records{};
  // Devices whose energy is not, or not always, contained: they could not be read.
  std::vector<std::string> missing{};
};

}  // namespace zeus
