#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "zeus/base/units.h"

// How an inference engine with continuous batching spends time and energy at each clock, learned
// from sums over about a second.
//
// Time is linear in the work: an iteration costs a fixed time (the weights are read once), each
// decoded token and each prompt token cost theirs. Each of these has a part that does not depend on
// the clock, one that goes with its inverse, and, except for prompts, one that begins where the
// memory slows down too. The constants are fitted by non-negative least squares with forgetting. As
// long as one clock was seen, the parts cannot be told apart; then reading the weights counts as
// independent of the clock and all other work as going with its inverse.
//
// Energy above idle is linear in the same work at the highest clock. At other clocks it is that
// times a ratio, which is measured at a few clocks and interpolated between them.
//
// Clocks are relative to the highest one, between 0 and 1.
namespace zeus {

// The work of an engine in a stretch of time at one clock.
struct EngineWork {
  double busy = 0;  // Seconds with at least one request in flight.
  double iterations = 0;
  double decoded = 0;  // Output tokens.
  double prompt = 0;   // Prompt tokens.

  EngineWork& operator+=(const EngineWork& other);
};

// Everything that a model has learned, as plain numbers that a caller can store.
struct EngineKnowledge {
  // Seconds: three for iterations, three for decoded tokens, two for prompt tokens.
  std::array<double, 8> times{};
  // Joules above idle at the highest clock: of an iteration, a decoded and a prompt token.
  std::array<double, 3> energies{};
  double idle_watts = 0;
  std::vector<double> clocks{};  // At which energy was measured, relative, ascending.
  std::vector<double> ratios{};  // Energy against the highest clock, one for each of `clocks`.

  friend bool operator==(const EngineKnowledge&, const EngineKnowledge&) = default;
};

// Non-negative least squares with forgetting, and with a pull towards zero that decides where the
// data do not.
template <std::size_t N>
class PulledFit {
 public:
  // `pull` is relative to the data of each coefficient.
  explicit PulledFit(const std::array<double, N>& pull) : pull_(pull) {}

  void Forget(double keep);
  void Add(const std::array<double, N>& features, double value);
  // Improves `solution`, from which it starts.
  void Solve(std::array<double, N>& solution) const;

 private:
  std::array<double, N> pull_;
  std::array<std::array<double, N>, N> products_{};
  std::array<double, N> values_{};
};

// Time that pieces of work take at one clock.
struct EngineTimes {
  double iteration = 0;  // Seconds; the fixed part.
  double token = 0;      // Per decoded token.
  double prompt = 0;     // Per prompt token.
};

// Mean work per second that users ask for.
struct EngineDemand {
  double tokens = 0;
  double prompt = 0;
};

// One owner.
class EngineModel {
 public:
  EngineModel();
  explicit EngineModel(const EngineKnowledge& knowledge);

  // Adds to the present window of observation: `work` of `length` seconds at `clock`, of which
  // prompts were worked on at `prompt_clock` (lower where a power limit holds the clock).
  void Observe(const EngineWork& work, double length, double clock, double prompt_clock);
  // Ends the window after about two seconds. `joules` is what the window took, or negative if
  // unknown.
  void EndWindow(double joules);
  // Forgets the present window: what happened in it is not typical.
  void DropWindow();
  double window_length() const { return window_.length; }

  // Whether enough was seen to predict: time, and energy at the highest clock.
  bool knows_time() const { return time_windows_ >= kWindowsNeeded; }
  bool knows_energy() const { return energy_windows_ >= kWindowsNeeded; }

  EngineTimes TimesAt(double clock, double prompt_clock) const;
  // Seconds from one token of a sequence to the next in the long run; infinite if the engine cannot
  // keep up.
  static double SteadyIteration(const EngineTimes& times, const EngineDemand& demand);

  // Mean watts above idle in the long run; infinite if the engine cannot keep up.
  double PowerAt(double clock, double prompt_clock, const EngineDemand& demand) const;
  double idle_watts() const;
  // Energy against the highest clock for the same work.
  double RatioAt(double clock) const;
  // Windows of measured energy near this clock.
  double EvidenceAt(double clock) const;

  EngineKnowledge knowledge() const;

  static constexpr double kWindowsNeeded = 8;

 private:
  // Energy at clocks within a twentieth of the highest one.
  struct Bin {
    double measured = 0;
    double expected = 0;  // For the same work at the highest clock.
    double clock = 0;     // Sum of clocks, weighted by `windows`.
    double windows = 0;
  };
  struct Window {
    EngineWork work{};
    double length = 0;
    double clock_time = 0;  // Clock times length.
    double lowest = 2;
    double highest = 0;
    std::array<double, 8> features{};
  };
  static constexpr std::size_t kBins = 20;

  static std::size_t BinAt(double clock);
  void AddInventedWindow(const EngineWork& work, double clock);
  void LearnEnergy(double joules);
  double Expected(const EngineWork& work) const;

  Window window_;
  PulledFit<8> time_fit_;
  PulledFit<3> energy_fit_;
  std::array<double, 8> times_{};
  std::array<double, 3> energies_{};
  std::array<Bin, kBins> bins_{};
  double time_windows_ = 0;
  double energy_windows_ = 0;
  double idle_watts_ = 0;
  double idle_windows_ = 0;
  double highest_watts_ = 0;
};

}  // namespace zeus
