#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/limit_search.h"
#include "zeus/replay/replay_job.h"

// What is compared in a replay: a batch size policy and how it comes by the power limit.
namespace zeus::replay {

struct ContenderSpec {
  std::string name = "zeus";         // One of ContenderNames().
  std::optional<double> beta = 2.0;  // As PolicySpec has it; nullopt: never stop early.
  int window = 0;                    // Likewise.
  // The cost of an epoch is known before a batch size has ever been run, as it is to the
  // reference's simulator: a run of which one epoch is too dear is then not even begun. Without, as
  // on a real GPU, it is begun and stopped after its first epoch.
  bool foresees_epoch_costs = true;
};

// default: the default batch size at the greatest power limit, always.
// grid: each batch size at each power limit, then the cheapest.
// zeus, knowledge_gradient: the policies of the server, with just-in-time profiling.
// oracle: the cheapest batch size and power limit, known beforehand.
// zeus_no_early_stop, zeus_no_pruning, zeus_no_jit: `zeus` without one of its parts (Zeus §6.7).
std::vector<std::string> ContenderNames();

// kInvalidArgument, listing the names.
Status CheckContender(std::string_view name);

struct Contender {
  std::unique_ptr<BatchSizePolicy> policy;
  std::unique_ptr<LimitSearch> limits;  // May refer to the policy.
};

Result<Contender> MakeContender(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed);

}  // namespace zeus::replay
