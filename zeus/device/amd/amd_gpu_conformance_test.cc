#include <memory>

#include "zeus/device/amd/amd_discovery.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/amd/testing/fake_smi.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::testing {
namespace amd_gpu_conformance_test {

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

Result<std::shared_ptr<amd::Smi>> StartRocm(const std::optional<std::string>& /*path*/) {
  return amd::StartRocmSmi(FakeSmi::Rocm());
}

Result<std::shared_ptr<amd::Smi>> StartAmd(const std::optional<std::string>& /*path*/) {
  return amd::StartAmdSmi(FakeSmi::Amd());
}

struct SmiFactory {
  SmiFactory(amd::SmiStarters::Start rocm, amd::SmiStarters::Start amd)
      : starters{.amd_smi = std::move(amd), .rocm_smi = std::move(rocm)} {
    tree.AddCard(0, "0000:03:00.0");
  }

  std::unique_ptr<Gpu> Make() { return FirstGpu(clock, tree, starters); }

  amd::SmiStarters starters;
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

INSTANTIATE_TEST_SUITE_P(
    Amd, GpuConformance,
    ::testing::Values(GpuCaseOf<SysfsFactory>("Sysfs"), GpuCaseOf<SecondDieFactory>("SecondDie"),
                      GpuCaseOf<SmiFactory>("RocmSmi", StartRocm, NotInstalled),
                      GpuCaseOf<SmiFactory>("AmdSmi", NotInstalled, StartAmd)),
    NameOfCase());

}  // namespace amd_gpu_conformance_test
}  // namespace zeus::testing
