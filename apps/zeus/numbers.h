#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

// Numbers on the command line. CLI11's own conversion takes an empty text, "nan", "-1" for an
// unsigned and octal; these take what a person means and name the range otherwise.
namespace zeus::cli {

// A finite decimal number in [min, max].
CLI::Validator NumberBetween(double min, double max);

// A whole number in [min, max].
CLI::Validator WholeNumberBetween(std::uint64_t min, std::uint64_t max);

// Anything but an empty text: what an unset variable of a shell leaves behind.
CLI::Validator NotEmpty();

}  // namespace zeus::cli
