#include "zeus/optimizer/batch_size/knowledge.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

constexpr double kNearOctaves = 1.0;

std::optional<std::size_t> Leader(const std::vector<ArmKnowledge>& arms) {
  std::optional<std::size_t> leader;
  for (std::size_t i = 0; i < arms.size(); ++i)
    if (arms[i].converged && (!leader || arms[i].log_cost() < arms[*leader].log_cost())) leader = i;
  return leader;
}

// Candidates are the batch sizes between those that ever converged, within an octave of them, and
// at least the next one on each side.
void MarkCandidates(std::span<const ArmEpochs> shown, std::span<const double> octaves,
                    std::vector<ArmKnowledge>& arms) {
  const auto first = std::ranges::find(shown, true, &ArmEpochs::ever_converged) - shown.begin();
  const auto last =
      shown.rend() -
      std::ranges::find(shown.rbegin(), shown.rend(), true, &ArmEpochs::ever_converged) - 1;
  if (last < first) return;
  const auto octave = [&](std::ptrdiff_t i) { return octaves[static_cast<std::size_t>(i)]; };
  for (std::ptrdiff_t i = 0; i < std::ssize(arms); ++i) {
    const bool next = i >= first - 1 && i <= last + 1;
    const bool near =
        octave(i) >= octave(first) - kNearOctaves && octave(i) <= octave(last) + kNearOctaves;
    const auto index = static_cast<std::size_t>(i);
    arms[index].candidate = (next || near) && !shown[index].dropped;
  }
}

}  // namespace

KnowledgeSource::KnowledgeSource(std::span<const int> batch_sizes, int default_batch_size)
    : batch_sizes_(batch_sizes.begin(), batch_sizes.end()),
      belief_(batch_sizes, default_batch_size) {
  for (const int batch_size : batch_sizes) octaves_.push_back(std::log2(batch_size));
}

Knowledge KnowledgeSource::About(const EpochHistory& history,
                                 std::span<const std::optional<EpochCostBelief>> costs) const {
  Knowledge knowledge{.noise = history.NoiseVariance()};
  const auto epochs = belief_.Update(history.AllEvidence());
  const std::span<const ArmEpochs> shown = history.arms();
  knowledge.arms.reserve(batch_sizes_.size());
  for (std::size_t i = 0; i < batch_sizes_.size(); ++i) {
    const EpochCostBelief cost = costs[i].value_or(EpochCostBelief{});
    ArmKnowledge arm{.batch_size = batch_sizes_[i],
                     .log_epochs = epochs[i].mean,
                     .log_epochs_variance = epochs[i].variance,
                     .log_epoch_cost = cost.log_cost,
                     .log_epoch_cost_sigma = cost.sigma,
                     .profiled = cost.profiled,
                     .converged = shown[i].converged > 0,
                     .has_results = shown[i].results > 0};
    // A run that was stopped showed that the target needs at least one epoch more.
    if (!arm.converged && shown[i].longest_stop >= 1)
      arm.log_epochs = std::max(arm.log_epochs, std::log(shown[i].longest_stop + 1.0));
    knowledge.arms.push_back(arm);
  }
  knowledge.leader = Leader(knowledge.arms);
  if (knowledge.leader)
    knowledge.leader_cost =
        std::exp(knowledge.arms[*knowledge.leader].log_cost() + knowledge.noise / 2);
  MarkCandidates(shown, octaves_, knowledge.arms);
  return knowledge;
}

}  // namespace zeus
