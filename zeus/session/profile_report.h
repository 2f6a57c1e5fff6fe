#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus {

// How long a search measures.
struct SearchPlan {
  std::optional<unsigned> rounds = 1;  // nullopt: until the command ends.
  Seconds warmup{1};                   // Not measured after each change.
  Seconds slice{5};                    // At most: a slice ends early once it is precise.
};

// Time, power and energy of the program at one setting of the knob, from all slices at that
// setting. The sigmas are one standard deviation of the part that rows do not share: errors of the
// slices, and their scatter.
struct SettingRow {
  Setting setting;
  std::size_t slices = 0;
  Seconds time{0};  // Measured, altogether.
  Watts power{0};
  Watts power_sigma{0};

  struct PerStep {
    double steps;
    Seconds time;
    Seconds time_sigma;
    Joules energy;
    Joules energy_sigma;

    double Rate() const { return 1 / time.count(); }
    double RateSigma() const { return time_sigma / time * Rate(); }
  };
  std::optional<PerStep> per_step{};  // Where every slice saw the program make steps.
};

// The choice of one objective.
struct SettingChoice {
  std::string objective;             // "energy"
  std::optional<std::size_t> row{};  // Position in ProfileReport::rows.
  std::string reason{};              // The reason why there is none.
};

enum class ProgressSource { kNone, kOutput, kFile };

// How a search came to its end.
struct SearchEnd {
  bool command_ended = false;
  bool interrupted = false;
  Seconds ran{0};            // How long the command had run by then.
  Seconds before_search{0};  // How long the command ran until it showed progress.
  bool waiting = false;      // It never showed progress.
  std::optional<Error> trouble{};
  std::vector<PowerLimitOptimizer::LeftOut> left_out{};
};

// The result of a search, in the form that every output is made from.
struct ProfileReport {
  std::vector<std::string> command;
  std::string label;
  WallTime started{};
  std::string knob_name;  // "power limit of gpu:0"
  KnobKind knob = KnobKind::kGpuPowerLimit;
  Watts max_power{0};
  std::string driver;
  std::vector<JobKnob::Device> devices{};
  ProgressSource progress = ProgressSource::kNone;

  std::vector<Setting> settings{};  // That were to be tried, fastest first.
  SearchPlan plan{};
  bool complete = false;
  std::vector<PowerLimitOptimizer::MeasuredSlice> slices{};

  // Time and energy of a step at each setting, as the optimiser has them.
  Profile profile{};
  std::vector<SettingRow> rows{};  // Settings that were measured, fastest first.
  double shared_error = 0;         // Relative, of all powers and energies: the gain of the sensors.
  std::vector<SettingChoice> choices{};

  SearchEnd end{};
  std::optional<Setting> kept{};  // Left set for the rest of the command.
};

struct ProfileObjectives {
  double eta = 0.5;
  std::optional<double> max_slowdown{};
};

// Takes over what the optimiser has measured. Nothing is chosen unless the steps of every setting
// are known.
void FillReport(ProfileReport& report, const PowerLimitOptimizer& optimizer,
                const ProfileObjectives& objectives);

// Whether the time and energy of a step is known for some row, and for all of them.
bool KnowsSteps(const ProfileReport& report);
bool KnowsAllSteps(const ProfileReport& report);

// The objectives that choose this row: {"energy", "cost (eta 0.5)"}.
std::vector<std::string> ChosenBy(const ProfileReport& report, std::size_t row);

}  // namespace zeus
