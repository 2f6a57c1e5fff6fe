#include "apps/zeus/sim_command.h"

#include "apps/zeus/sim/commands.h"

namespace zeus::cli {

void AddSimCommand(CLI::App& app, Action& action) {
  CLI::App* sim = app.add_subcommand("sim", "Simulated GPUs that every NVML client can see");
  sim->require_subcommand(1);
  AddSimStart(*sim, action);
  AddSimStop(*sim, action);
  AddSimList(*sim, action);
  AddSimEnv(*sim, action);
  AddSimLoad(*sim, action);
  AddSimFault(*sim, action);
  AddSimTruth(*sim, action);
  AddSimPredict(*sim, action);
}

}  // namespace zeus::cli
