#include "zeus/device/amd/amd_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/amd/testing/fake_smi.h"
#include "zeus/device/testing/environment.h"

namespace zeus {
namespace amd_discovery_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::zeus::testing::AmdgpuTree;
using ::zeus::testing::FakeSmi;
using namespace zeus::literals;

Result<std::shared_ptr<amd::Smi>> NotInstalled(const std::optional<std::string>& path) {
  return Error{ErrorCode::kNotFound, path.value_or("the library") + " not found"};
}

class AmdDiscoveryTest : public ::testing::Test {
 protected:
  Result<Findings> Discover() {
    return amd::Discover({.clock = clock_,
                          .sysfs = tree_.sysfs(),
                          .procfs = proc_.path(),
                          .first_gpu_index = first_gpu_index_,
                          .environment = zeus::testing::EnvironmentOf(environment_)},
                         starters_);
  }

  // PCI addresses of what was found, in order.
  std::vector<std::string> Addresses() {
    const auto findings = Discover().value();
    std::vector<std::string> addresses;
    for (const auto& gpu : findings.gpus) addresses.push_back(gpu->identity().pci_address);
    return addresses;
  }

  static const Absence* Find(const Findings& findings, std::string_view what) {
    for (const Absence& absence : findings.absent) {
      if (absence.what == what) return &absence;
    }
    return nullptr;
  }

  VirtualClock clock_;
  AmdgpuTree tree_;
  zeus::testing::TemporaryDirectory proc_;
  unsigned first_gpu_index_ = 0;
  zeus::testing::Variables environment_;
  amd::SmiStarters starters_{.amd_smi = NotInstalled, .rocm_smi = NotInstalled};
};

TEST_F(AmdDiscoveryTest, AMachineWithoutAmdGpusHasOneReason) {
  const auto findings = Discover().value();
  EXPECT_THAT(findings.gpus, IsEmpty());
  ASSERT_EQ(findings.absent.size(), 1U);
  EXPECT_EQ(findings.absent[0].what, "AMD GPUs");
  EXPECT_THAT(findings.absent[0].reason, HasSubstr("class/drm"));
}

TEST_F(AmdDiscoveryTest, WithoutLibrariesSysfsServes) {
  tree_.AddCard(0, "0000:03:00.0");
  const auto findings = Discover().value();
  ASSERT_EQ(findings.gpus.size(), 1U);
  EXPECT_EQ(findings.gpus[0]->name(), "gpu:0");
  EXPECT_EQ(findings.gpus[0]->TotalEnergy().value(), 1000_J);
  EXPECT_EQ(Find(findings, "AMD SMI")->fix,
            "install amd-smi-lib, or set ZEUS_AMD_SMI_LIBRARY to the library");
  EXPECT_NE(Find(findings, "ROCm SMI"), nullptr);
}

TEST_F(AmdDiscoveryTest, CountsFromTheFirstIndex) {
  tree_.AddCard(0, "0000:03:00.0");
  tree_.AddCard(1, "0000:43:00.0");
  first_gpu_index_ = 4;
  const auto findings = Discover().value();
  ASSERT_EQ(findings.gpus.size(), 2U);
  EXPECT_EQ(findings.gpus[0]->name(), "gpu:4");
  EXPECT_EQ(findings.gpus[1]->name(), "gpu:5");
}

TEST_F(AmdDiscoveryTest, AmdSmiComesBeforeRocmSmiAndBothBeforeSysfs) {
  tree_.AddCard(0, "0000:03:00.0");
  FakeSmi fake({FakeSmi::FakeBoard{.energy = 65536 * 7}});
  starters_.rocm_smi = [](const auto&) { return amd::StartRocmSmi(FakeSmi::Rocm()); };
  {
    const auto findings = Discover().value();
    EXPECT_EQ(findings.gpus.at(0)->TotalEnergy().value(), 7_J);
    EXPECT_EQ(findings.gpus.at(0)->Power().value(), 90_W);  // ROCm SMI tells power,
  }
  starters_.amd_smi = [](const auto&) { return amd::StartAmdSmi(FakeSmi::Amd()); };
  {
    const auto findings = Discover().value();
    EXPECT_EQ(findings.gpus.at(0)->TotalEnergy().value(), 7_J);
    EXPECT_EQ(findings.gpus.at(0)->Power().value(), 100_W);  // AMD SMI leaves it to sysfs.
    EXPECT_EQ(fake.initialised, 1);
    EXPECT_THAT(findings.absent, IsEmpty());
  }
  EXPECT_EQ(fake.initialised, 0);
}

TEST_F(AmdDiscoveryTest, NoBoardIsListedTwice) {
  tree_.AddCard(0, "0000:03:00.0");
  tree_.AddCard(1, "0000:83:00.0");
  FakeSmi fake({{.bus_id = 0x0300}, {.bus_id = 0x0300}, {.bus_id = 0xc100}});
  starters_.amd_smi = [](const auto&) { return amd::StartAmdSmi(FakeSmi::Amd()); };
  EXPECT_THAT(Addresses(), ElementsAre("0000:03:00.0", "0000:83:00.0", "0000:c1:00.0"));
}

TEST_F(AmdDiscoveryTest, ABoardThatOnlyTheLibraryKnowsHasReasonsForTheRest) {
  FakeSmi fake({FakeSmi::FakeBoard{.bus_id = 0x0300}});
  starters_.amd_smi = [](const auto&) { return amd::StartAmdSmi(FakeSmi::Amd()); };
  const auto findings = Discover().value();
  ASSERT_EQ(findings.gpus.size(), 1U);
  EXPECT_EQ(findings.gpus[0]->TotalEnergy().value(), 1_J);
  const auto temperature = findings.gpus[0]->Temperature();
  EXPECT_EQ(temperature.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(temperature.error().message, HasSubstr("not in sysfs"));
}

TEST_F(AmdDiscoveryTest, ALibraryThatFailsIsAbsentWithItsReason) {
  starters_.amd_smi = [](const auto&) -> Result<std::shared_ptr<amd::Smi>> {
    return Error{ErrorCode::kUnavailable, "amdsmi_init: the driver is not loaded (status 34)"};
  };
  FakeSmi fake({});
  environment_["ZEUS_ROCM_SMI_LIBRARY"] = "librocm_smi64.so";
  starters_.rocm_smi = [](const auto&) { return amd::StartRocmSmi(FakeSmi::Rocm()); };
  const auto findings = Discover().value();
  EXPECT_THAT(Find(findings, "AMD SMI")->reason, HasSubstr("driver is not loaded"));
  EXPECT_EQ(Find(findings, "ROCm SMI")->reason, "ROCm SMI sees no GPU");
  EXPECT_NE(Find(findings, "AMD GPUs"), nullptr);
  EXPECT_EQ(fake.initialised, 0);
}

TEST_F(AmdDiscoveryTest, RocmSmiIsLeftAloneWithoutCards) {
  FakeSmi fake({FakeSmi::FakeBoard{.bus_id = 0x0300}});
  starters_.rocm_smi = [](const auto&) { return amd::StartRocmSmi(FakeSmi::Rocm()); };
  EXPECT_THAT(Discover().value().gpus, IsEmpty());
}

TEST_F(AmdDiscoveryTest, AnOverriddenLibraryThatIsMissingIsTold) {
  environment_["ZEUS_ROCM_SMI_LIBRARY"] = "/absent/library.so";
  const auto findings = Discover().value();
  EXPECT_EQ(Find(findings, "ROCm SMI")->reason, "/absent/library.so not found");
  EXPECT_EQ(Find(findings, "ROCm SMI")->fix, "correct or unset ZEUS_ROCM_SMI_LIBRARY");
  EXPECT_EQ(Find(findings, "AMD SMI"), nullptr);
}

TEST_F(AmdDiscoveryTest, BoardsWithoutTheDriverAreAbsentWithTheFix) {
  tree_.AddBareDevice("0000:03:00.0", "");
  tree_.AddBareDevice("0000:04:00.0", "vfio-pci");
  const auto findings = Discover().value();
  EXPECT_EQ(Find(findings, "AMD GPU 0000:03:00.0")->fix, "modprobe amdgpu");
  EXPECT_EQ(Find(findings, "AMD GPU 0000:04:00.0")->reason, "driver vfio-pci is bound to it");
}

TEST_F(AmdDiscoveryTest, AnUnknownMetricsVersionIsAbsentWithItsReason) {
  tree_.AddCard(0, "0000:03:00.0");
  tree_.Set(0, "gpu_metrics", zeus::testing::GpuMetricsFile{.content = 9}.Bytes());
  const auto findings = Discover().value();
  ASSERT_EQ(findings.gpus.size(), 1U);
  EXPECT_THAT(Find(findings, "energy counter of gpu:0")->reason, HasSubstr("v1.9 is not known"));
}

TEST_F(AmdDiscoveryTest, ACardWithTwoDiesIsCountedOnce) {
  tree_.AddCard(0, "0000:c1:00.0");
  tree_.AddCard(1, "0000:c6:00.0");
  tree_.MakeSecondDie(1);
  tree_.AddCard(2, "0000:c9:00.0");
  tree_.AddCard(3, "0000:ce:00.0");
  tree_.MakeSecondDie(3);
  const auto findings = Discover().value();
  ASSERT_EQ(findings.gpus.size(), 4U);
  Joules sum(0);
  for (const auto& gpu : findings.gpus) {
    if (const auto energy = gpu->TotalEnergy(); energy.ok()) sum += energy.value();
  }
  EXPECT_EQ(sum, 2000_J);
  EXPECT_THAT(findings.gpus[1]->Energy().error().message, HasSubstr("0000:c1:00.0"));
  EXPECT_THAT(findings.gpus[3]->Power().error().message, HasSubstr("0000:c9:00.0"));
  EXPECT_EQ(Find(findings, "energy counter of gpu:1"), nullptr);
}

TEST_F(AmdDiscoveryTest, ASecondDieAloneSaysThatItsFirstIsElsewhere) {
  tree_.AddCard(0, "0000:c6:00.0");
  tree_.MakeSecondDie(0);
  EXPECT_THAT(Discover().value().gpus.at(0)->Power().error().message,
              HasSubstr("a first die that is not on this machine"));
}

class AmdVisibilityTest : public AmdDiscoveryTest {
 protected:
  AmdVisibilityTest() {
    tree_.AddCard(0, "0000:03:00.0");
    tree_.AddCard(1, "0000:43:00.0");
    tree_.AddCard(2, "0000:83:00.0");
  }
};

TEST_F(AmdVisibilityTest, WithoutVariablesAllBoardsComeInPciOrder) {
  EXPECT_THAT(Addresses(), ElementsAre("0000:03:00.0", "0000:43:00.0", "0000:83:00.0"));
}

TEST_F(AmdVisibilityTest, HipSelectsAndOrders) {
  environment_["HIP_VISIBLE_DEVICES"] = "2,0";
  EXPECT_THAT(Addresses(), ElementsAre("0000:83:00.0", "0000:03:00.0"));
}

TEST_F(AmdVisibilityTest, HipCountsWhatRocrLeft) {
  environment_["ROCR_VISIBLE_DEVICES"] = "1,2";
  environment_["HIP_VISIBLE_DEVICES"] = "1";
  EXPECT_THAT(Addresses(), ElementsAre("0000:83:00.0"));
}

TEST_F(AmdVisibilityTest, BoardsAreSelectedByUniqueId) {
  environment_["ROCR_VISIBLE_DEVICES"] = "GPU-18f68e602b8a0001";
  EXPECT_THAT(Addresses(), ElementsAre("0000:43:00.0"));
}

TEST_F(AmdVisibilityTest, CudaServesWhereHipIsUnset) {
  environment_["CUDA_VISIBLE_DEVICES"] = "1";
  EXPECT_THAT(Addresses(), ElementsAre("0000:43:00.0"));
  environment_["HIP_VISIBLE_DEVICES"] = "0";
  EXPECT_THAT(Addresses(), ElementsAre("0000:03:00.0"));
}

TEST_F(AmdVisibilityTest, BesideNvidiasDriverCudaMeansNvidia) {
  proc_.AddFile("driver/nvidia/version", "NVRM version\n");
  environment_["CUDA_VISIBLE_DEVICES"] = "GPU-ffffffff-0000-0000-0000-000000000000";
  EXPECT_EQ(Addresses().size(), 3U);
}

TEST_F(AmdVisibilityTest, AnEmptyListHidesAllAndSaysSo) {
  environment_["HIP_VISIBLE_DEVICES"] = "";
  const auto findings = Discover().value();
  EXPECT_THAT(findings.gpus, IsEmpty());
  EXPECT_THAT(Find(findings, "AMD GPUs")->reason, HasSubstr("hides all"));
}

TEST_F(AmdVisibilityTest, AWrongValueIsAnErrorThatQuotesIt) {
  for (const char* variable :
       {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    environment_ = {{variable, "0,rubbish"}};
    const auto findings = Discover();
    ASSERT_FALSE(findings.ok());
    EXPECT_EQ(findings.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(findings.error().message, HasSubstr(std::string(variable) + "=\"0,rubbish\""));
    environment_ = {{variable, "7"}};
    EXPECT_FALSE(Discover().ok());
  }
}

TEST_F(AmdVisibilityTest, TheRuntimesOrderHoldsAndBoardsItCannotUseComeLast) {
  tree_.AddNode(1, AmdgpuTree::NodeKind::kGpu, 0x83);
  tree_.AddNode(2, AmdgpuTree::NodeKind::kGpu, 0x03);
  EXPECT_THAT(Addresses(), ElementsAre("0000:83:00.0", "0000:03:00.0", "0000:43:00.0"));
  environment_["HIP_VISIBLE_DEVICES"] = "0";
  EXPECT_THAT(Addresses(), ElementsAre("0000:83:00.0"));
  environment_["HIP_VISIBLE_DEVICES"] = "2";
  EXPECT_FALSE(Discover().ok());
}

TEST_F(AmdVisibilityTest, PartitionsOfABoardCountSeparatelyButGiveOneBoard) {
  tree_.AddNode(1, AmdgpuTree::NodeKind::kGpu, 0x03);
  tree_.AddNode(2, AmdgpuTree::NodeKind::kGpu, 0x03);
  tree_.AddNode(3, AmdgpuTree::NodeKind::kGpu, 0x43);
  environment_["HIP_VISIBLE_DEVICES"] = "0,1,2";
  EXPECT_THAT(Addresses(), ElementsAre("0000:03:00.0", "0000:43:00.0"));
}

}  // namespace amd_discovery_test
}  // namespace zeus
