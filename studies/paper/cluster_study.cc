#include "studies/paper/cluster_study.h"

#include <fmt/format.h>

#include <utility>

#include "studies/paper/study.h"

namespace zeus::replay::paper {
namespace {

std::vector<ContenderSpec> Contenders() {
  std::vector<ContenderSpec> contenders{{.name = "default"}};
  for (const char* const name : kContenders) contenders.push_back({.name = name});
  return contenders;
}

}  // namespace

std::int64_t CountJobs(const ClusterStudyOptions& options) {
  return options.clusters * options.spec.jobs * static_cast<std::int64_t>(Contenders().size());
}

Result<ClusterComparison> RunClusterStudy(const std::vector<ReplayJob>& jobs,
                                          const ClusterStudyOptions& options) {
  ClusterComparison comparison{.source = fmt::format("{} generated clusters ({}; other seeds)",
                                                     options.clusters, ToText(options.spec)),
                               .jobs = jobs};
  const std::vector<ContenderSpec> contenders = Contenders();
  for (const ContenderSpec& contender : contenders) comparison.contenders.push_back(contender.name);
  for (int i = 0; i < options.clusters; ++i) {
    ClusterSpec spec = options.spec;
    spec.seed += static_cast<std::uint64_t>(i);
    const ClusterTrace trace = GenerateCluster(spec, ByDefaultRuntime(jobs));
    if (i == 0) comparison.statistics = Describe(trace);
    ZEUS_TRY(std::vector<WorkloadTotals> totals,
             ReplayCluster(trace, jobs,
                           {.contenders = contenders,
                            .replay = static_cast<std::uint64_t>(i),
                            .threads = options.threads,
                            .jobs_done = options.jobs_done}));
    comparison.replays.push_back(std::move(totals));
  }
  return comparison;
}

}  // namespace zeus::replay::paper
