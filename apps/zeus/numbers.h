#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"

// Values on the command line. CLI11's own conversion takes an empty text, "nan", "-1" for an
// unsigned and octal; these take what a person means and name the range otherwise.
namespace zeus::cli {

// A finite decimal number in [min, max].
Validator NumberBetween(double min, double max);

// A whole number in [min, max].
Validator WholeNumberBetween(std::uint64_t min, std::uint64_t max);

// One of these words.
Validator OneOf(std::vector<std::string> words);

// Anything but an empty text: what an unset variable of a shell leaves behind.
Validator NotEmpty();

}  // namespace zeus::cli
