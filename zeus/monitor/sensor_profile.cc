#include "zeus/monitor/sensor_profile.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/text.h"

namespace zeus {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;

// A board's error is drawn once and stays; ± half a width, all values alike, has a standard
// deviation of the half width over √3.
constexpr double kUniformSigma = 0.57735026918962576;
constexpr double kServerGainSigma = 0.05 * kUniformSigma;  // NVIDIA promises ±5 %.
constexpr Watts kServerOffsetSigma = 1_W * kUniformSigma;
// Desktop and workstation boards that were compared with an external meter were wrong by 6 % rms in
// steady state, one of them by 11 %.
constexpr double kDesktopGainSigma = 0.06;

struct SensorKind {
  Seconds counter_period;
  Seconds power_period;
  Seconds power_window;
};
constexpr SensorKind kVoltaKind{20ms, 20ms, 10ms};    // Pascal likewise, which has no counter.
constexpr SensorKind kGa100Kind{100ms, 100ms, 25ms};  // Also for Hopper.
constexpr SensorKind kFullCoverageKind{100ms, 100ms, 100ms};  // Turing, other Ampere, Ada.

// Words of a model's name; '?' stands for any one character. The first row that fits counts.
struct NamePattern {
  std::string_view words;
  SensorKind kind;
  double gain_sigma = kServerGainSigma;
};
constexpr NamePattern kNvidiaModels[] = {
    // These are Pascal and Volta.
    {"p100", kVoltaKind},
    {"p40", kVoltaKind},
    {"p4", kVoltaKind},
    {"p6", kVoltaKind},
    {"v100", kVoltaKind},
    {"v100s", kVoltaKind},
    {"gv100", kVoltaKind},
    {"gp100", kVoltaKind},
    {"titan v", kVoltaKind},
    {"titan xp", kVoltaKind},
    {"titan x pascal", kVoltaKind},
    {"quadro p????", kVoltaKind},
    {"quadro p???", kVoltaKind},
    {"gtx 10??", kVoltaKind},
    {"gt 10??", kVoltaKind},
    // These are GA100 and Hopper.
    {"a100", kGa100Kind},
    {"a100x", kGa100Kind},
    {"a800", kGa100Kind},
    {"a30", kGa100Kind},
    {"a30x", kGa100Kind},
    {"h100", kGa100Kind},
    {"h200", kGa100Kind},
    {"h800", kGa100Kind},
    {"h20", kGa100Kind},
    {"gh200", kGa100Kind},
    // Turing, Ampere other than GA100, Ada. Quadro RTX 8000 are Turing and yet were seen to
    // average over 20 ms only.
    {"quadro rtx 8000", {100ms, 100ms, 20ms}, kDesktopGainSigma},
    {"t4", kFullCoverageKind},
    {"t4g", kFullCoverageKind},
    {"a40", kFullCoverageKind},
    {"a10", kFullCoverageKind},
    {"a10g", kFullCoverageKind},
    {"a10m", kFullCoverageKind},
    {"a16", kFullCoverageKind},
    {"a2", kFullCoverageKind},
    {"l4", kFullCoverageKind},
    {"l2", kFullCoverageKind},
    {"l20", kFullCoverageKind},
    {"l40", kFullCoverageKind},
    {"l40s", kFullCoverageKind},
    {"titan rtx", kFullCoverageKind, kDesktopGainSigma},
    {"quadro rtx", kFullCoverageKind, kDesktopGainSigma},
    {"t??00", kFullCoverageKind, kDesktopGainSigma},
    {"t?00", kFullCoverageKind, kDesktopGainSigma},
    {"gtx 16??", kFullCoverageKind, kDesktopGainSigma},
    {"rtx 20??", kFullCoverageKind, kDesktopGainSigma},
    {"rtx 30??", kFullCoverageKind, kDesktopGainSigma},
    {"rtx 40??", kFullCoverageKind, kDesktopGainSigma},
    {"rtx a????", kFullCoverageKind, kDesktopGainSigma},
    {"rtx a???", kFullCoverageKind, kDesktopGainSigma},
    {"rtx ???? ada", kFullCoverageKind, kDesktopGainSigma},
};

bool IsWordCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// "Tesla V100-PCIE-32GB" has the words tesla, v100, pcie, 32gb.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : LowerCase(name)) {
    const bool part = IsWordCharacter(c) || c == '?';
    if (part && !inside) words.emplace_back();
    if (part) words.back().push_back(c);
    inside = part;
  }
  return words;
}

bool Fits(std::string_view pattern, std::string_view word) {
  return std::ranges::equal(pattern, word, [](char p, char w) { return p == '?' || p == w; });
}

bool Contains(std::span<const std::string> name, std::span<const std::string> pattern) {
  const auto fits = [](const std::string& w, const std::string& p) { return Fits(p, w); };
  return !std::ranges::search(name, pattern, fits).empty();
}

SensorProfile Profile(const SensorKind& kind, double gain_sigma) {
  SensorProfile profile;
  profile.counter_period = kind.counter_period;
  profile.power_period = kind.power_period;
  profile.power_window = kind.power_window;
  profile.gain_sigma = gain_sigma;
  profile.offset_sigma = kServerOffsetSigma;
  return profile;
}

SensorProfile NvidiaProfile(std::string_view model) {
  const std::vector<std::string> name = Words(model);
  for (const NamePattern& row : kNvidiaModels)
    if (Contains(name, Words(row.words))) return Profile(row.kind, row.gain_sigma);
  return Profile(kGa100Kind, kDesktopGainSigma);
}

}  // namespace

SensorProfile PriorProfile(const GpuIdentity& gpu) {
  if (gpu.vendor == Vendor::kNvidia) return NvidiaProfile(gpu.model);
  // AMD and Intel: firmware accumulates every millisecond, and drivers pass that on through a
  // cache. No comparison with an external meter has been published.
  return Profile({10ms, 100ms, 100ms}, kDesktopGainSigma);
}

SensorProfile PriorCpuProfile() {
  SensorProfile profile;
  profile.counter_period = 1ms;
  profile.power_period = 1ms;
  profile.power_window = 1ms;
  // Server parts measure and agree with meters to a few percent; older client parts only model.
  profile.gain_sigma = 0.03;
  profile.offset_sigma = 1_W;
  return profile;
}

SensorProfile PriorRailProfile() {
  SensorProfile profile;
  // The INA3221 converts its channels in turn, averaging as the board's firmware configured it.
  profile.counter_period = 100ms;
  profile.power_period = 100ms;
  profile.power_window = 100ms;
  profile.gain_sigma = 0.02;  // Shunt resistors of 1 %, and the converter.
  profile.offset_sigma = Watts(0.05);
  return profile;
}

}  // namespace zeus
