#include "zeus/live/power_archive.h"

#include <algorithm>

namespace zeus::live {

std::optional<std::size_t> PowerArchive::LevelOf(std::int64_t step) {
  for (std::size_t level = 0; level < kLevels.size(); ++level)
    if (kLevels[level].step == step) return level;
  return std::nullopt;
}

PowerArchive::PowerArchive(std::size_t devices) : devices_(devices) {
  for (auto& rings : devices_)
    for (std::size_t level = 0; level < kLevels.size(); ++level)
      rings[level].bins.resize(kLevels[level].bins);
}

void PowerArchive::Add(std::size_t device, std::int64_t second, Watts mean, bool idle) {
  auto& rings = devices_[device];
  if (second < 0 || second <= rings.front().newest) return;
  for (std::size_t level = 0; level < kLevels.size(); ++level)
    AddTo(rings[level], second / kLevels[level].step, static_cast<float>(mean.value()), idle);
}

void PowerArchive::AddTo(Ring& ring, std::int64_t step, float watts, bool idle) {
  const auto size = static_cast<std::int64_t>(ring.bins.size());
  // Steps without a value in between, which is at most all of them, are forgotten.
  for (std::int64_t empty = std::max(ring.newest + 1, step - size + 1); empty <= step; ++empty)
    ring.bins[static_cast<std::size_t>(empty % size)] = {};
  ring.newest = std::max(ring.newest, step);
  PowerBin& bin = ring.bins[static_cast<std::size_t>(step % size)];
  bin.lowest = bin.seconds == 0 ? watts : std::min(bin.lowest, watts);
  bin.highest = bin.seconds == 0 ? watts : std::max(bin.highest, watts);
  ++bin.seconds;
  const auto count = static_cast<float>(bin.seconds);
  bin.mean += (watts - bin.mean) / count;
  bin.idle += ((idle ? watts : 0.0F) - bin.idle) / count;
}

std::vector<PowerBin> PowerArchive::Read(std::size_t device, std::size_t level, std::int64_t first,
                                         std::int64_t last) const {
  const Ring& ring = devices_[device][level];
  const auto size = static_cast<std::int64_t>(ring.bins.size());
  std::vector<PowerBin> bins(static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0)));
  for (std::int64_t step = std::max(first, ring.newest - size + 1);
       step < last && step <= ring.newest; ++step)
    if (step >= 0)
      bins[static_cast<std::size_t>(step - first)] =
          ring.bins[static_cast<std::size_t>(step % size)];
  return bins;
}

}  // namespace zeus::live
