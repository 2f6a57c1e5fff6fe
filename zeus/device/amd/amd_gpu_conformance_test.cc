#include <memory>

#include "zeus/device/amd/amd_discovery.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/amd/testing/fake_smi.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::testing {
namespace {

std::unique_ptr<Gpu> FirstGpu(Clock& clock, const AmdgpuTree& tree,
                              const amd::SmiStarters& starters) {
  auto findings = amd::Discover({.clock = clock,
                                 .sysfs = tree.sysfs(),
                                 .procfs = tree.sysfs(),
                                 .environment = [](const std::string&) { return std::nullopt; }},
                                starters);
  return std::move(findings.value().gpus.at(0));
}

Result<std::shared_ptr<amd::Smi>> NotInstalled(const std::optional<std::string>& /*path*/) {
  return Error{ErrorCode::kNotFound, "not installed"};
}

struct SysfsFactory {
  SysfsFactory() { tree.AddCard(0, "0000:03:00.0"); }

  std::unique_ptr<Gpu> Make() {
    return FirstGpu(clock, tree, {.amd_smi = NotInstalled, .rocm_smi = NotInstalled});
  }
  void Advance(Seconds by) {
    clock.Advance(by);
    tree.Advance(0, by);
  }

  VirtualClock clock;
  AmdgpuTree tree;
};

struct RocmSmiFactory {
  RocmSmiFactory() { tree.AddCard(0, "0000:03:00.0"); }

  std::unique_ptr<Gpu> Make() {
    const auto start = [](const auto&) { return amd::StartRocmSmi(FakeSmi::Rocm()); };
    return FirstGpu(clock, tree, {.amd_smi = NotInstalled, .rocm_smi = start});
  }

  VirtualClock clock;
  AmdgpuTree tree;
  FakeSmi fake{{FakeSmi::FakeBoard{}}};
};

struct AmdSmiFactory {
  AmdSmiFactory() { tree.AddCard(0, "0000:03:00.0"); }

  std::unique_ptr<Gpu> Make() {
    const auto start = [](const auto&) { return amd::StartAmdSmi(FakeSmi::Amd()); };
    return FirstGpu(clock, tree, {.amd_smi = start, .rocm_smi = NotInstalled});
  }

  VirtualClock clock;
  AmdgpuTree tree;
  FakeSmi fake{{FakeSmi::FakeBoard{}}};
};

struct SecondDieFactory {
  SecondDieFactory() {
    tree.AddCard(0, "0000:03:00.0");
    tree.MakeSecondDie(0);
  }

  std::unique_ptr<Gpu> Make() {
    return FirstGpu(clock, tree, {.amd_smi = NotInstalled, .rocm_smi = NotInstalled});
  }

  VirtualClock clock;
  AmdgpuTree tree;
};

INSTANTIATE_TYPED_TEST_SUITE_P(AmdSysfs, GpuConformance, SysfsFactory);
INSTANTIATE_TYPED_TEST_SUITE_P(RocmSmi, GpuConformance, RocmSmiFactory);
INSTANTIATE_TYPED_TEST_SUITE_P(AmdSmi, GpuConformance, AmdSmiFactory);
INSTANTIATE_TYPED_TEST_SUITE_P(AmdSecondDie, GpuConformance, SecondDieFactory);

}  // namespace
}  // namespace zeus::testing
