#include "zeus/session/placeholders.h"

#include <algorithm>
#include <cmath>

namespace zeus {

double ScaledLearningRate(double base, LearningRateScaling scaling, int batch_size,
                          int default_batch_size) {
  const double factor = static_cast<double>(batch_size) / default_batch_size;
  switch (scaling) {
    case LearningRateScaling::kNone:
      return base;
    case LearningRateScaling::kSquareRoot:  // For adaptive optimisers: Adam, AdamW, RMSprop.
      return base * std::sqrt(factor);
    case LearningRateScaling::kLinear:  // For stochastic gradient descent.
      return base * factor;
  }
  return base;
}

std::string Substitute(std::string_view text, const Placeholders& placeholders) {
  std::string result;
  for (;;) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos) return result;
    text.remove_prefix(open);
    const std::size_t close = text.find('}');
    const auto found = close == std::string_view::npos
                           ? placeholders.end()
                           : placeholders.find(text.substr(1, close - 1));
    if (found == placeholders.end()) {
      result += '{';
      text.remove_prefix(1);
    } else {
      result += found->second;
      text.remove_prefix(close + 1);
    }
  }
}

bool Contains(const std::vector<std::string>& words, std::string_view placeholder) {
  const std::string braced = "{" + std::string(placeholder) + "}";
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word.find(braced) != std::string::npos; });
}

}  // namespace zeus
