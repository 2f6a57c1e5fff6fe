#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zeus {

// How the learning rate follows the batch size.
enum class LearningRateScaling { kNone, kSquareRoot, kLinear };

// The learning rate for a batch size, when `base` is that of the default one.
double ScaledLearningRate(double base, LearningRateScaling scaling, int batch_size,
                          int default_batch_size);

// Names and values: {"batch_size", "64"}.
using Placeholders = std::map<std::string, std::string, std::less<>>;

// Replaces "{batch_size}" by "64". Braces around other text are left alone: they belong to the
// command.
std::string Substitute(std::string_view text, const Placeholders& placeholders);

// Whether any of the words contains the placeholder, given without braces.
bool Contains(const std::vector<std::string>& words, std::string_view placeholder);

}  // namespace zeus
