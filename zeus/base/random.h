#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace zeus {

// A seeded source of randomness with the same numbers on every platform (the distributions of the
// standard library differ between implementations). xoshiro256++, seeded through SplitMix64.
// Trivially copyable, so that it can live in shared memory and in saved state. One owner.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  // An independent stream for a named purpose: adding draws to one stream does not shift another.
  Random Fork(std::string_view purpose) const;

  std::uint64_t NextBits();

  double Uniform();                          // [0, 1)
  double Uniform(double low, double high);   // [low, high)
  double Normal();                           // mean 0, variance 1
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), bound > 0, without modulo bias

  // For algorithms of the standard library that take an engine (std::shuffle).
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return NextBits(); }

 private:
  std::array<std::uint64_t, 4> state_;
};

// A random number of the operating system, for seeds and generated names.
using Entropy = std::function<std::uint64_t()>;

// The same with 53 bits, which programs whose numbers are doubles read without loss.
std::uint64_t SystemEntropy();

}  // namespace zeus
