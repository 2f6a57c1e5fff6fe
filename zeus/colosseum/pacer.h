#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"

namespace zeus::colosseum {

// How the answers are shown while they arrive.
enum class Pace {
  kTogether,  // Both grow by the same number of characters: the slower one sets the pace.
  kHeld,      // Nothing is shown before both are complete.
  kRaw,       // As they arrive. Speed may tell who answers.
};
std::optional<Pace> FindPace(std::string_view name);  // "together", "held", "raw"

// An answer as far as it has arrived.
struct Arrival {
  std::size_t characters = 0;
  bool complete = false;
};

// Decides how much of both answers may be shown. With kTogether both show the same number of
// characters until the shorter one is complete. One owner.
class Pacer {
 public:
  // Text that has arrived already is shown at `characters_per_second` at most, except with kRaw.
  Pacer(Pace pace, double characters_per_second)
      : pace_(pace), characters_per_second_(characters_per_second) {}

  // Returns the number of characters of each answer that may be shown now. It never decreases.
  std::array<std::size_t, 2> Release(const std::array<Arrival, 2>& arrivals, TimePoint now);

 private:
  const Pace pace_;
  const double characters_per_second_;
  double shown_ = 0;  // Characters, of each answer that is as long.
  std::optional<TimePoint> at_{};
};

// A text that arrives in pieces, and is cut at characters. Bytes that are not UTF-8, and
// zero bytes, are replaced: they must not travel to clients and databases.
class ArrivingText {
 public:
  // A sequence that a piece breaks off is completed by the next one.
  void Append(std::string_view piece);
  // Nothing comes any more.
  void Finish();

  std::size_t characters() const { return characters_; }
  const std::string& text() const { return text_; }
  // The offset of the byte at which this character begins, for one that is not before the last
  // call's.
  std::size_t ByteOffset(std::size_t character);

 private:
  std::string text_{};
  std::string rest_{};  // The beginning of a sequence.
  std::size_t characters_ = 0;
  std::size_t found_character_ = 0;  // The result of the last ByteOffset().
  std::size_t found_byte_ = 0;
};

}  // namespace zeus::colosseum
