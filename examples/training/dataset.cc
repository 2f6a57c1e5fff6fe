#include "examples/training/dataset.h"

#include <array>
#include <cmath>

namespace zeus::examples {
namespace {

// Segments a to g of each digit, bit 0 is a.
constexpr std::array<unsigned, kDigits> kSegments = {0x3f, 0x06, 0x5b, 0x4f, 0x66,
                                                     0x6d, 0x7d, 0x07, 0x7f, 0x6f};

// Ends of the segments on a grid one wide and two high.
struct Line {
  int x0, y0, x1, y1;
};
constexpr std::array<Line, 7> kLines = {{{0, 0, 1, 0},
                                         {1, 0, 1, 1},
                                         {1, 1, 1, 2},
                                         {0, 2, 1, 2},
                                         {0, 1, 0, 2},
                                         {0, 0, 0, 1},
                                         {0, 1, 1, 1}}};

constexpr double kNoise = 0.25;

struct Placement {
  double left, top, width, height, contrast;
};

Placement DrawPlacement(Random& random) {
  const double height = random.Uniform(9, 12);
  const double width = random.Uniform(4, 7);
  return {.left = random.Uniform(3, kImageSide - 4 - width),
          .top = random.Uniform(1, kImageSide - 2 - height),
          .width = width,
          .height = height,
          .contrast = random.Uniform(0.6, 1.0)};
}

void DrawLine(float* image, const Line& line, const Placement& place) {
  constexpr int kDots = 24;
  for (int dot = 0; dot <= kDots; ++dot) {
    const double along = static_cast<double>(dot) / kDots;
    const double x = place.left + place.width * std::lerp(line.x0, line.x1, along);
    const double y = place.top + place.height * std::lerp(line.y0, line.y1, along) / 2;
    image[std::lround(y) * kImageSide + std::lround(x)] = static_cast<float>(place.contrast);
  }
}

}  // namespace

Images RenderDigits(std::size_t count, Random random) {
  constexpr std::size_t kPixels = kImageSide * kImageSide;
  Images images{.pixels = std::vector<float>(count * kPixels),
                .labels = std::vector<std::int64_t>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t digit = random.Below(kDigits);
    const Placement place = DrawPlacement(random);
    float* const image = images.pixels.data() + i * kPixels;
    for (std::size_t segment = 0; segment < kLines.size(); ++segment)
      if ((kSegments[digit] >> segment & 1U) != 0) DrawLine(image, kLines[segment], place);
    for (std::size_t pixel = 0; pixel < kPixels; ++pixel)
      image[pixel] += static_cast<float>(kNoise * random.Normal());
    images.labels[i] = static_cast<std::int64_t>(digit);
  }
  return images;
}

Sequences WriteSequences(std::size_t count, Random random) {
  Sequences sequences{.tokens = {}, .labels = {}};
  sequences.tokens.reserve(count * kSequenceLength);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = sequences.tokens.size();
    for (int position = 0; position < kSequenceLength; ++position)
      sequences.tokens.push_back(static_cast<std::int64_t>(random.Below(kLetters)));
    const std::size_t marker = begin + random.Below(kSequenceLength - 1);
    sequences.tokens[marker] = kMarker;
    sequences.labels.push_back(sequences.tokens[marker + 1]);
  }
  return sequences;
}

}  // namespace zeus::examples
