#include "zeus/ranks/rank_place.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr const char* kMeasured = "ZEUS_RANKS_MEASURED";

std::optional<std::string> NonEmpty(const Environment& environment, const char* variable) {
  auto value = environment(variable);
  return value && !value->empty() ? std::move(value) : std::nullopt;
}

std::string ValueOf(const Environment& environment, const char* variable) {
  return environment(variable).value_or("");
}

Result<int> NumberIn(const Environment& environment, const char* variable) {
  const auto text = NonEmpty(environment, variable);
  if (!text) return InvalidArgument(fmt::format("{} is missing beside its siblings", variable));
  const auto number = ParseInteger(*text);
  if (!number.ok() || number.value() < 0 || number.value() > std::numeric_limits<int>::max())
    return InvalidArgument(
        fmt::format("{} is {}: it must be a whole number from 0", variable, Quote(*text)));
  return static_cast<int>(number.value());
}

// The place that two variables tell; the job is added by the caller.
Result<RankPlace> PlaceIn(const Environment& environment, const char* rank, const char* size,
                          const char* launcher) {
  RankPlace place{.launcher = launcher};
  ZEUS_TRY(place.rank, NumberIn(environment, rank));
  ZEUS_TRY(place.size, NumberIn(environment, size));
  if (place.rank >= place.size)
    return InvalidArgument(fmt::format("{} is {}, but {} says that there are {} ranks", rank,
                                       place.rank, size, place.size));
  return place;
}

Result<std::optional<RankPlace>> Said(const Environment& environment) {
  if (!NonEmpty(environment, "ZEUS_RANK")) return std::optional<RankPlace>();
  ZEUS_TRY(RankPlace place, PlaceIn(environment, "ZEUS_RANK", "ZEUS_RANKS", "ZEUS_RANK"));
  const auto job = NonEmpty(environment, "ZEUS_RANKS_JOB");
  if (!job)
    return InvalidArgument(
        "ZEUS_RANK is set without ZEUS_RANKS_JOB: set it to the same text, new for each launch, on "
        "all ranks");
  place.job = "ranks:" + *job;
  return std::optional<RankPlace>(std::move(place));
}

Result<std::optional<RankPlace>> OfTorchrun(const Environment& environment) {
  // Programs set RANK themselves, too; the id of the run is torchrun's alone.
  const auto run = NonEmpty(environment, "TORCHELASTIC_RUN_ID");
  if (!run || !NonEmpty(environment, "RANK")) return std::optional<RankPlace>();
  ZEUS_TRY(RankPlace place, PlaceIn(environment, "RANK", "WORLD_SIZE", "torchrun"));
  place.job = fmt::format("torchrun:{}@{}:{}.{}", *run, ValueOf(environment, "MASTER_ADDR"),
                          ValueOf(environment, "MASTER_PORT"),
                          ValueOf(environment, "TORCHELASTIC_RESTART_COUNT"));
  return std::optional<RankPlace>(std::move(place));
}

Result<std::optional<RankPlace>> OfOpenMpi(const Environment& environment) {
  if (!NonEmpty(environment, "OMPI_COMM_WORLD_RANK")) return std::optional<RankPlace>();
  ZEUS_TRY(RankPlace place,
           PlaceIn(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun"));
  // The namespace alone may come again; the address of mpirun has its port.
  place.job = fmt::format("mpirun:{}@{}", ValueOf(environment, "PMIX_NAMESPACE"),
                          ValueOf(environment, "OMPI_MCA_orte_hnp_uri"));
  return std::optional<RankPlace>(std::move(place));
}

Result<std::optional<RankPlace>> OfSlurm(const Environment& environment) {
  // A batch script has SLURM_PROCID, too, but is no step of several tasks.
  if (!NonEmpty(environment, "SLURM_STEP_NUM_TASKS") || !NonEmpty(environment, "SLURM_PROCID"))
    return std::optional<RankPlace>();
  ZEUS_TRY(RankPlace place, PlaceIn(environment, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"));
  place.job =
      fmt::format("slurm:{}.{}.{}", ValueOf(environment, "SLURM_CLUSTER_NAME"),
                  ValueOf(environment, "SLURM_JOB_ID"), ValueOf(environment, "SLURM_STEP_ID"));
  if (const auto restarts = NonEmpty(environment, "SLURM_RESTART_COUNT"))
    place.job += "-" + *restarts;
  return std::optional<RankPlace>(std::move(place));
}

}  // namespace

Result<std::optional<RankPlace>> FindRankPlace(const Environment& environment) {
  for (const auto find : {Said, OfTorchrun, OfOpenMpi, OfSlurm}) {
    ZEUS_TRY(std::optional<RankPlace> place, find(environment));
    if (!place) continue;
    if (place->size == 1 || ValueOf(environment, kMeasured) == place->job) break;
    return place;
  }
  return std::optional<RankPlace>();
}

std::string MeasuredVariable(const RankPlace& place) {
  return fmt::format("{}={}", kMeasured, place.job);
}

// FNV-1a.
std::uint64_t LaunchNumber(const RankPlace& place) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : place.job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash >> 1U | 1U;
}

}  // namespace zeus
