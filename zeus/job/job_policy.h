#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job.h"
#include "zeus/job/job_service.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// The policies of a job, as they are stored in Job::policy_state: one policy for all GPU models,
// which translates between them, or one policy for each model.
class JobPolicy {
 public:
  // Returns kInternal when the stored state is damaged.
  static Result<JobPolicy> Restore(const Job& job);

  // Returns the policy for a GPU model; makes a new one for a model that was never used.
  Result<BatchSizePolicy*> For(const std::string& gpu_model);

  Json Save() const;

 private:
  JobPolicy(PolicySpec spec, bool shared) : spec_(std::move(spec)), shared_(shared) {}

  const std::string& Key(const std::string& gpu_model) const;

  PolicySpec spec_;
  bool shared_;
  std::map<std::string, std::unique_ptr<BatchSizePolicy>> policies_{};
};

// Describes the beliefs about a job on a GPU model (empty: that of the spec), and the choice for
// the next recurrence. `exploring`: a run is under way for whose result the policy waits.
Result<JobArms> DescribeArms(const Job& job, const std::string& gpu_model, bool exploring);

// The rules of a run: whether it begins, when it is stopped, what its policy observes, and whether
// another try follows. Jobs of a server (JobChange) and replayed ones (zeus/replay) share these
// rules. All functions are pure.

// The greatest number of tries of a recurrence, which is that of the reference implementation.
inline constexpr int kMostAttempts = 20;

PlannedRun Plan(const Situation& situation, const Choice& choice);

// The budget of a run.
struct RunBound {
  // False when even one epoch costs too much. The last try of a recurrence always begins.
  bool begins = true;
  // The run is stopped after this epoch if it has not reached its target. At least 1, because
  // nothing is known about a run before its first epoch has ended.
  int last_epoch = 0;
};
// Without a known epoch cost above 0, max_epochs is the only bound.
RunBound ComputeBound(const BatchSizePolicy& policy, const PlannedRun& run,
                      std::optional<Joules> epoch_cost, int max_epochs);

// How a run ended. A default one stands for a run that was not begun.
struct RunEnd {
  bool converged = false;
  int epochs = 0;
  Joules cost{};
  std::optional<Joules> epoch_cost{};
};
// Returns the result that the policy observes; `earlier` is the cost of the earlier tries of the
// recurrence.
RunResult MakeResult(const PlannedRun& run, const RunEnd& end, Joules earlier);

// Whether a recurrence goes on after a run that did not reach its target. False when every batch
// size that the policy may choose was run, and none has ever reached the target.
bool AnotherTryMayHelp(const BatchSizePolicy& policy, const PlannedRun& run, bool any_converged);

}  // namespace zeus
