#include "zeus/job/epoch_goal.h"

#include <fmt/format.h>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr const char* kLabel = "goal";
constexpr const char* kEpochs = "epochs";

}  // namespace

Status SetEpochGoal(JobSpec& spec, int epochs) {
  const auto [label, added] = spec.labels.try_emplace(kLabel, kEpochs);
  if (label->second != kEpochs)
    return InvalidArgument(
        fmt::format("a job of a fixed number of epochs has the label goal=epochs, not goal={}",
                    Printable(label->second)));
  spec.target_metric = epochs;
  spec.higher_is_better = true;
  spec.max_epochs = epochs;
  return Ok();
}

bool HasEpochGoal(const JobSpec& spec) {
  const auto label = spec.labels.find(kLabel);
  return label != spec.labels.end() && label->second == kEpochs &&
         spec.target_metric == static_cast<double>(spec.max_epochs);
}

}  // namespace zeus
