// The verbs of the zeus command.
#include "apps/zeus/verbs.h"

#include "apps/zeus/budget/budget_command.h"
#include "apps/zeus/fleet/fleet_command.h"

namespace zeus::cli {

const bool kHasAllVerbs = true;

std::vector<VerbEntry> Verbs() {
  return {{"budget", WithoutTail(AddBudgetCommand)},
          {"calibrate", WithoutTail(AddCalibrateCommand)},
          {"diff", WithoutTail(AddDiffCommand)},
          {"doctor", WithoutTail(AddDoctorCommand)},
          {"fleet", WithoutTail(AddFleetCommand)},
          {"job", WithoutTail(AddJobCommand)},
          {"knobs", WithoutTail(AddKnobsCommand)},
          {"lease", WithoutTail(AddLeaseCommand)},
          {"llm", WithoutTail(AddLlmCommand)},
          {"monitor", WithoutTail(AddMonitorCommand)},
          {"node", WithoutTail(AddNodeCommand)},
          {"plan", WithoutTail(AddPlanCommand)},
          {"plan-start", WithoutTail(AddPlanStartCommand)},
          {"profile", AddProfileCommand},
          {"record", AddRecordCommand},
          {"recording", WithoutTail(AddRecordingCommand)},
          {"replay", WithoutTail(AddReplayCommand)},
          {"run", AddRunCommand},
          {"serve", WithoutTail(AddServeCommand)},
          {"sim", WithoutTail(AddSimCommand)},
          {"slurm", WithoutTail(AddSlurmCommand)},
          {"top", WithoutTail(AddTopCommand)},
          {"train", AddTrainCommand}};
}

}  // namespace zeus::cli
