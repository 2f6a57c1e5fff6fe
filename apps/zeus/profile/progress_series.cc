#include "apps/zeus/profile/progress_series.h"

#include <algorithm>
#include <cmath>

namespace zeus::cli {

void ProgressSeries::Observe(TimePoint when, double count) {
  const bool first = !last_count_;
  const double before = last_count_.value_or(count);
  last_count_ = count;
  if (!first && count == before) return;
  if (!first) total_ += count > before ? count - before : count;
  // Lines that arrive together were not made together; the last one is the freshest.
  if (!changes_.empty() && changes_.back().when >= when) {
    changes_.back().total = total_;
  } else {
    changes_.push_back({when, total_});
  }
}

std::optional<StepRate> ProgressSeries::Between(TimePoint begin, TimePoint end) const {
  const auto first = std::ranges::lower_bound(changes_, begin, {}, &Change::when);
  const auto after = std::ranges::upper_bound(changes_, end, {}, &Change::when);
  if (after - first < 2) return std::nullopt;
  const auto last = after - 1;
  const double steps = last->total - first->total;
  const Seconds time = last->when - first->when;
  if (steps <= 0) return std::nullopt;

  const Seconds per_step = time / steps;
  double squares = 0;  // Of what each interval took longer or shorter than its steps should.
  for (auto change = first + 1; change <= last; ++change) {
    const auto& before = *(change - 1);
    const Seconds excess = change->when - before.when - per_step * (change->total - before.total);
    squares += excess.count() * excess.count();
  }
  const auto intervals = static_cast<double>(last - first);
  const double scatter =
      intervals > 1 ? squares * intervals / (intervals - 1) : time.count() * time.count() / 12;
  const double variance = scatter + 2 * stamp_sigma_.count() * stamp_sigma_.count();
  return StepRate{.steps = (end - begin) / per_step,
                  .time_per_step = per_step,
                  .sigma = Seconds(std::sqrt(variance) / steps)};
}

void ProgressSeries::ForgetBefore(TimePoint when) {
  const auto keep = std::ranges::lower_bound(changes_, when, {}, &Change::when);
  changes_.erase(changes_.begin(), keep);
}

}  // namespace zeus::cli
