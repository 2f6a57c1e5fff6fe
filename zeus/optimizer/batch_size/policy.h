#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// How the batch size of a recurring job is chosen (Zeus §4.3, §4.4). A recurrence is one submission
// of the job; it takes one run, or several tries when a run does not reach the target metric.
// Costs are eta * energy + (1 - eta) * MAXPOWER * time, in joules.
namespace zeus {

// The properties of a job that a policy may use.
struct PolicySpec {
  std::string name = "knowledge_gradient";
  std::vector<int> batch_sizes{};  // Ascending, each once.
  int default_batch_size = 0;      // One of batch_sizes.
  int max_epochs = 100;
  // How far a run may go; nullopt: to max_epochs. zeus: beta times the least cost that reached the
  // target. knowledge_gradient: beta times the epochs that its batch size is expected to need, or
  // at most beta times the leader's cost where that batch size has never reached the target.
  std::optional<double> beta = 2.0;
  int pruning_rounds = 2;
  int window = 0;  // How many of the latest observations count; 0: all.
  // Prior of the reward, which is minus the cost in joules, as in the authors' implementation.
  // Precision 0: a flat prior.
  double prior_mean = 0.0;
  double prior_precision = 0.0;
  int explorations = 2;  // Observations an arm needs before it is sampled.
  std::uint64_t seed = 0;
};

// The reason for which a run has its batch size.
enum class RunRole {
  kExploring,   // The policy waits for the result of this run.
  kConcurrent,  // Runs the best batch size known, because an exploring run is still under way.
  kExploiting,  // Runs the batch size that the belief favours.
  kBaseline,    // Runs the default, as without Zeus. No policy chose it, and none learns from it.
};

// The run for which a policy is to choose the batch size.
struct Situation {
  std::int64_t recurrence = 0;  // Number of the recurrence within the job, from 0.
  int attempt = 0;              // Number of the try within the recurrence, from 0.
  std::string gpu_model{};
  bool exploring = false;  // An exploring run is under way; its result is not known yet.
};

// A policy's answer to a Situation.
struct Choice {
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The choice that a policy would make now and the reasons for it, as sentences for users.
struct Explanation {
  Choice choice{};
  std::string why{};      // Why the choice has this batch size.
  bool settled = false;   // As far as is known now, the policy has nothing left to explore.
  std::string outlook{};  // The part that is left to learn, or the reason why nothing is.
};

// A run that was started or may be started.
struct PlannedRun {
  std::int64_t recurrence = 0;
  int attempt = 0;
  std::string gpu_model{};
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
};

// A finished run: it reached the target, or it was stopped by the policy's budget or at max_epochs.
// Runs that crashed or vanished are not reported to a policy.
struct RunResult {
  PlannedRun run{};
  bool converged = false;
  int epochs = 0;            // 0: the run was not worth starting, by its budget.
  Joules cost{};             // Cost of this run, including the profiling of power limits.
  Joules recurrence_cost{};  // Cost of this run and of the earlier tries of its recurrence.
  // Cost of one epoch at the power limit that was chosen, without profiling.
  std::optional<Joules> epoch_cost{};
};

// The standing of a batch size (an arm of the bandit) with its policy.
enum class ArmState {
  kUntried,
  kCandidate,  // May be chosen again.
  kDropped,    // Pruned, or never chosen by this policy; a drift may make it a candidate again.
};

// The belief about one batch size on one GPU model.
struct ArmBelief {
  int batch_size = 0;
  ArmState state = ArmState::kUntried;
  int runs = 0;                        // Results within the window.
  int converged = 0;                   // How many of those runs reached the target.
  std::optional<double> epochs{};      // Expected number of epochs to the target.
  std::optional<Joules> epoch_cost{};  // Profiled, translated or estimated cost of one epoch.
  bool epoch_cost_profiled = false;    // Whether epoch_cost was measured on this GPU model.
  std::optional<Joules> cost{};        // Expected cost of a run to the target.
  std::optional<Joules> cost_sigma{};  // Standard deviation of the belief about `cost`.
};

// Chooses batch sizes and learns from the results. Deterministic: the same spec and the same calls
// give the same answers on every machine, and Save() after them gives the same bytes. Results may
// come in any order, of overlapping runs, and of runs that the policy no longer waits for. One
// owner.
class BatchSizePolicy {
 public:
  virtual ~BatchSizePolicy() = default;

  // May draw random numbers: call it once per try, and keep the answer.
  virtual Choice Choose(const Situation& situation) = 0;

  // Explains what Choose() would answer now, and changes nothing. Only people need it, so Choose()
  // is not slowed down by the words.
  virtual Explanation Explain(const Situation& situation) const = 0;

  // Returns how many epochs a run may take if each costs `epoch_cost`: at most max_epochs, and 0 if
  // the run is not worth starting. Called before a run if the epoch cost is known, and again after
  // every epoch.
  virtual int EpochBudget(const PlannedRun& run, Joules epoch_cost) const = 0;

  virtual void Observe(const RunResult& result) = 0;

  // Learns an epoch cost that was measured outside of a run, as on a GPU model that is new to the
  // job (Zeus §7).
  virtual void LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) = 0;
  virtual std::optional<Joules> ProfiledEpochCost(std::string_view gpu_model,
                                                  int batch_size) const = 0;

  // Returns one belief per batch size, ascending.
  virtual std::vector<ArmBelief> Beliefs(std::string_view gpu_model) const = 0;
  // Returns the batch size to run if exploration ended now.
  virtual int Best(std::string_view gpu_model) const = 0;
  // The phase of the policy ("pruning", "sampling", …), to be displayed.
  virtual std::string_view stage() const = 0;

  // The state, with its version. RestorePolicy() makes a policy of it that goes on exactly as this
  // one would.
  virtual Json Save() const = 0;
};

// The names that MakePolicy() accepts: default, zeus, knowledge_gradient.
std::vector<std::string> PolicyNames();

// Both return kInvalidArgument, naming the field, when the spec is not valid.
Result<std::unique_ptr<BatchSizePolicy>> MakePolicy(const PolicySpec& spec);
Result<std::unique_ptr<BatchSizePolicy>> RestorePolicy(const PolicySpec& spec, const Json& state);

}  // namespace zeus
