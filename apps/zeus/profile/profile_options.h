#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/commands.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/session/profile_session.h"

namespace zeus::cli {

// The command line of `zeus profile`, as typed.
struct ProfileFlags {
  std::string gpus{};
  double driver_timeout = 30;
  std::string knob = "gpu_power_limit";
  std::string limits{};
  std::optional<double> stride{};
  bool may_raise = false;
  std::string slice = "5s";
  std::string warmup = "1s";
  unsigned rounds = 2;
  std::string progress{};
  std::string progress_file{};
  ProfileObjectives objectives{};
  std::string label{};
  std::string json{};
  std::string csv{};
  std::string svg{};
  std::string html{};
  std::string save{};
  bool quiet = false;
  bool keep = false;
  bool until_done = false;
  bool stop = false;
};

// Paths; empty: not wanted.
struct ProfileFiles {
  std::string json;
  std::string csv;
  std::string svg;
  std::string html;
  std::string save;
};

// The meaning of the options.
struct ProfileInvocation {
  ProfileOptions session{};
  std::optional<std::vector<unsigned>> gpus{};
  Seconds driver_timeout{30};  // How long drivers may take to find devices.
  KnobKind knob = KnobKind::kGpuPowerLimit;
  Ceiling ceiling = Ceiling::kAsFound;
  ProfileFiles files{};
  bool quiet = false;
};

// Declares the options on `verb`.
void AddProfileFlags(Verb verb, ProfileFlags& flags);

// kInvalidArgument with one sentence when they make no sense.
Result<ProfileInvocation> Interpret(const ProfileFlags& flags, std::vector<std::string> command);

// "250,200,150" in watts, or megahertz of a clock: fastest first, each once. kInvalidArgument names
// --limits.
Result<std::vector<Setting>> ParseLimits(const std::string& text, KnobKind knob);

// "5s", "500ms", "2min", "5" (seconds). kInvalidArgument names the option.
Result<Seconds> ParseDuration(const std::string& text, const char* option);

}  // namespace zeus::cli
