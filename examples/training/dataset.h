#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeus/base/random.h"

namespace zeus::examples {

// Data that the examples generate. The same stream of random numbers gives the same data.

inline constexpr int kImageSide = 16;
inline constexpr int kDigits = 10;

struct Images {
  std::vector<float> pixels;  // kImageSide * kImageSide for each image, row by row.
  std::vector<std::int64_t> labels;
};

// Renders digits of a seven-segment display, shifted, with varying size and contrast, in heavy
// noise.
Images RenderDigits(std::size_t count, Random random);

inline constexpr int kSequenceLength = 12;
inline constexpr int kLetters = 8;
inline constexpr int kMarker = kLetters;  // The token number after the letters.
inline constexpr int kTokens = kLetters + 1;

struct Sequences {
  std::vector<std::int64_t> tokens;  // kSequenceLength for each sequence.
  std::vector<std::int64_t> labels;
};

// Generates random letters with one marker among them. The label is the letter after the marker.
Sequences WriteSequences(std::size_t count, Random random);

}  // namespace zeus::examples
