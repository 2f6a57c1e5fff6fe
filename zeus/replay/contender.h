#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/batch_size/job_prior.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The power limit of a run, as an index into ReplayArm::limits.
struct LimitChoice {
  std::size_t limit = 0;
  // The first epoch of the run is spent at all limits in turn (Zeus §4.2).
  bool profiles = false;
};

// A strategy of a contender for finding the power limit of each batch size. Not thread-safe.
class LimitStrategy {
 public:
  virtual ~LimitStrategy() = default;

  // Returns the limit for the next run with this batch size.
  virtual LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const = 0;
  // Must be called when that run was begun.
  virtual void Begun(std::size_t arm_index) = 0;
  // Forgets everything: the job moved to another GPU model, with `arms` batch sizes.
  virtual void StartOver(std::size_t arms) = 0;
};

// Always the greatest limit, as without Zeus.
std::unique_ptr<LimitStrategy> AtGreatestLimit();
// Always the best limit, known beforehand.
std::unique_ptr<LimitStrategy> AtBestLimit();
// The best limit, found during the first epoch of the first run with a batch size (Zeus §4.2).
std::unique_ptr<LimitStrategy> JustInTime(std::size_t arms);
// A whole run at each limit, from the greatest down, then the best one (Zeus §6.7: without
// just-in-time profiling).
std::unique_ptr<LimitStrategy> OneLimitPerRun(std::size_t arms);

// A contender is what a replay compares: a batch size policy together with a way of finding the
// power limit.

struct ContenderSpec {
  std::string name = "zeus";         // One of ContenderNames().
  std::optional<double> beta = 2.0;  // As in PolicySpec; nullopt: runs are never stopped early.
  int window = 0;                    // As in PolicySpec.
  // If true, the cost of an epoch is known before a batch size was ever run, as in the reference's
  // simulator: a run of which one epoch costs too much is not even begun. If false, as on a real
  // GPU, it is begun and stopped after its first epoch.
  bool foresees_epoch_costs = true;
  // knowledge_gradient keeps to this bound (KnowledgeGradientPolicy::Terms).
  std::optional<double> safe{};
  // The knowledge of other jobs from which knowledge_gradient_prior begins; may be null. Must not
  // change while the replay is made.
  std::shared_ptr<const PriorBook> prior{};
};

// default: always the default batch size at the greatest power limit.
// grid: each batch size at each power limit once, then the cheapest pair.
// zeus, knowledge_gradient: the policies of the server, with just-in-time profiling.
// knowledge_gradient_prior: knowledge_gradient, beginning with what other jobs found: those of
// ContenderSpec::prior and, in a cluster, the runs of all groups that have ended by then.
// oracle: the cheapest batch size and power limit, known beforehand.
// zeus_no_early_stop, zeus_no_pruning, zeus_no_jit: `zeus` without one of its parts (Zeus §6.7).
std::vector<std::string> ContenderNames();

// The kind of a job, by which it is recognised in a PriorBook.
JobKind KindOf(const ReplayJob& job);

// Whether the contender takes over knowledge from other jobs.
bool LearnsFromOtherJobs(std::string_view name);

// Returns kInvalidArgument, which lists the names, for an unknown contender.
Status CheckContender(std::string_view name);

struct Contender {
  std::unique_ptr<BatchSizePolicy> policy;
  std::unique_ptr<LimitStrategy> limits;  // May refer to the policy.
};

Result<Contender> MakeContender(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed);

}  // namespace zeus::replay
