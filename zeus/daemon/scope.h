#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::daemon {

// The rights of a caller. The first three are the reference's API groups.
enum class Scope : std::uint8_t {
  kGpuRead,
  kGpuControl,
  kCpuRead,
  kCpuControl,
  kJob,     // Register jobs.
  kBudget,  // Set caps of the class "site".
  kAdmin,   // Everything, on everybody's leases.
};

// "gpu-read", "gpu-control", "cpu-read", "cpu-control", "job", "budget", "admin"
std::string_view Name(Scope scope);
// kInvalidArgument quotes the name and lists the scopes there are.
Result<Scope> ParseScope(std::string_view name);

// A set of scopes. "admin" contains all others.
class ScopeSet {
 public:
  constexpr ScopeSet() = default;
  constexpr ScopeSet(std::initializer_list<Scope> scopes) {
    for (const Scope scope : scopes) Add(scope);
  }

  constexpr void Add(Scope scope) { bits_ |= Bit(scope); }
  constexpr void Add(ScopeSet others) { bits_ |= others.bits_; }
  constexpr bool Has(Scope scope) const { return (bits_ & (Bit(scope) | Bit(Scope::kAdmin))) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // Whether a knob may be turned with them.
  constexpr bool controls() const {
    return Has(Scope::kGpuControl) || Has(Scope::kCpuControl) || Has(Scope::kBudget);
  }
  // In the order of the enum, those that "admin" contains included.
  std::vector<std::string> names() const;

  friend constexpr bool operator==(ScopeSet, ScopeSet) = default;

 private:
  static constexpr std::uint8_t Bit(Scope scope) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(scope));
  }
  std::uint8_t bits_ = 0;
};

}  // namespace zeus::daemon
