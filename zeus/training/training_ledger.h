#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/collective.h"
#include "zeus/training/epoch_meter.h"
#include "zeus/training/training_summary.h"

namespace zeus {

// What the epochs of a training took and cost, over all ranks. One owner.
class TrainingLedger {
 public:
  // `max_power` of all ranks; nullopt if it is not known.
  TrainingLedger(double eta, std::optional<Watts> max_power) : eta_(eta), max_power_(max_power) {}
  void set_max_power(std::optional<Watts> max_power) { max_power_ = max_power; }

  struct Epoch {
    int epoch = 0;
    std::int64_t steps = 0;
    EpochReading local{};  // Of this rank.
    EpochReading all{};    // Of all ranks.
    std::optional<double> metric{};
  };
  void Add(Epoch epoch) { epochs_.push_back(std::move(epoch)); }

  // Waits until the sensors have shown the ends of epochs, at most `patience` each. With one rank
  // what is settled is what counts; with more of them it takes an exchange.
  void SettleAlone(EpochMeter& meter, Seconds patience);
  Status SettleTogether(EpochMeter& meter, Seconds patience, Collective& collective);

  // Of all epochs, and of `running` besides.
  TrainingAmounts Total(const EpochReading* running = nullptr) const;

  // Without what the ledger does not know: `reason`.
  TrainingSummary Summary(bool higher_is_better) const;

 private:
  TrainingAmounts Amounts(const Epoch& epoch) const;
  void SetCost(TrainingAmounts& amounts, bool energy_is_known) const;

  double eta_;
  std::optional<Watts> max_power_;
  std::vector<Epoch> epochs_{};
};

// What ranks tell each other at the end of an epoch.
struct EpochOutcome {
  EpochReading reading{};
  std::optional<double> metric{};
  bool stop = false;
};

// Energy summed, time of the slowest, metric of rank 0, stop if anybody wants to.
Status Agree(EpochOutcome& outcome, Collective& collective);

}  // namespace zeus
