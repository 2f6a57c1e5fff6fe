#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/profile/sweep.h"
#include "apps/zeus/run/report.h"
#include "zeus/base/json_fwd.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus::cli {

// What a setting of the knob does to the program, from all slices at that setting. The sigmas are
// one standard deviation of what a row does not share with the others: those of the slices, and
// their scatter.
struct SweepRow {
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

// What an objective chooses.
struct Choice {
  std::string objective;             // "energy"
  std::optional<std::size_t> row{};  // Position in SweepReport::rows.
  std::string reason{};              // Why none.
};

enum class ProgressSource { kNone, kOutput, kFile };

// Everything `zeus profile` found out, in the form that every output is made from.
struct SweepReport {
  std::vector<std::string> command;
  std::string label;
  std::string host;
  std::string version;
  WallTime started{};
  std::string knob_name;  // "power limit of gpu:0"
  KnobKind knob = KnobKind::kGpuPowerLimit;
  Watts max_power{0};
  std::string driver;
  std::vector<DeviceIdentity> devices{};
  ProgressSource progress = ProgressSource::kNone;

  std::vector<Setting> settings{};  // That were to be tried, fastest first.
  SweepPlan plan{};
  bool complete = false;
  std::vector<MeasuredSlice> slices{};

  // Follow from the slices: see Evaluate().
  std::vector<SweepRow> rows{};  // Settings that were measured, fastest first.
  double shared_error = 0;       // Relative, of all powers and energies: the gain of the sensors.
  std::vector<Choice> choices{};

  std::vector<std::string> notes{};  // Sentences about what went otherwise than planned.
};

struct Objectives {
  double eta = 0.5;
  std::optional<double> max_slowdown{};
};

// Fills in what follows from the slices. Without a rate for every row nothing is chosen.
void Evaluate(SweepReport& report, const Objectives& objectives);

// Whether any row knows time and energy of a step.
bool KnowsSteps(const SweepReport& report);

// In the form of the optimiser; no points unless every row knows its steps.
Profile ToProfile(const SweepReport& report);

// The objectives that choose this row: {"energy", "cost (eta 0.5)"}.
std::vector<std::string> ChosenBy(const SweepReport& report, std::size_t row);

// "zeus.profile/1", see docs/formats.md.
Json ToJson(const SweepReport& report);
// Names of columns, and a row per setting. Cells that are not known are empty.
std::string SweepCsvHeader();
std::string ToCsv(const SweepReport& report);

// For people: a table and what to think of it, ending in a newline.
std::string ToTable(const SweepReport& report);

}  // namespace zeus::cli
