#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/units.h"

namespace zeus::live {

// The power of one device during one step of an archive.
struct PowerBin {
  float mean = 0;    // Watts; over the seconds that are known.
  float lowest = 0;  // A mean of a single second, as is `highest`.
  float highest = 0;
  float idle = 0;             // Part of `mean` that was drawn in seconds without work.
  std::uint16_t seconds = 0;  // Seconds that are known; 0: nothing is.
};

// Power over time in bounded memory: the last ten minutes by the second, two hours by ten seconds
// and two days by the minute. A step of which nothing is known stays empty: nothing is guessed.
// One owner.
class PowerArchive {
 public:
  struct Level {
    std::int64_t step;  // Seconds.
    std::size_t bins;
  };
  static constexpr std::array<Level, 3> kLevels{
      {{.step = 1, .bins = 600}, {.step = 10, .bins = 720}, {.step = 60, .bins = 2880}}};
  // The level whose steps have this length.
  static std::optional<std::size_t> LevelOf(std::int64_t step);

  explicit PowerArchive(std::size_t devices);

  // The mean power of a device from `second` to the next. Seconds of a device ascend; one that is
  // not newer than the last is ignored.
  void Add(std::size_t device, std::int64_t second, Watts mean, bool idle);

  // Steps [first, last) of a level, where step n begins at second n * Level::step. What is older
  // than the archive, or not known, is empty.
  std::vector<PowerBin> Read(std::size_t device, std::size_t level, std::int64_t first,
                             std::int64_t last) const;

 private:
  struct Ring {
    std::vector<PowerBin> bins{};
    std::int64_t newest = -1;  // Step number; -1: nothing was added.
  };

  static void AddTo(Ring& ring, std::int64_t step, float watts, bool idle);

  std::vector<std::array<Ring, kLevels.size()>> devices_{};
};

}  // namespace zeus::live
