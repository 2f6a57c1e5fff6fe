#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/run/run_meter.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/process/child.h"
#include "zeus/ranks/rank_place.h"

namespace zeus::cli {

// The command line of `zeus run`, as typed.
struct RunFlags {
  std::string gpus;
  bool no_cpu = false;
  double driver_timeout = 2;
  std::string subtract_idle;  // "measure", "50" or "50,60"; empty: not.
  double idle_seconds = 5;
  std::optional<unsigned> repeat;
  unsigned warmup = 0;
  std::string cooldown = "0";
  double cooldown_limit = 300;
  std::string refine = "auto";
  std::string label;
  std::string json;
  std::string csv;
  bool quiet = false;
  bool explain = false;
  bool alone = false;
  bool per_node = false;
  ChildOptions child;
  CarbonOptions carbon;
};

// A sentence when the user of a scheduler wants the best power limit, which `zeus run` does not
// look for; else nothing.
std::vector<std::string> RemarksOnWishes();

// The options, checked and converted.
struct RunOptions {
  std::vector<std::string> command;
  MeterOptions meter;
  Refinement refinement = Refinement::kAuto;
  ChildOptions child;

  // Idle power: measured for that long, or given: one value for all GPUs or one per GPU.
  std::optional<Seconds> measure_idle;
  std::vector<Watts> given_idle;

  std::optional<unsigned> repeat;
  unsigned warmup = 0;
  std::optional<Seconds> cooldown;  // nullopt: until the GPUs are as cool as they were.
  Seconds cooldown_limit{0};

  std::string label;
  std::string json;  // Paths; empty: not wanted.
  std::string csv;
  bool quiet = false;
  bool explain = false;
  bool per_node = false;
  CarbonOptions carbon;

  std::optional<RankPlace> place;  // Set for one of several ranks that report together.
};

// Declares the options on `verb`.
void AddRunFlags(Verb verb, RunFlags& flags);

// kInvalidArgument with one sentence when they make no sense.
Result<RunOptions> Interpret(const RunFlags& flags, std::vector<std::string> command);

// Complains about a command that could not be started and returns the exit code that a shell has
// for it. Errors of other kinds are returned as they are.
Result<int> CommandNotStarted(Error error);

// The command of a verb that was parsed: what is no option (`zeus run git diff`), and what follows
// "--". kInvalidArgument when there is none, or when it begins with an unknown option.
Result<std::vector<std::string>> CommandToRun(const Verb& verb, const CommandTail& tail);

}  // namespace zeus::cli
