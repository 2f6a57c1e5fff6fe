#include "zeus/device/nvml/nvml_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "zeus/base/detached_call.h"
#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/driver_access.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/nvml/testing/broken_libraries.h"
#include "zeus/device/nvml/testing/fake_nvml.h"
#include "zeus/device/testing/environment.h"

namespace zeus::nvml {
namespace nvml_discovery_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NvmlLibraryTest, AFileThatIsNotThereIsNotFound) {
  const auto api = LoadNvml("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(api.error().message, "/nonexistent/libnvidia-ml.so.1 not found");
}

TEST(NvmlLibraryTest, ABareNameThatIsNotInstalledIsNotFound) {
  const auto api = LoadNvml("libzeus-surely-not-installed.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kNotFound);
}

TEST(NvmlLibraryTest, ATextFileIsNotALibrary) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.AddFile("libnvidia-ml.so.1", "this is not a library\n").string();
  const auto api = LoadNvml(path);
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(api.error().message, HasSubstr(path + " cannot be loaded as a library: "));
}

TEST(NvmlLibraryTest, AnEmptyFileAndADirectoryAreNotLibraries) {
  zeus::testing::TemporaryDirectory directory;
  const auto empty = directory.AddFile("empty.so", "").string();
  EXPECT_EQ(LoadNvml(empty).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(LoadNvml(directory.path().string()).error().code, ErrorCode::kInvalidArgument);
}

TEST(NvmlLibraryTest, ALibraryThatIsCutShortIsRefused) {
  zeus::testing::TemporaryDirectory directory;
  const std::string whole = ReadSmallFile(testing::BareNvml(), 1 << 20).value();
  for (const std::size_t size : {4U, 63U, 200U, 1000U, 2000U}) {
    const auto path = directory.AddFile("cut.so", whole.substr(0, size)).string();
    const auto api = LoadNvml(path);
    ASSERT_FALSE(api.ok()) << size;
    EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument) << size;
    EXPECT_THAT(api.error().message, HasSubstr("it is cut short")) << size;
  }
}

TEST(NvmlLibraryTest, ALibraryWithHalfTheFunctionsIsRefusedByNamingTheMissing) {
  const auto api = LoadNvml(testing::HalfNvml());
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(api.error().message,
              HasSubstr("lacks nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetUUID"));
  EXPECT_THAT(api.error().message, Not(HasSubstr("nvmlInit_v2")));
}

TEST(NvmlLibraryTest, OldNamesServeAndOptionalFunctionsMayBeMissing) {
  const auto api = LoadNvml(testing::BareNvml());
  ASSERT_TRUE(api.ok()) << api.error().message;
  EXPECT_NE(api.value().init, nullptr);
  EXPECT_NE(api.value().get_count, nullptr);
  EXPECT_EQ(api.value().get_field_values, nullptr);
  EXPECT_EQ(Call(api.value().get_persistence, Device{}, static_cast<int*>(nullptr)),
            kFunctionNotFound);
}

using testing::FakeNvml;
using ::testing::StartsWith;

class NvmlDiscoveryTest : public ::testing::Test {
 protected:
  Surroundings surroundings() {
    return {.clock = clock_,
            .first_gpu_index = first_gpu_index_,
            .environment = zeus::testing::EnvironmentOf(environment_),
            .answer_within = answer_within_};
  }

  Result<Findings> Discover() { return DiscoverWith(fake_.api(), surroundings()); }

  VirtualClock clock_;
  unsigned first_gpu_index_ = 0;
  std::optional<Seconds> answer_within_;
  zeus::testing::Variables environment_;
  FakeNvml fake_{4};
};

TEST_F(NvmlDiscoveryTest, FindsEveryGpuInPciOrder) {
  fake_.board(0).bus = 0xd8;
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().gpus.size(), 4U);
  EXPECT_TRUE(found.value().absent.empty());
  EXPECT_EQ(found.value().gpus[0]->name(), "gpu:0");
  EXPECT_EQ(found.value().gpus[0]->identity().pci_address, "0000:3c:00.0");
  EXPECT_EQ(found.value().gpus[3]->identity().pci_address, "0000:d8:00.0");
}

TEST_F(NvmlDiscoveryTest, NumbersTheVisibleGpusAsCudaDoes) {
  environment_["CUDA_VISIBLE_DEVICES"] = "2,GPU-00000000";
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().gpus.size(), 2U);
  EXPECT_EQ(found.value().gpus[0]->name(), "gpu:0");
  EXPECT_EQ(found.value().gpus[0]->identity().uuid, fake_.board(2).uuid);
  EXPECT_EQ(found.value().gpus[1]->identity().uuid, fake_.board(0).uuid);
}

TEST_F(NvmlDiscoveryTest, AnEmptySelectionIsExplained) {
  environment_["CUDA_VISIBLE_DEVICES"] = "";
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().gpus.empty());
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].reason, "CUDA_VISIBLE_DEVICES=\"\" hides all of them");
  EXPECT_EQ(found.value().absent[0].fix, "unset CUDA_VISIBLE_DEVICES");
}

TEST_F(NvmlDiscoveryTest, GarbageInCudaVariablesIsAnErrorThatQuotesIt) {
  environment_["CUDA_VISIBLE_DEVICES"] = "0,banana";
  EXPECT_EQ(Discover().error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(Discover().error().message, HasSubstr("CUDA_VISIBLE_DEVICES=\"0,banana\""));
  environment_["CUDA_VISIBLE_DEVICES"] = "0";
  environment_["CUDA_DEVICE_ORDER"] = "SLOWEST_FIRST";
  EXPECT_THAT(Discover().error().message, HasSubstr("CUDA_DEVICE_ORDER=\"SLOWEST_FIRST\""));
}

TEST_F(NvmlDiscoveryTest, AnErrorLeavesNvmlShutDown) {
  environment_["CUDA_VISIBLE_DEVICES"] = "9";
  EXPECT_FALSE(Discover().ok());
  EXPECT_EQ(fake_.users(), 0);
}

TEST_F(NvmlDiscoveryTest, AMigInstanceIsItsBoardAndSaysSo) {
  fake_.board(1).partitions = {"MIG-aaaa", "MIG-bbbb"};
  environment_["CUDA_VISIBLE_DEVICES"] = "MIG-bbbb";
  const auto found = Discover();
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found.value().gpus.size(), 1U);
  EXPECT_EQ(found.value().gpus[0]->identity().uuid, fake_.board(1).uuid);
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].what, "gpu:0: energy of the MIG instance");
  EXPECT_THAT(found.value().absent[0].reason, HasSubstr(fake_.board(1).uuid));
}

TEST_F(NvmlDiscoveryTest, OnAMixedNodeIndicesAreDoubtfulUntilTheOrderIsFixed) {
  fake_.board(3).model = "NVIDIA A100-SXM4-40GB";
  environment_["CUDA_VISIBLE_DEVICES"] = "0";
  const auto doubtful = Discover();
  ASSERT_EQ(doubtful.value().absent.size(), 1U);
  EXPECT_EQ(doubtful.value().absent[0].what, "CUDA's numbering of the GPUs");
  EXPECT_THAT(doubtful.value().absent[0].fix, HasSubstr("export CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_EQ(doubtful.value().gpus.size(), 1U);
  environment_["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  EXPECT_TRUE(Discover().value().absent.empty());
  environment_ = {{"CUDA_VISIBLE_DEVICES", "GPU-00000003"}};
  EXPECT_TRUE(Discover().value().absent.empty());
}

TEST_F(NvmlDiscoveryTest, ALostGpuIsAbsentAndTheOthersRemain) {
  fake_.handle_failures[1] = kGpuIsLost;
  fake_.board(2).failure = kResetRequired;
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().gpus.size(), 2U);
  EXPECT_EQ(found.value().gpus[1]->name(), "gpu:3");
  ASSERT_EQ(found.value().absent.size(), 2U);
  EXPECT_EQ(found.value().absent[0].what, "gpu:1");
  EXPECT_THAT(found.value().absent[0].reason, HasSubstr("fell off the bus"));
  EXPECT_EQ(found.value().absent[1].fix, "run nvidia-smi --gpu-reset");
}

TEST_F(NvmlDiscoveryTest, CountsFromTheFirstIndexAndALostGpuKeepsItsNumber) {
  first_gpu_index_ = 5;
  fake_.handle_failures[1] = kGpuIsLost;
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().gpus.size(), 3U);
  EXPECT_EQ(found.value().gpus[0]->name(), "gpu:5");
  EXPECT_EQ(found.value().gpus[1]->name(), "gpu:7");
  EXPECT_EQ(found.value().absent.at(0).what, "gpu:6");
  EXPECT_EQ(found.value().lost_gpus, 1U);
}

TEST_F(NvmlDiscoveryTest, ALostGpuChosenByUuidIsAbsentAndTheOthersRemain) {
  fake_.handle_failures[0] = kGpuIsLost;
  environment_["CUDA_VISIBLE_DEVICES"] = "GPU-00000000,GPU-00000002";
  const auto found = Discover();
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found.value().gpus.size(), 1U);
  EXPECT_EQ(found.value().gpus[0]->name(), "gpu:1");
  EXPECT_EQ(found.value().gpus[0]->identity().uuid, fake_.board(2).uuid);
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].what, "gpu:0");
  EXPECT_EQ(found.value().absent[0].reason,
            "GPU-00000000 may be the GPU that cannot be identified (NVML GPU 0: the GPU fell off "
            "the bus)");
  EXPECT_EQ(found.value().lost_gpus, 1U);
}

TEST_F(NvmlDiscoveryTest, AnUnknownUuidIsAnErrorWhereAllGpusAreKnown) {
  environment_["CUDA_VISIBLE_DEVICES"] = "GPU-ffffffff";
  EXPECT_EQ(Discover().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(NvmlDiscoveryTest, ABoardTellsItsMigInstancesUnlessItIsLetGo) {
  fake_.board(1).partitions = {"MIG-aaaa", "MIG-bbbb"};
  const auto found = Discover();
  ASSERT_TRUE(found.ok()) << found.error().message;
  std::vector<std::string> parts;
  for (const auto& gpu : found.value().gpus) {
    DriverAccess* const driver = DriverAccessOf(*gpu);
    ASSERT_NE(driver, nullptr);
    const auto own = driver->Partitions();
    ASSERT_TRUE(own.ok()) << own.error().message;
    parts.insert(parts.end(), own.value().begin(), own.value().end());
    EXPECT_EQ(own.value().empty(), gpu->identity().uuid != fake_.board(1).uuid);
    ASSERT_TRUE(driver->LetGo().ok());
    EXPECT_EQ(driver->Partitions().error().code, ErrorCode::kUnavailable);
    driver->TakeBack();
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"MIG-aaaa", "MIG-bbbb"}));
}

TEST_F(NvmlDiscoveryTest, MigModeIsToldWithTheWayOut) {
  fake_.board(2).mig_mode = true;
  fake_.board(2).refusals["get_utilization"] = kNotSupported;
  environment_["CUDA_VISIBLE_DEVICES"] = "2,3";
  const auto found = Discover();
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found.value().gpus.size(), 2U);
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].what, "gpu:0: energy of each MIG instance");
  EXPECT_THAT(found.value().absent[0].reason, HasSubstr("of the whole board only"));
  EXPECT_EQ(found.value().absent[0].fix, "sudo nvidia-smi -i 2 -mig 0");
  EXPECT_THAT(found.value().gpus[0]->CurrentUtilization().error().message, HasSubstr("MIG mode"));
}

// The GPU that hangs answers only when the test is over, long after it was given up.
TEST_F(NvmlDiscoveryTest, AGpuThatDoesNotAnswerInTimeIsAbsentAndTheOthersRemain) {
  answer_within_ = Seconds(0.2);
  std::unique_lock hang(fake_.board(1).mutex);
  const auto found = Discover();
  hang.unlock();
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found.value().gpus.size(), 3U);
  EXPECT_EQ(found.value().gpus[0]->name(), "gpu:0");
  EXPECT_EQ(found.value().gpus[1]->name(), "gpu:2");
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].what, "gpu:1");
  EXPECT_EQ(found.value().absent[0].reason, "the driver did not answer within 0.2 s");
  EXPECT_TRUE(found.value().absent[0].timed_out);
  EXPECT_EQ(found.value().lost_gpus, 1U);
  while (AbandonedCalls() > 0) std::this_thread::yield();
}

TEST_F(NvmlDiscoveryTest, GpusThatAnswerInTimeAreFoundAsWithoutALimit) {
  answer_within_ = Seconds(60);
  fake_.board(0).bus = 0xd8;
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().gpus.size(), 4U);
  EXPECT_TRUE(found.value().absent.empty());
  EXPECT_EQ(found.value().gpus[3]->identity().pci_address, "0000:d8:00.0");
}

TEST_F(NvmlDiscoveryTest, ALibraryThatExplainsItsFailureIsBelieved) {
  fake_.init_result = kDriverNotLoaded;
  fake_.init_text = "no simulated node named zeus";
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].reason, "initialise NVML: no simulated node named zeus");
  EXPECT_EQ(found.value().absent[0].fix, "");
}

TEST_F(NvmlDiscoveryTest, ABlankSelectionIsShownWithoutItsControlCharacters) {
  environment_["CUDA_VISIBLE_DEVICES"] = "\n";
  EXPECT_EQ(Discover().value().absent.at(0).reason,
            "CUDA_VISIBLE_DEVICES=\"\\x0a\" hides all of them");
}

struct InitFailure {
  Return code;
  const char* reason;
  const char* fix;
};

class NvmlInitFailureTest : public NvmlDiscoveryTest,
                            public ::testing::WithParamInterface<InitFailure> {};

TEST_P(NvmlInitFailureTest, IsAnAbsenceWithItsFix) {
  fake_.init_result = GetParam().code;
  const auto found = Discover();
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().gpus.empty());
  ASSERT_EQ(found.value().absent.size(), 1U);
  EXPECT_EQ(found.value().absent[0].what, "NVIDIA GPUs");
  EXPECT_THAT(found.value().absent[0].reason, HasSubstr(GetParam().reason));
  EXPECT_THAT(found.value().absent[0].fix, HasSubstr(GetParam().fix));
}

INSTANTIATE_TEST_SUITE_P(
    All, NvmlInitFailureTest,
    ::testing::Values(InitFailure{kDriverNotLoaded, "driver is not loaded", "modprobe nvidia"},
                      InitFailure{kLibRmVersionMismatch, "different versions", "reboot"},
                      InitFailure{kNoPermission, "refused", "/dev/nvidiactl"},
                      InitFailure{kOperatingSystem, "blocks the GPU", "/dev/nvidiactl"},
                      InitFailure{kUnknown, "unknown reason", "dmesg"}),
    [](const auto& tested) { return "Code" + std::to_string(tested.param.code); });

class NvmlLibraryDiscoveryTest : public NvmlDiscoveryTest {
 protected:
  Absence OnlyAbsence(const std::string& library) {
    environment_["ZEUS_NVML_LIBRARY"] = library;
    const auto found = DiscoverNvidia(surroundings());
    EXPECT_TRUE(found.ok() && found.value().gpus.empty() && found.value().absent.size() == 1);
    return found.value().absent.at(0);
  }
};

TEST_F(NvmlLibraryDiscoveryTest, AMissingLibraryIsAnAbsence) {
  const Absence absence = OnlyAbsence("/nonexistent.so");
  EXPECT_EQ(absence.reason, "/nonexistent.so not found");
  EXPECT_THAT(absence.fix, HasSubstr("ZEUS_NVML_LIBRARY"));
}

TEST_F(NvmlLibraryDiscoveryTest, APathIsShownWithoutControlCharactersAndNotWithoutEnd) {
  const Absence absence = OnlyAbsence("/\x1b[2J" + std::string(5000, 'x'));
  EXPECT_THAT(absence.reason, StartsWith("/\\x1b[2Jxxx"));
  EXPECT_LT(absence.reason.size(), 300U);
}

TEST_F(NvmlLibraryDiscoveryTest, AFileThatIsNotALibraryIsAnAbsence) {
  zeus::testing::TemporaryDirectory directory;
  const Absence absence = OnlyAbsence(directory.AddFile("nvml.so", "text").string());
  EXPECT_THAT(absence.reason, HasSubstr("cannot be loaded as a library"));
}

TEST_F(NvmlLibraryDiscoveryTest, ALibraryWithHalfTheFunctionsIsAnAbsence) {
  EXPECT_THAT(OnlyAbsence(testing::HalfNvml()).reason, HasSubstr("is not NVML: it lacks"));
}

TEST_F(NvmlLibraryDiscoveryTest, ADriverWithoutGpusIgnoresTheCudaVariables) {
  environment_["CUDA_VISIBLE_DEVICES"] = "0";
  EXPECT_EQ(OnlyAbsence(testing::BareNvml()).reason, "the driver is loaded but finds no GPU");
}

}  // namespace nvml_discovery_test
}  // namespace zeus::nvml
