#include "apps/zeus/commands.h"
#include "apps/zeus/sim/commands.h"

namespace zeus::cli {

void AddSimCommand(Verb app, Action& action) {
  const Verb sim = app.AddVerb("sim", "Simulated GPUs that every NVML client can see");
  sim.RequireVerb();
  AddSimStart(sim, action);
  AddSimStop(sim, action);
  AddSimList(sim, action);
  AddSimEnv(sim, action);
  AddSimLoad(sim, action);
  AddSimFault(sim, action);
  AddSimTruth(sim, action);
  AddSimPredict(sim, action);
}

}  // namespace zeus::cli
