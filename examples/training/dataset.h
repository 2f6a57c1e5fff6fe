#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeus/base/random.h"

namespace zeus::examples {

// Data that the examples make themselves: the same from the same stream of random numbers.

inline constexpr int kImageSide = 16;
inline constexpr int kDigits = 10;

struct Images {
  std::vector<float> pixels;  // kImageSide * kImageSide for each, row by row.
  std::vector<std::int64_t> labels;
};

// Digits of a seven-segment display, shifted, of varying size and contrast, in heavy noise.
Images RenderDigits(std::size_t count, Random random);

inline constexpr int kSequenceLength = 12;
inline constexpr int kLetters = 8;
inline constexpr int kMarker = kLetters;  // The token after the letters.
inline constexpr int kTokens = kLetters + 1;

struct Sequences {
  std::vector<std::int64_t> tokens;  // kSequenceLength for each.
  std::vector<std::int64_t> labels;
};

// Random letters with one marker among them. The label is the letter that follows the marker.
Sequences WriteSequences(std::size_t count, Random random);

}  // namespace zeus::examples
