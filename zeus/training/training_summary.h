#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"

namespace zeus {

// The reason why a training ended.
enum class StopReason {
  kTargetReached,
  kCostBound,  // The training cost more than TrainingOptions::cost_bound allows.
  kMaxEpochs,
  kStoppedByUser,  // TrainingLoop::Stop(), or a break out of the epochs.
  kException,      // An exception left the epochs.
  kOthersGone,     // The other ranks cannot be reached any more.
};

// Returns "target_reached", "cost_bound", "max_epochs", "stopped_by_user", "exception" or
// "others_gone".
const char* StopReasonName(StopReason reason);

// Time, energy and cost of a training or an epoch. Sigmas are standard deviations of all errors.
struct TrainingAmounts {
  std::int64_t steps = 0;  // Steps of this rank.
  Seconds time{0};         // Time of the slowest rank.
  Joules energy{0};        // Energy of the counted devices of all ranks (epoch_meter.h).
  Joules energy_sigma{0};
  // eta * energy + (1 - eta) * max_power * time; nullopt if max_power or an energy is needed and
  // unknown.
  std::optional<Joules> cost{};
  Joules cost_sigma{0};
};

// One epoch with its evaluation.
struct EpochRecord {
  int epoch = 0;
  TrainingAmounts amounts{};
  std::optional<double> metric{};  // Metric of rank 0; nullopt if none was reported.
};

struct TrainingSummary {
  int epochs = 0;  // Number of epochs that were begun.
  TrainingAmounts amounts{};
  std::optional<double> best_metric{};
  std::optional<StopReason> reason{};  // nullopt while training goes on.
  std::vector<EpochRecord> records{};
  // Devices whose energy is missing in some or all epochs, because they could not be read.
  std::vector<std::string> missing{};
};

}  // namespace zeus
