#include "apps/zeus/replay/cluster_source.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/cluster/group_trace.h"
#include "zeus/replay/cluster/pai_tables.h"

namespace zeus::cli {
namespace {

Result<ClusterSource> Recorded(const std::filesystem::path& path, replay::RowProblems& problems) {
  ZEUS_TRY(replay::ClusterTrace trace, replay::ReadGroupTrace(path, problems));
  return ClusterSource{.trace = std::move(trace), .title = Printable(path.filename().string())};
}

Result<ClusterSource> Tables(const std::filesystem::path& folder,
                             std::span<const std::string> workloads,
                             replay::RowProblems& problems) {
  ZEUS_TRY(replay::PaiTrace pai, replay::ReadPaiTables(folder, workloads, problems));
  ClusterSource source{.trace = std::move(pai.trace),
                       .title = "pai tables in " + Printable(folder.string())};
  source.remarks.push_back(
      fmt::format("{} jobs did not terminate and {} have no group: they are no part of it.",
                  pai.not_terminated, pai.without_group));
  return source;
}

Result<ClusterSource> Generated(const std::string& traits, std::span<const std::string> workloads,
                                std::uint64_t number) {
  ZEUS_TRY(replay::ClusterSpec spec, replay::ParseClusterSpec(traits));
  const std::string title = "a generated cluster (" + ToText(spec) + ")";
  spec.seed += number;
  return ClusterSource{.trace = GenerateCluster(spec, workloads), .title = title};
}

}  // namespace

Result<ClusterSource> OpenClusterSource(const ClusterSourceFlags& flags,
                                        std::span<const std::string> workloads,
                                        std::uint64_t number, replay::RowProblems& problems) {
  const int given =
      int{!flags.groups.empty()} + int{!flags.pai.empty()} + int{!flags.generate.empty()};
  if (given != 1)
    return Error{ErrorCode::kInvalidArgument,
                 "give one of --groups FILE, --pai DIR and --generate SPEC"};
  if (!flags.groups.empty()) return Recorded(flags.groups, problems);
  if (!flags.pai.empty()) return Tables(flags.pai, workloads, problems);
  return Generated(flags.generate, workloads, number);
}

}  // namespace zeus::cli
