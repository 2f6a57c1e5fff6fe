#include "zeus/device/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "zeus/base/testing/places.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/sim/testing/driver_node.h"
#include "zeus/device/testing/environment.h"

namespace zeus {
namespace node_test {

using sim::testing::DriverNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// A machine that has only what a test adds, whatever is installed where the test runs.
class NodeTest : public ::testing::Test {
 protected:
  Result<Node> Find() {
    return Discover({.clock = clock_,
                     .sysfs = tree_.sysfs(),
                     .procfs = tree_.sysfs() / "proc",
                     .dev = tree_.sysfs() / "dev",
                     .first_gpu_index = first_gpu_index_,
                     .environment = zeus::testing::EnvironmentOf(environment_)});
  }

  void AddIntelCard(int number) {
    tree_.Set(number, "vendor", "0x8086\n");
    tree_.Set(
        number, "uevent",
        "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:0" + std::to_string(number) + ":00.0\n");
    tree_.Set(number, "hwmon/name", "i915\n");
    tree_.Set(number, "hwmon/energy1_input", "5000000\n");
  }

  void UseSimulatedDriver() {
    environment_["ZEUS_NVML_LIBRARY"] = zeus::testing::SimulatedDriver();
  }

  static std::vector<std::string> Names(const Node& node) {
    std::vector<std::string> names;
    for (const auto& gpu : node.gpus) names.push_back(gpu->name());
    return names;
  }
  static std::vector<std::string> Absent(const Node& node) {
    std::vector<std::string> what;
    for (const Absence& absence : node.absent) what.push_back(absence.what);
    return what;
  }

  VirtualClock clock_;
  zeus::testing::AmdgpuTree tree_;
  unsigned first_gpu_index_ = 0;
  zeus::testing::Variables environment_{{"ZEUS_NVML_LIBRARY", "/absent/libnvidia-ml.so.1"},
                                        {"ZEUS_AMD_SMI_LIBRARY", "/absent/libamd_smi.so"},
                                        {"ZEUS_ROCM_SMI_LIBRARY", "/absent/librocm_smi64.so"}};
};

TEST_F(NodeTest, AnEmptyMachineHasNoDeviceAndAReasonForEveryKind) {
  const auto node = Find();
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_TRUE(node.value().gpus.empty());
  EXPECT_TRUE(node.value().cpus.empty());
  EXPECT_TRUE(node.value().rails.empty());
  EXPECT_THAT(Absent(node.value()), IsSupersetOf({"NVIDIA GPUs", "AMD SMI", "ROCm SMI", "AMD GPUs",
                                                  "CPU energy (RAPL)"}));
  for (const Absence& absence : node.value().absent) EXPECT_FALSE(absence.reason.empty());
}

TEST_F(NodeTest, GpusOfSeveralVendorsHaveNamesOfTheirOwn) {
  tree_.AddCard(0, "0000:03:00.0");
  tree_.AddCard(1, "0000:43:00.0");
  AddIntelCard(2);
  AddIntelCard(3);
  const auto node = Find();
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_THAT(Names(node.value()), ElementsAre("gpu:0", "gpu:1", "gpu:2", "gpu:3"));
  EXPECT_EQ(node.value().gpus[1]->identity().vendor, Vendor::kAmd);
  EXPECT_EQ(node.value().gpus[2]->identity().vendor, Vendor::kIntel);
}

TEST_F(NodeTest, CountsFromTheFirstIndexOverAllVendors) {
  tree_.AddCard(0, "0000:03:00.0");
  AddIntelCard(1);
  first_gpu_index_ = 8;
  EXPECT_THAT(Names(Find().value()), ElementsAre("gpu:8", "gpu:9"));
}

TEST_F(NodeTest, TheNumberOfALostGpuIsNotGivenToAnother) {
  DriverNode driver("2xA100");
  driver.Inject({.kind = sim::FaultKind::kLost}, 1);
  UseSimulatedDriver();
  tree_.AddCard(0, "0000:03:00.0");
  AddIntelCard(1);
  const auto node = Find();
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_THAT(Names(node.value()), ElementsAre("gpu:0", "gpu:2", "gpu:3"));
  EXPECT_THAT(Absent(node.value()), ::testing::Contains("gpu:1"));
  EXPECT_EQ(node.value().gpus[1]->identity().vendor, Vendor::kAmd);
}

TEST_F(NodeTest, AWrongCudaSelectionIsAnErrorThatQuotesIt) {
  // There is no node, so that the library makes a private one.
  const zeus::testing::ScopedVariable directory("ZEUS_SIM_DIR", tree_.sysfs().string());
  const zeus::testing::ScopedVariable gpus("ZEUS_SIM", "2xA100");
  UseSimulatedDriver();
  EXPECT_THAT(Names(Find().value()), ElementsAre("gpu:0", "gpu:1"));
  for (const char* wrong : {"2", "0,banana", "GPU-ffffffff-0000"}) {
    environment_["CUDA_VISIBLE_DEVICES"] = wrong;
    const auto node = Find();
    ASSERT_FALSE(node.ok()) << wrong;
    EXPECT_EQ(node.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(node.error().message, HasSubstr(std::string("CUDA_VISIBLE_DEVICES=\"") + wrong));
  }
}

TEST_F(NodeTest, AWrongHipSelectionIsAnErrorThatQuotesIt) {
  tree_.AddCard(0, "0000:03:00.0");
  environment_["HIP_VISIBLE_DEVICES"] = "0,7";
  const auto node = Find();
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(node.error().message, HasSubstr("HIP_VISIBLE_DEVICES=\"0,7\""));
}

}  // namespace node_test
}  // namespace zeus
