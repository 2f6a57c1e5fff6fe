#include "zeus/colosseum/pacer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace zeus::colosseum {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The length of the sequence that begins with this byte; 0 when none does.
std::size_t LengthOfSequence(char byte) {
  const auto first = static_cast<unsigned char>(byte);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// Whether two bytes may begin a sequence: excludes overlong forms, surrogates and what is beyond
// Unicode.
bool MayFollow(char first_byte, char second_byte) {
  const auto first = static_cast<unsigned char>(first_byte);
  const auto second = static_cast<unsigned char>(second_byte);
  if (!IsContinuation(second_byte)) return false;
  if (first == 0xE0) return second >= 0xA0;
  if (first == 0xED) return second < 0xA0;
  if (first == 0xF0) return second >= 0x90;
  if (first == 0xF4) return second < 0x90;
  return true;
}

// How many bytes at the beginning of the text belong to one sequence, and whether it is whole.
struct Sequence {
  std::size_t bytes = 1;
  bool valid = false;
  bool unfinished = false;
};
Sequence ReadSequence(std::string_view text) {
  const std::size_t length = LengthOfSequence(text[0]);
  if (length == 0 || text[0] == '\0') return {};  // Databases hold no zero bytes.
  std::size_t have = 1;
  while (have < length && have < text.size() &&
         (have == 1 ? MayFollow(text[0], text[1]) : IsContinuation(text[have])))
    ++have;
  if (have == length) return {.bytes = length, .valid = true};
  return {.bytes = have, .unfinished = have == text.size()};
}

}  // namespace

std::optional<Pace> FindPace(std::string_view name) {
  if (name == "together") return Pace::kTogether;
  if (name == "held") return Pace::kHeld;
  if (name == "raw") return Pace::kRaw;
  return std::nullopt;
}

std::array<std::size_t, 2> Pacer::Release(const std::array<Arrival, 2>& arrivals, TimePoint now) {
  if (pace_ == Pace::kRaw) return {arrivals[0].characters, arrivals[1].characters};
  const bool held = pace_ == Pace::kHeld && !(arrivals[0].complete && arrivals[1].complete);
  std::size_t most = held ? 0 : kNoLimit;
  for (const Arrival& arrival : arrivals)
    if (!arrival.complete) most = std::min(most, arrival.characters);
  const std::size_t longest = std::max(arrivals[0].characters, arrivals[1].characters);
  // Time in which there was nothing to show gives no credit.
  const Seconds passed = at_ ? now - *at_ : Seconds(0);
  at_ = now;
  shown_ = std::max(shown_, std::min(shown_ + passed.count() * characters_per_second_,
                                     static_cast<double>(std::min(most, longest))));
  const auto shown = static_cast<std::size_t>(shown_);
  return {std::min(shown, arrivals[0].characters), std::min(shown, arrivals[1].characters)};
}

void ArrivingText::Append(std::string_view piece) {
  std::string joined;
  if (!rest_.empty()) {
    joined = std::exchange(rest_, {}).append(piece);
    piece = joined;
  }
  while (!piece.empty()) {
    const Sequence sequence = ReadSequence(piece);
    if (sequence.unfinished) {
      rest_ = piece;
      return;
    }
    text_ += sequence.valid ? piece.substr(0, sequence.bytes) : kReplacement;
    ++characters_;
    piece.remove_prefix(sequence.bytes);
  }
}

void ArrivingText::Finish() {
  if (rest_.empty()) return;
  rest_.clear();
  text_ += kReplacement;
  ++characters_;
}

std::size_t ArrivingText::ByteOffset(std::size_t character) {
  while (found_character_ < character && found_byte_ < text_.size()) {
    ++found_byte_;
    while (found_byte_ < text_.size() && IsContinuation(text_[found_byte_])) ++found_byte_;
    ++found_character_;
  }
  return found_byte_;
}

}  // namespace zeus::colosseum
