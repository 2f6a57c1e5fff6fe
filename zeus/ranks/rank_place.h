#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/result.h"

namespace zeus {

// The place of this process among those that a launcher (mpirun, srun, torchrun, …) started
// together on one or several nodes.
struct RankPlace {
  int rank = 0;
  int size = 1;
  std::string launcher{};  // "mpirun", for people.
  // The same for all ranks of a launch, and for no other launch: "slurm:zeus.123.0".
  std::string job{};
};

// Reads the variables of launchers. Where several have left some, the innermost counts: torchrun,
// Open MPI, a step of Slurm, and first of all ZEUS_RANK, ZEUS_RANKS and ZEUS_RANKS_JOB, by which a
// user says it for any other launcher. nullopt for a process that is alone, and for one whose
// launch is measured by a process above it (MeasuredVariable()). kInvalidArgument names a variable
// that is malformed or missing.
Result<std::optional<RankPlace>> FindRankPlace(const Environment& environment);

// "ZEUS_RANKS_MEASURED=<job>" for the commands of a rank: what they start in turn is no rank of
// that launch any more.
std::string MeasuredVariable(const RankPlace& place);

// A number below 2^63, never 0, that all ranks of a launch compute alike.
std::uint64_t LaunchNumber(const RankPlace& place);

}  // namespace zeus
