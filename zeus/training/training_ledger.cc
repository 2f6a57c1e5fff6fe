#include "zeus/training/training_ledger.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus {
namespace {

Joules Hypotenuse(Joules a, Joules b) { return Joules(std::hypot(a.value(), b.value())); }

double Square(Joules sigma) { return sigma.value() * sigma.value(); }

// Errors that epochs share add up, the others average out.
struct Sum {
  Seconds time{0};
  Joules energy{0};
  double own_variance = 0;
  Joules shared_sigma{0};
  bool known = true;  // The energy, all of it.

  void Add(const EpochReading& reading) {
    known = known && reading.missing.empty();
    time += reading.time;
    energy += reading.energy;
    own_variance += Square(reading.own_sigma);
    shared_sigma += reading.shared_sigma;
  }
  TrainingAmounts ToAmounts() const {
    return {.time = time,
            .energy = energy,
            .energy_sigma = Hypotenuse(Joules(std::sqrt(own_variance)), shared_sigma)};
  }
};

// Boards of different ranks have nothing in common: all their variances add up.
std::array<double, 3> ToNumbers(const EpochReading& reading) {
  return {reading.energy.value(), Square(reading.own_sigma), Square(reading.shared_sigma)};
}

void FromNumbers(const double* numbers, EpochReading& reading) {
  reading.energy = Joules(numbers[0]);
  reading.own_sigma = Joules(std::sqrt(numbers[1]));
  reading.shared_sigma = Joules(std::sqrt(numbers[2]));
}

bool Better(double metric, const std::optional<double>& best, bool higher_is_better) {
  if (std::isnan(metric)) return false;
  return !best || (higher_is_better ? metric > *best : metric < *best);
}

}  // namespace

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kTargetReached:
      return "target_reached";
    case StopReason::kCostBound:
      return "cost_bound";
    case StopReason::kMaxEpochs:
      return "max_epochs";
    case StopReason::kStoppedByUser:
      return "stopped_by_user";
    case StopReason::kException:
      return "exception";
    case StopReason::kOthersGone:
      return "others_gone";
  }
  return "unknown";
}

void TrainingLedger::SettleAlone(EpochMeter& meter, Seconds patience) {
  for (Epoch& epoch : epochs_) {
    meter.Settle(epoch.local, patience);
    epoch.all = epoch.local;
  }
}

Status TrainingLedger::SettleTogether(EpochMeter& meter, Seconds patience, Collective& collective) {
  std::vector<double> numbers;
  for (Epoch& epoch : epochs_) {
    meter.Settle(epoch.local, patience);
    const auto part = ToNumbers(epoch.local);
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  ZEUS_RETURN_IF_ERROR(collective.Sum(numbers));
  for (std::size_t i = 0; i < epochs_.size(); ++i) FromNumbers(&numbers[3 * i], epochs_[i].all);
  return Ok();
}

void TrainingLedger::SetCost(TrainingAmounts& amounts, bool energy_is_known) const {
  if (eta_ < 1 && !max_power_) return;
  if (eta_ > 0 && !energy_is_known) return;
  const Joules at_most = max_power_.value_or(Watts(0)) * amounts.time;
  amounts.cost = eta_ * amounts.energy + (1 - eta_) * at_most;
  amounts.cost_sigma = eta_ * amounts.energy_sigma;
}

TrainingAmounts TrainingLedger::Amounts(const Epoch& epoch) const {
  Sum sum;
  sum.Add(epoch.all);
  TrainingAmounts amounts = sum.ToAmounts();
  amounts.steps = epoch.steps;
  SetCost(amounts, sum.known);
  return amounts;
}

TrainingAmounts TrainingLedger::Total(const EpochReading* running) const {
  Sum sum;
  std::int64_t steps = 0;
  for (const Epoch& epoch : epochs_) {
    sum.Add(epoch.all);
    steps += epoch.steps;
  }
  if (running != nullptr) sum.Add(*running);
  TrainingAmounts amounts = sum.ToAmounts();
  amounts.steps = steps;
  SetCost(amounts, sum.known);
  return amounts;
}

TrainingSummary TrainingLedger::Summary(bool higher_is_better) const {
  TrainingSummary summary{.epochs = static_cast<int>(epochs_.size()), .amounts = Total()};
  for (const Epoch& epoch : epochs_) {
    summary.records.push_back(
        {.epoch = epoch.epoch, .amounts = Amounts(epoch), .metric = epoch.metric});
    if (epoch.metric && Better(*epoch.metric, summary.best_metric, higher_is_better))
      summary.best_metric = epoch.metric;
    for (const std::string& device : epoch.all.missing) {
      if (std::ranges::find(summary.missing, device) == summary.missing.end())
        summary.missing.push_back(device);
    }
  }
  return summary;
}

Status Agree(EpochOutcome& outcome, Collective& collective) {
  auto sums = ToNumbers(outcome.reading);
  ZEUS_RETURN_IF_ERROR(collective.Sum(sums));
  std::array<double, 3> most = {outcome.reading.time.count(), outcome.stop ? 1.0 : 0.0,
                                outcome.reading.missing.empty() ? 0.0 : 1.0};
  ZEUS_RETURN_IF_ERROR(collective.Max(most));
  std::array<double, 2> metric = {outcome.metric ? 1.0 : 0.0, outcome.metric.value_or(0)};
  ZEUS_RETURN_IF_ERROR(collective.Broadcast(metric, 0));
  FromNumbers(sums.data(), outcome.reading);
  outcome.reading.time = Seconds(most[0]);
  outcome.stop = most[1] > 0;
  if (most[2] > 0 && outcome.reading.missing.empty())
    outcome.reading.missing.push_back("devices of another rank");
  outcome.metric = metric[0] > 0 ? std::optional(metric[1]) : std::nullopt;
  return Ok();
}

}  // namespace zeus
