#include "zeus/optimizer/clock/engine_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeus {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A window of two seconds counts half after about half an hour.
constexpr double kKeepTime = 0.9992;
constexpr double kKeepEnergy = 0.998;
// Bins of energy remember about this many windows.
constexpr double kBinMemory = 60;
// Idle power as a share of the highest power seen, until the engine was seen idle.
constexpr double kGuessedIdleShare = 0.1;
// The highest clock at which the energies of work are learned ends here.
constexpr double kNearHighest = 0.97;
// Below about this share of the highest clock the memory slows down too.
constexpr double kMemoryKnee = 0.5;
// Clocks within one window may differ by this much for its energy to count for their mean.
constexpr double kSameClock = 0.04;

// Where the data do not say it, reading the weights does not depend on the clock, and all other
// work goes with its inverse.
constexpr std::array<double, 8> kTimePull{1e-5, 1e-3, 1e-3, 1e-3, 1e-5, 1e-3, 1e-3, 1e-5};
constexpr std::array<double, 3> kEnergyPull{1e-4, 1e-4, 1e-4};

// Knowledge of an earlier run counts as much as this many windows.
constexpr double kInvented = 20;

double BelowKnee(double clock) { return std::max(0.0, 1.0 / clock - 1.0 / kMemoryKnee); }

std::array<double, 8> Features(const EngineWork& work, double clock, double prompt_clock) {
  const double slow = 1.0 / clock;
  const double knee = BelowKnee(clock);
  return {work.iterations, work.iterations * slow,    work.iterations * knee,
          work.decoded,    work.decoded * slow,       work.decoded * knee,
          work.prompt,     work.prompt / prompt_clock};
}

// A typical part: half of the energy of work goes with f V^2, and the voltage falls with the clock.
double GenericRatio(double clock) {
  const double voltage = 0.6 + 0.4 * clock;
  return 0.5 + 0.5 * clock * voltage * voltage;
}

}  // namespace

EngineWork& EngineWork::operator+=(const EngineWork& other) {
  busy += other.busy;
  iterations += other.iterations;
  decoded += other.decoded;
  prompt += other.prompt;
  return *this;
}

template <std::size_t N>
void PulledFit<N>::Forget(double keep) {
  for (std::size_t i = 0; i < N; ++i) {
    values_[i] *= keep;
    for (double& product : products_[i]) product *= keep;
  }
}

template <std::size_t N>
void PulledFit<N>::Add(const std::array<double, N>& features, double value) {
  for (std::size_t i = 0; i < N; ++i) {
    values_[i] += features[i] * value;
    for (std::size_t j = 0; j < N; ++j) products_[i][j] += features[i] * features[j];
  }
}

template <std::size_t N>
void PulledFit<N>::Solve(std::array<double, N>& solution) const {
  // Coordinate descent: convex, so it converges from anywhere.
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < N; ++i) {
      if (products_[i][i] <= 0) {
        solution[i] = 0;
        continue;
      }
      double rest = values_[i];
      for (std::size_t j = 0; j < N; ++j)
        if (j != i) rest -= products_[i][j] * solution[j];
      solution[i] = std::max(0.0, rest / (products_[i][i] * (1.0 + pull_[i])));
    }
}

template class PulledFit<8>;
template class PulledFit<3>;

EngineModel::EngineModel() : time_fit_(kTimePull), energy_fit_(kEnergyPull) {}

EngineModel::EngineModel(const EngineKnowledge& knowledge) : EngineModel() {
  times_ = knowledge.times;
  energies_ = knowledge.energies;
  idle_watts_ = knowledge.idle_watts;
  idle_windows_ = idle_watts_ > 0 ? 1 : 0;
  // The fits start from invented windows that say the same.
  for (const double clock : {0.2, 0.35, 0.5, 0.7, 1.0})
    for (const double batch : {1.0, 8.0, 64.0})
      for (const double prompt : {0.0, 400.0})
        AddInventedWindow({.iterations = 50, .decoded = 50 * batch, .prompt = 50 * prompt}, clock);
  for (std::size_t i = 0; i < std::min(knowledge.clocks.size(), knowledge.ratios.size()); ++i) {
    const double clock = knowledge.clocks[i];
    if (!(clock > 0 && clock <= 1 && knowledge.ratios[i] > 0)) continue;
    bins_[BinAt(clock)] = {.measured = kInvented * knowledge.ratios[i],
                           .expected = kInvented,
                           .clock = kInvented * clock,
                           .windows = kInvented};
    energy_windows_ = kInvented;
  }
  if (Expected({.iterations = 1, .decoded = 1, .prompt = 1}) <= 0) energy_windows_ = 0;
}

// Adds a window of two seconds, four times, that agrees with what is known already.
void EngineModel::AddInventedWindow(const EngineWork& work, double clock) {
  constexpr double kLength = 2.0;
  constexpr int kTimes = 4;
  std::array<double, 8> features = Features(work, clock, clock);
  double time = 0;
  for (std::size_t i = 0; i < features.size(); ++i) time += features[i] * times_[i];
  if (time <= 0) return;
  const double scale = kLength / time;
  for (double& feature : features) feature *= scale;
  for (int i = 0; i < kTimes; ++i) {
    time_fit_.Add(features, kLength);
    if (clock == 1.0)
      energy_fit_.Add({work.iterations * scale, work.decoded * scale, work.prompt * scale},
                      Expected(work) * scale);
  }
  time_windows_ = kInvented;
}

void EngineModel::Observe(const EngineWork& work, double length, double clock,
                          double prompt_clock) {
  window_.work += work;
  window_.length += length;
  window_.clock_time += clock * length;
  window_.lowest = std::min(window_.lowest, clock);
  window_.highest = std::max(window_.highest, clock);
  const std::array<double, 8> features = Features(work, clock, prompt_clock);
  for (std::size_t i = 0; i < features.size(); ++i) window_.features[i] += features[i];
}

void EngineModel::EndWindow(double joules) {
  const bool working = window_.work.busy > 0.25 * window_.length && window_.work.decoded > 0;
  if (working) {
    time_fit_.Forget(kKeepTime);
    time_fit_.Add(window_.features, window_.work.busy);
    time_fit_.Solve(times_);
    ++time_windows_;
  }
  if (joules >= 0 && window_.length > 0) {
    const double watts = joules / window_.length;
    highest_watts_ = std::max(highest_watts_, watts);
    if (working) {
      LearnEnergy(joules);
    } else if (window_.work.busy <= 0) {
      idle_windows_ = std::min(idle_windows_ + 1, 50.0);
      idle_watts_ += (watts - idle_watts_) / idle_windows_;
    }
  }
  DropWindow();
}

void EngineModel::DropWindow() { window_ = {}; }

double EngineModel::idle_watts() const {
  return idle_windows_ > 0 ? idle_watts_ : kGuessedIdleShare * highest_watts_;
}

double EngineModel::Expected(const EngineWork& work) const {
  return energies_[0] * work.iterations + energies_[1] * work.decoded + energies_[2] * work.prompt;
}

std::size_t EngineModel::BinAt(double clock) {
  const double position = std::clamp(clock, 0.0, 1.0) * kBins;
  return std::min(static_cast<std::size_t>(position), kBins - 1);
}

void EngineModel::LearnEnergy(double joules) {
  const double above = std::max(0.0, joules - idle_watts() * window_.length);
  const EngineWork& work = window_.work;
  if (window_.highest - window_.lowest > kSameClock) return;
  const double clock = window_.clock_time / window_.length;
  if (clock >= kNearHighest) {
    energy_fit_.Forget(kKeepEnergy);
    energy_fit_.Add({work.iterations, work.decoded, work.prompt}, above);
    energy_fit_.Solve(energies_);
    ++energy_windows_;
  }
  const double expected = Expected(work);
  if (!knows_energy() || expected <= 0) return;
  Bin& bin = bins_[BinAt(clock)];
  if (bin.windows >= kBinMemory) {
    const double keep = 1.0 - 1.0 / kBinMemory;
    bin = {.measured = bin.measured * keep,
           .expected = bin.expected * keep,
           .clock = bin.clock * keep,
           .windows = bin.windows * keep};
  }
  bin.measured += above;
  bin.expected += expected;
  bin.clock += clock;
  bin.windows += 1;
}

EngineTimes EngineModel::TimesAt(double clock, double prompt_clock) const {
  const double slow = 1.0 / clock;
  const double knee = BelowKnee(clock);
  return {.iteration = times_[0] + times_[1] * slow + times_[2] * knee,
          .token = times_[3] + times_[4] * slow + times_[5] * knee,
          .prompt = times_[6] + times_[7] / prompt_clock};
}

double EngineModel::SteadyIteration(const EngineTimes& times, const EngineDemand& demand) {
  constexpr double kFull = 0.98;
  const double load = demand.tokens * times.token + demand.prompt * times.prompt;
  return load < kFull ? times.iteration / (1.0 - load) : kInfinite;
}

double EngineModel::PowerAt(double clock, double prompt_clock, const EngineDemand& demand) const {
  const double iteration = SteadyIteration(TimesAt(clock, prompt_clock), demand);
  if (!std::isfinite(iteration) || iteration <= 0) return kInfinite;
  // A batch has at least one sequence: with little demand each token is an iteration of its own.
  const double iterations = std::min(1.0 / iteration, demand.tokens);
  return RatioAt(clock) *
         Expected({.iterations = iterations, .decoded = demand.tokens, .prompt = demand.prompt});
}

double EngineModel::EvidenceAt(double clock) const { return bins_[BinAt(clock)].windows; }

double EngineModel::RatioAt(double clock) const {
  // Between measured clocks the ratio is interpolated; beyond them the generic one is scaled.
  double below_clock = 0;
  double below = 0;
  for (const Bin& bin : bins_) {
    if (bin.windows < 1 || bin.expected <= 0) continue;
    const double at = bin.clock / bin.windows;
    const double ratio = bin.measured / bin.expected;
    if (at >= clock) {
      if (below_clock <= 0) return ratio * GenericRatio(clock) / GenericRatio(at);
      return below + (ratio - below) * (clock - below_clock) / (at - below_clock);
    }
    below_clock = at;
    below = ratio;
  }
  if (below_clock <= 0) return GenericRatio(clock);
  return below * GenericRatio(clock) / GenericRatio(below_clock);
}

EngineKnowledge EngineModel::knowledge() const {
  EngineKnowledge known{.times = times_, .energies = energies_, .idle_watts = idle_watts()};
  for (const Bin& bin : bins_)
    if (bin.windows >= 1 && bin.expected > 0) {
      known.clocks.push_back(bin.clock / bin.windows);
      known.ratios.push_back(bin.measured / bin.expected);
    }
  return known;
}

}  // namespace zeus
