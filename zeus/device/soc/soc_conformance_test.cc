#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "zeus/device/soc/intel_gpu.h"
#include "zeus/device/soc/soc_discovery.h"
#include "zeus/device/soc/testing/soc_tree.h"
#include "zeus/device/testing/cpu_conformance.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::testing {
namespace soc_conformance_test {

// A Grace module, which has power meters only.
class GraceHarness final : public CpuHarness {
 public:
  GraceHarness() {
    tree_.AddPowerMeter("hwmon2", "Grace Power Socket 1", "200000000");
    tree_.AddPowerMeter("hwmon3", "CPU Power Socket 1", "120000000");
    tree_.AddPowerMeter("hwmon4", "SysIO Power Socket 1", "30000000");
    found_ = DiscoverSoc(tree_.surroundings()).value();
  }
  CpuPackage& package() override { return *found_.cpus.at(0); }
  void Use(Joules /*energy*/) override {}
  void UseDram(Joules /*energy*/) override {}
  void Break() override { tree_.AddPowerMeter("hwmon3", "CPU Power Socket 1", ""); }

 private:
  soc::testing::SocTree tree_;
  Findings found_;
};

class IntelGpuFactory {
 public:
  std::unique_ptr<Gpu> Make() {
    tree_.AddCard(0, "0000:3B:00.0");
    tree_.AddCardHwmon(0, "name", "i915");
    tree_.AddCardHwmon(0, "energy1_input", std::to_string(microjoules_));
    tree_.AddCardHwmon(0, "power1_max", "190000000");
    tree_.AddCardHwmon(0, "power1_rated_max", "225000000");
    tree_.AddCardHwmon(0, "temp1_input", "51000");
    Findings findings;
    soc::FindIntelGpus(tree_.surroundings(), findings);
    return std::move(findings.gpus.at(0));
  }
  void Advance(Seconds by) {
    microjoules_ += static_cast<std::uint64_t>((Watts(100) * by).ToMicro());
    tree_.AddCardHwmon(0, "energy1_input", std::to_string(microjoules_));
  }

 private:
  soc::testing::SocTree tree_;
  std::uint64_t microjoules_ = 1'000'000;
};

INSTANTIATE_TEST_SUITE_P(Soc, CpuConformance, ::testing::Values(CpuCaseOf<GraceHarness>("Grace")),
                         NameOfCase());
INSTANTIATE_TEST_SUITE_P(Intel, GpuConformance,
                         ::testing::Values(GpuCaseOf<IntelGpuFactory>("Hwmon")), NameOfCase());

}  // namespace soc_conformance_test
}  // namespace zeus::testing
