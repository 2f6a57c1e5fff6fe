#include "zeus/device/sim/fault.h"

#include <algorithm>
#include <limits>

namespace zeus::sim {

void FaultSchedule::Add(const Fault& fault) {
  if (size_ == faults_.size()) {
    const auto earliest = std::min_element(
        faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) { return a.at < b.at; });
    Remove(static_cast<std::size_t>(earliest - faults_.begin()));
  }
  faults_[size_++] = fault;
}

std::optional<Fault> FaultSchedule::Active(FaultKind kind, Seconds now) const {
  std::optional<Fault> active;
  for (std::size_t i = 0; i < size_; ++i) {
    const Fault& fault = faults_[i];
    if (fault.kind != kind || fault.at > now) continue;
    if (!active || fault.at >= active->at) active = fault;
  }
  return active;
}

bool FaultSchedule::TakeDue(FaultKind kind, Seconds now) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (faults_[i].kind != kind || faults_[i].at > now) continue;
    Remove(i);
    return true;
  }
  return false;
}

Seconds FaultSchedule::NextAfter(Seconds now) const {
  Seconds next(std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < size_; ++i)
    if (faults_[i].at > now) next = std::min(next, faults_[i].at);
  return next;
}

void FaultSchedule::Remove(std::size_t i) {
  std::copy(faults_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
            faults_.begin() + static_cast<std::ptrdiff_t>(size_),
            faults_.begin() + static_cast<std::ptrdiff_t>(i));
  --size_;
}

}  // namespace zeus::sim
