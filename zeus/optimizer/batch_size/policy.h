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

// Everything about a job that a policy may use.
struct PolicySpec {
  std::string name = "knowledge_gradient";
  std::vector<int> batch_sizes{};  // Ascending, each once.
  int default_batch_size = 0;      // One of them.
  int max_epochs = 100;
  std::optional<double> beta = 2.0;  // Early stop at beta * the least cost; nullopt: never.
  int pruning_rounds = 2;
  int window = 0;  // Only so many of the latest observations count; 0: all.
  // Of the reward, which is minus the cost in joules, as the reference has it. Precision 0: flat.
  double prior_mean = 0.0;
  double prior_precision = 0.0;
  int explorations = 2;  // Observations an arm needs before it is sampled.
  std::uint64_t seed = 0;
};

enum class RunRole {
  kExploring,   // The policy waits for what this run will teach it.
  kConcurrent,  // The best batch size known, because an exploring run is under way.
  kExploiting,  // Drawn from the belief.
  kBaseline,    // The default, as without Zeus. No policy is asked, and none learns from it.
};

// What the policy is asked for.
struct Situation {
  std::int64_t recurrence = 0;  // Of the job, from 0.
  int attempt = 0;              // Of the recurrence, from 0.
  std::string gpu_model{};
  bool exploring = false;  // An exploring run is under way, whose result is not known yet.
};

struct Choice {
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// A run that was begun, or might be.
struct PlannedRun {
  std::int64_t recurrence = 0;
  int attempt = 0;
  std::string gpu_model{};
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
};

// A run that came to its end: the target was reached, or it was stopped, by the policy's budget or
// at the greatest number of epochs. What crashed or vanished teaches nothing and is not told.
struct RunResult {
  PlannedRun run{};
  bool converged = false;
  int epochs = 0;            // 0: the budget said that it is not worth starting.
  Joules cost{};             // Of this run, the profiling of power limits included.
  Joules recurrence_cost{};  // Of this run and the earlier tries of its recurrence.
  // Of one epoch at the power limit that was chosen, without profiling.
  std::optional<Joules> epoch_cost{};
};

enum class ArmState {
  kUntried,
  kCandidate,  // May be chosen again.
  kDropped,    // Pruned, or never chosen by this policy at all; drift may re-open it.
};

// What is believed about one batch size on one GPU model.
struct ArmBelief {
  int batch_size = 0;
  ArmState state = ArmState::kUntried;
  int runs = 0;                        // Results within the window.
  int converged = 0;                   // Of them.
  std::optional<double> epochs{};      // To the target, expected.
  std::optional<Joules> epoch_cost{};  // As profiled, translated or estimated.
  bool epoch_cost_profiled = false;    // Measured on this GPU model.
  std::optional<Joules> cost{};        // Of a run to the target, expected.
  std::optional<Joules> cost_sigma{};  // One standard deviation of that expectation.
};

// Decides, and learns. Pure: the same spec and the same calls give the same answers on every
// machine, and Save() after them gives the same bytes. Results may come in any order, from runs
// that the policy does not expect any more, and more than one at a time. One owner.
class BatchSizePolicy {
 public:
  virtual ~BatchSizePolicy() = default;

  // Draws random numbers: ask once per try, and keep the answer.
  virtual Choice Choose(const Situation& situation) = 0;

  // How many epochs a run may take if each costs `epoch_cost`; 0: it is not worth starting. At most
  // max_epochs. Asked before a run when the epoch cost is known, and again after every epoch.
  virtual int EpochBudget(const PlannedRun& run, Joules epoch_cost) const = 0;

  virtual void Observe(const RunResult& result) = 0;

  // What an epoch costs, measured without a run: on a GPU model that is new to the job (Zeus §7).
  virtual void LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) = 0;
  virtual std::optional<Joules> ProfiledEpochCost(std::string_view gpu_model,
                                                  int batch_size) const = 0;

  // One per batch size, ascending.
  virtual std::vector<ArmBelief> Beliefs(std::string_view gpu_model) const = 0;
  // The batch size that one would run if there was nothing left to learn.
  virtual int Best(std::string_view gpu_model) const = 0;
  // "pruning", "sampling", … for people.
  virtual std::string_view stage() const = 0;

  // Versioned; RestorePolicy() gives a policy that goes on exactly as this one would.
  virtual Json Save() const = 0;
};

// The names MakePolicy() knows: default, zeus, knowledge_gradient.
std::vector<std::string> PolicyNames();

// kInvalidArgument, naming the field, when the spec makes no sense.
Result<std::unique_ptr<BatchSizePolicy>> MakePolicy(const PolicySpec& spec);
Result<std::unique_ptr<BatchSizePolicy>> RestorePolicy(const PolicySpec& spec, const Json& state);

}  // namespace zeus
