#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// The knowledge that a new job takes over from jobs that ran before it. Jobs with the same batch
// sizes, default, bound on epochs, target, number of GPUs and eta are of one kind: a new job of a
// known kind expects the epochs and the epoch costs that the kind had. A job of an unknown kind
// takes over only how often jobs recur. Nothing here has a name of a job, a tenant or a machine.
namespace zeus {

// The properties by which jobs are recognised as being of one kind.
struct JobKind {
  std::vector<int> batch_sizes{};  // Ascending.
  int default_batch_size = 0;
  int max_epochs = 0;
  double eta = 0.5;
  double target_metric = 0.0;
  int number_of_gpus = 1;

  friend bool operator==(const JobKind&, const JobKind&) = default;
};

// The results of one batch size, over all jobs of a kind.
struct PriorArm {
  std::int64_t converged = 0;  // Runs that reached the target.
  double mean = 0.0;           // Mean of ln epochs over those runs.
  double squares = 0.0;        // Sum of squared deviations from the mean.
  std::int64_t stopped = 0;    // Runs that ended without reaching the target.
  int longest_stop = 0;        // Epochs of the longest of them.

  friend bool operator==(const PriorArm&, const PriorArm&) = default;
};

// The beginning of one new job: part of its specification, so that its decisions do not change when
// other jobs go on. Default: nothing is known.
struct JobPrior {
  // Jobs of the same kind; 0: the kind is new, and `arms` is empty.
  std::int64_t jobs = 0;
  // One per batch size of the job, in their order.
  std::vector<PriorArm> arms{};
  // Cost of an epoch by GPU model; 0 J: not known. One cost per batch size.
  std::map<std::string, std::vector<Joules>> epoch_costs{};

  friend bool operator==(const JobPrior&, const JobPrior&) = default;
};

Json ToJson(const JobPrior& prior);
// `batch_sizes` is their number in the job. kInvalidArgument names what is wrong.
Result<JobPrior> JobPriorFromJson(const Json& json, std::size_t batch_sizes);

// A finished run, as a prior learns from it.
struct PriorRun {
  std::string_view gpu_model{};
  int batch_size = 0;
  bool converged = false;
  int epochs = 0;
  std::optional<Joules> epoch_cost{};
};

// Learns from finished runs and begins new jobs. The same calls in the same order give the same
// book. One owner.
class PriorBook {
 public:
  // A job of this kind has begun. Returns its kind's number, for Add().
  std::size_t AddJob(const JobKind& kind);
  // Learns a finished run of a job of that kind; ignores batch sizes that the kind does not have.
  void Add(std::size_t kind, const PriorRun& run);

  // Returns the beginning of a new job of this kind.
  JobPrior For(const JobKind& kind) const;

  struct KindRecord {
    JobKind kind{};
    std::int64_t jobs = 0;
    std::vector<PriorArm> arms{};
    struct Cost {
      Joules mean{};
      std::int64_t count = 0;
    };
    std::map<std::string, std::vector<Cost>> epoch_costs{};
  };
  std::span<const KindRecord> kinds() const { return kinds_; }

  // The exported file, with its version (docs/formats.md).
  Json Save() const;
  static Result<PriorBook> Restore(const Json& json);

 private:
  std::vector<KindRecord> kinds_{};
};

}  // namespace zeus
