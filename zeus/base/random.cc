#include "zeus/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

namespace zeus {
namespace {

std::uint64_t SplitMix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Random::Random(std::uint64_t seed) : state_{} {
  for (std::uint64_t& word : state_) word = SplitMix64(seed);
}

Random Random::Fork(std::string_view purpose) const {
  return Random(state_[0] ^ std::rotl(state_[2], 17) ^ Fnv1a(purpose));
}

std::uint64_t Random::NextBits() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::Uniform() { return static_cast<double>(NextBits() >> 11) * 0x1.0p-53; }

double Random::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

double Random::Normal() {
  // Box-Muller without a cached second value: one draw always costs two words, so that streams
  // stay aligned when code is reordered.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

std::uint64_t Random::Below(std::uint64_t bound) {
  const std::uint64_t biased = (0 - bound) % bound;
  std::uint64_t bits = NextBits();
  while (bits < biased) bits = NextBits();
  return bits % bound;
}

std::uint64_t SystemEntropy() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32U) | device()) >> 11U;
}

}  // namespace zeus
