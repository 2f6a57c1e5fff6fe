#include "zeus/inference/server/answer_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace zeus::inference {
namespace {

constexpr std::array<std::string_view, 64> kWords = {
    "the",  "energy", "of",     "a",     "model", "is",    "and",   "to",    "in",    "power",
    "that", "it",     "for",    "time",  "as",    "with",  "on",    "light", "be",    "by",
    "this", "water",  "we",     "from",  "or",    "can",   "which", "one",   "river", "an",
    "all",  "small",  "there",  "their", "more",  "has",   "when",  "wind",  "if",    "will",
    "each", "about",  "how",    "up",    "out",   "them",  "then",  "she",   "many",  "some",
    "so",   "these",  "would",  "other", "into",  "stone", "sun",   "field", "two",   "write",
    "go",   "see",    "number", "no"};

// A quick hash of seed and position: words need no better randomness (SplitMix64).
std::uint64_t Scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Each piece is a word with the blanks before it.
std::vector<std::string> SplitIntoWords(std::string_view text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t word = std::min(text.find_first_not_of(" \n\t\r", begin), text.size());
    const std::size_t end = std::min(text.find_first_of(" \n\t\r", word), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace

AnswerSequence::AnswerSequence(const CompletionRequest& request, double mean_tokens, Random random)
    : seed_(random.NextBits()) {
  constexpr double kLongest = 1e6;
  const double drawn = -mean_tokens * std::log(1.0 - random.Uniform());
  tokens_ = std::max(request.min_tokens, 1 + static_cast<unsigned>(std::min(drawn, kLongest)));
  if (request.ignore_eos) tokens_ = request.max_tokens.value_or(tokens_);
  Limit(request);
  if (!request.stop.empty()) StopAt(request.stop);
}

AnswerSequence::AnswerSequence(const CompletionRequest& request, std::string_view text)
    : words_(SplitIntoWords(text)) {
  if (words_.empty()) words_.emplace_back();
  tokens_ = static_cast<unsigned>(words_.size());
  Limit(request);
}

void AnswerSequence::Limit(const CompletionRequest& request) {
  if (!request.max_tokens || tokens_ < *request.max_tokens) return;
  tokens_ = *request.max_tokens;
  finish_reason_ = "length";
}

void AnswerSequence::StopAt(const std::vector<std::string>& stops) {
  std::string text;
  for (unsigned number = 1; number <= tokens_; ++number) {
    text += Token(number);
    std::size_t found = std::string::npos;
    for (const std::string& stop : stops) found = std::min(found, text.find(stop));
    if (found == std::string::npos) continue;
    // The text of the stop itself is not sent. Where it began in earlier tokens, those lose it.
    std::vector<std::string> words;
    std::size_t kept = 0;
    for (unsigned i = 1; i <= number; ++i) {
      const std::string word = Token(i);
      words.push_back(kept < found ? word.substr(0, found - kept) : "");
      kept += word.size();
    }
    words_ = std::move(words);
    tokens_ = number;
    finish_reason_ = "stop";
    return;
  }
}

std::string AnswerSequence::Token(unsigned number) const {
  if (!words_.empty()) return words_.at(number - 1);
  const std::string_view word = kWords.at(Scramble(seed_ ^ number) % kWords.size());
  return number == 1 ? std::string(word) : " " + std::string(word);
}

}  // namespace zeus::inference
