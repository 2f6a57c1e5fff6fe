#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"

// Validators of numbers on the command line. CLI11's own conversion accepts an empty text, "nan",
// "-1" for an unsigned and octal; these accept decimal numbers and name the range otherwise.
namespace zeus::cli {

// Accepts a finite decimal number in [min, max].
Validator NumberBetween(double min, double max);

// Accepts a whole number in [min, max].
Validator WholeNumberBetween(std::uint64_t min, std::uint64_t max);

// Accepts one of these words.
Validator OneOf(std::vector<std::string> words);

// Rejects an empty text, which an unset shell variable leaves behind.
Validator NotEmpty();

}  // namespace zeus::cli
