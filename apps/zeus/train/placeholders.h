#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zeus::cli {

enum class LearningRateScaling { kNone, kSquareRoot, kLinear };

// The learning rate of a batch size, when `base` is that of the default one.
double ScaledLearningRate(double base, LearningRateScaling scaling, int batch_size,
                          int default_batch_size);

// What stands for what: {"batch_size", "64"}.
using Placeholders = std::map<std::string, std::string, std::less<>>;

// "{batch_size}" becomes "64". Braces around anything that is not a placeholder stay: they are the
// command's own.
std::string Substitute(std::string_view text, const Placeholders& placeholders);

bool Contains(const std::vector<std::string>& words, std::string_view placeholder);

}  // namespace zeus::cli
