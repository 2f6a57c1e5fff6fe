#include "zeus/device/amd/smi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "zeus/device/amd/amd_smi.h"
#include "zeus/device/amd/rocm_smi.h"

namespace zeus::amd {
namespace smi_test {

using namespace zeus::literals;

// The answers of rsmi_init and amdsmi_init: a function pointer carries no state.
std::uint32_t init_status = 0;

struct Mapping {
  std::uint32_t status;
  ErrorCode code;
};

RocmSmiApi RocmWithFailingInit() {
  RocmSmiApi api;
  api.init = [](std::uint64_t) { return init_status; };
  return api;
}

AmdSmiApi AmdWithFailingInit() {
  AmdSmiApi api;
  api.init = [](std::uint64_t) { return init_status; };
  return api;
}

class RocmStatusTest : public ::testing::TestWithParam<Mapping> {};

TEST_P(RocmStatusTest, MapsToItsErrorCode) {
  init_status = GetParam().status;
  const auto started = StartRocmSmi(RocmWithFailingInit());
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code, GetParam().code);
  EXPECT_TRUE(started.error().message.starts_with("rsmi_init: ")) << started.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, RocmStatusTest,
    ::testing::Values(Mapping{1, ErrorCode::kInvalidArgument}, Mapping{2, ErrorCode::kNotSupported},
                      Mapping{3, ErrorCode::kUnavailable}, Mapping{4, ErrorCode::kPermissionDenied},
                      Mapping{5, ErrorCode::kUnavailable}, Mapping{6, ErrorCode::kInternal},
                      Mapping{7, ErrorCode::kInvalidArgument}, Mapping{8, ErrorCode::kUnavailable},
                      Mapping{9, ErrorCode::kNotSupported}, Mapping{10, ErrorCode::kNotFound},
                      Mapping{11, ErrorCode::kInternal}, Mapping{12, ErrorCode::kUnavailable},
                      Mapping{13, ErrorCode::kUnavailable}, Mapping{14, ErrorCode::kUnavailable},
                      Mapping{15, ErrorCode::kUnavailable}, Mapping{16, ErrorCode::kUnavailable},
                      Mapping{17, ErrorCode::kInternal}, Mapping{12345, ErrorCode::kInternal},
                      Mapping{0xffffffff, ErrorCode::kInternal}),
    [](const auto& mapping) { return "Status" + std::to_string(mapping.param.status); });

class AmdStatusTest : public ::testing::TestWithParam<Mapping> {};

TEST_P(AmdStatusTest, MapsToItsErrorCode) {
  init_status = GetParam().status;
  const auto started = StartAmdSmi(AmdWithFailingInit());
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code, GetParam().code);
  EXPECT_TRUE(started.error().message.starts_with("amdsmi_init: ")) << started.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, AmdStatusTest,
    ::testing::Values(Mapping{1, ErrorCode::kInvalidArgument}, Mapping{2, ErrorCode::kNotSupported},
                      Mapping{3, ErrorCode::kNotSupported}, Mapping{4, ErrorCode::kUnavailable},
                      Mapping{5, ErrorCode::kUnavailable}, Mapping{6, ErrorCode::kUnavailable},
                      Mapping{7, ErrorCode::kUnavailable}, Mapping{8, ErrorCode::kUnavailable},
                      Mapping{9, ErrorCode::kUnavailable},
                      Mapping{10, ErrorCode::kPermissionDenied},
                      Mapping{11, ErrorCode::kUnavailable}, Mapping{12, ErrorCode::kUnavailable},
                      Mapping{13, ErrorCode::kInternal}, Mapping{14, ErrorCode::kUnavailable},
                      Mapping{15, ErrorCode::kUnavailable}, Mapping{16, ErrorCode::kInternal},
                      Mapping{17, ErrorCode::kInvalidArgument},
                      Mapping{18, ErrorCode::kUnavailable}, Mapping{19, ErrorCode::kInternal},
                      Mapping{30, ErrorCode::kUnavailable}, Mapping{31, ErrorCode::kNotFound},
                      Mapping{32, ErrorCode::kUnavailable}, Mapping{33, ErrorCode::kUnavailable},
                      Mapping{34, ErrorCode::kUnavailable}, Mapping{40, ErrorCode::kUnavailable},
                      Mapping{41, ErrorCode::kInternal}, Mapping{42, ErrorCode::kUnavailable},
                      Mapping{43, ErrorCode::kUnavailable}, Mapping{12345, ErrorCode::kInternal},
                      Mapping{0xfffffffe, ErrorCode::kInternal},
                      Mapping{0xffffffff, ErrorCode::kInternal}),
    [](const auto& mapping) { return "Status" + std::to_string(mapping.param.status); });

TEST(SmiTest, TheRoundedTickBecomesTheExactOne) {
  EXPECT_EQ(SampleFromSmi(65536, 15.3F).value().tick, kEnergyTick);
  EXPECT_EQ(SampleFromSmi(65536, 1e6F / 65536.0F).value().tick, kEnergyTick);
}

TEST(SmiTest, AnotherTickIsBelieved) {
  EXPECT_DOUBLE_EQ(SampleFromSmi(1, 1.0F).value().tick.value(), 1e-6);
}

TEST(SmiTest, AnImpossibleTickIsAnError) {
  for (const float tick : {0.0F, -15.3F, std::nanf(""), std::numeric_limits<float>::infinity()})
    EXPECT_EQ(SampleFromSmi(1, tick).error().code, ErrorCode::kUnavailable) << tick;
}

TEST(SmiTest, ACounterOfAllOnesIsNotSupported) {
  EXPECT_EQ(SampleFromSmi(std::numeric_limits<std::uint64_t>::max(), 15.3F).error().code,
            ErrorCode::kNotSupported);
}

TEST(SmiTest, CapsAreMicrowattsOrOnHypervisorsWatts) {
  for (const std::uint64_t unit : {std::uint64_t{1'000'000}, std::uint64_t{1}}) {
    const PowerCap cap = CapFromSmi(
        {.min = 100 * unit, .max = 750 * unit, .default_limit = 700 * unit, .current = 500 * unit});
    EXPECT_EQ(cap.range.min, 100_W);
    EXPECT_EQ(cap.range.max, 750_W);
    EXPECT_EQ(cap.default_limit, 700_W);
    EXPECT_EQ(cap.current, 500_W);
  }
}

TEST(SmiTest, NothingIsZeroInEitherUnit) {
  EXPECT_EQ(CapFromSmi({.min = 0, .max = 0, .default_limit = 0, .current = 0}).range.max, 0_W);
}

TEST(SmiTest, AFileThatIsNoLibraryIsUnavailable) {
  EXPECT_EQ(LoadRocmSmi("/proc/self/status").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(LoadAmdSmi("/proc/self/status").error().code, ErrorCode::kInvalidArgument);
}

TEST(SmiTest, ALibraryThatIsNotThereIsNotFoundAndNamed) {
  for (const Error& error :
       {LoadRocmSmi("/absent/library.so").error(), LoadAmdSmi("/absent/library.so").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_EQ(error.message, "/absent/library.so not found");
  }
}

TEST(SmiTest, AnotherLibraryLacksTheFunctions) {
  EXPECT_EQ(LoadRocmSmi("libc.so.6").error().message,
            "libc.so.6 is not ROCm SMI: it lacks rsmi_init, rsmi_shut_down, "
            "rsmi_num_monitor_devices, rsmi_dev_pci_id_get");
  EXPECT_EQ(LoadAmdSmi("libc.so.6").error().message,
            "libc.so.6 is not AMD SMI: it lacks amdsmi_init, amdsmi_shut_down, "
            "amdsmi_get_socket_handles, amdsmi_get_processor_handles, amdsmi_get_gpu_bdf_id");
}

}  // namespace smi_test
}  // namespace zeus::amd
