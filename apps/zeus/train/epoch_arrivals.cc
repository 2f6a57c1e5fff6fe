#include "apps/zeus/train/epoch_arrivals.h"

#include <utility>

namespace zeus::cli {
namespace {

// Of the mean epoch: what lasts less was no epoch.
constexpr double kLeastShare = 0.05;
// Epochs that last longer than this are not the rest of a lump, however long the others took: the
// first one may contain a compilation.
constexpr Seconds kLongestRest{1.0};
// Who was not stopped looks more often.
constexpr Seconds kBlind{0.2};

}  // namespace

EpochTiming EpochArrivals::Judge(std::size_t epochs, TimePoint now, Seconds blind) {
  const std::size_t before = std::exchange(epochs_, epochs_ + epochs);
  const Seconds lasted = now - std::exchange(last_, now);
  const Seconds mean = Seconds(now - begun_) / static_cast<double>(epochs_);
  if (before > 0 && lasted < kLeastShare * mean && lasted < kLongestRest)
    return EpochTiming::kTooSoon;
  if (epochs > 1 || (blind > kBlind && blind > kLeastShare * mean)) return EpochTiming::kLumped;
  return EpochTiming::kKnown;
}

}  // namespace zeus::cli
