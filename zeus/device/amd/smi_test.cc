#include "zeus/device/amd/smi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "zeus/device/amd/sysfs_board.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/amd/testing/fake_smi.h"
#include "zeus/device/privilege.h"

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

using ::zeus::testing::AmdgpuTree;
using ::zeus::testing::FakeSmi;

// The same promises for both libraries, over a board that sysfs knows too.
class SmiBoardTest : public ::testing::TestWithParam<const char*> {
 protected:
  SmiBoardTest() { tree_.AddCard(0, "0000:03:00.0"); }

  std::shared_ptr<Smi> Start() {
    return GetParam() == std::string("Rocm") ? StartRocmSmi(rocm_).value()
                                             : StartAmdSmi(amd_).value();
  }

  std::unique_ptr<SmiBoard> Board() {
    auto smi = Start();
    const auto device = smi->Devices().value().at(0);
    return std::make_unique<SmiBoard>(
        std::move(smi), device, std::make_unique<SysfsBoard>(FindCards(tree_.sysfs()).cards.at(0)));
  }

  AmdgpuTree tree_;
  FakeSmi fake_{{FakeSmi::FakeBoard{}}};
  RocmSmiApi rocm_ = FakeSmi::Rocm();
  AmdSmiApi amd_ = FakeSmi::Amd();
};

INSTANTIATE_TEST_SUITE_P(Both, SmiBoardTest, ::testing::Values("Rocm", "Amd"),
                         [](const auto& library) { return library.param; });

TEST_P(SmiBoardTest, ListsBoardsByPciAddress) {
  fake_.boards.push_back({.bus_id = (1ULL << 32U) | 0xc100U});
  const auto devices = Start()->Devices().value();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].pci_address, "0000:03:00.0");
  EXPECT_EQ(devices[1].pci_address, "0001:c1:00.0");
}

TEST_P(SmiBoardTest, IsShutDownWithTheLastBoard) {
  {
    const auto board = Board();
    EXPECT_EQ(fake_.initialised, 1);
  }
  EXPECT_EQ(fake_.initialised, 0);
}

TEST_P(SmiBoardTest, EnergyIsExactThoughTheLibraryRounds) {
  const auto sample = Board()->Energy().value();
  EXPECT_EQ(sample.tick * static_cast<double>(sample.ticks), 1_J);
}

TEST_P(SmiBoardTest, WhatTheLibraryCannotSysfsMay) {
  fake_.energy_status = 2;  // Not supported, in both.
  EXPECT_EQ(Board()->Energy().value().ticks, 65536000U);
  EXPECT_EQ(Board()->Temperature().value(), 41_degC);
  EXPECT_EQ(Board()->Clock(ClockDomain::kGraphics).value(), 800_MHz);
  EXPECT_EQ(Board()->Memory().value().total_bytes, 68702699520U);
  EXPECT_EQ(Board()->Busy().value().compute, 0.97);
  EXPECT_EQ(Board()->SupportedClocks(ClockDomain::kMemory).value().size(), 2U);
}

TEST_P(SmiBoardTest, AFailureIsNotPaperedOver) {
  fake_.energy_status = 16;  // Busy in ROCm SMI, an exception in AMD SMI.
  EXPECT_FALSE(Board()->Energy().ok());
}

TEST_P(SmiBoardTest, ReadsAndSetsCaps) {
  EXPECT_EQ(Board()->Cap().value().range.min, 100_W);
  EXPECT_EQ(Board()->Cap().value().range.max, 300_W);
  ASSERT_TRUE(Board()->SetCap(212.5_W).ok());
  EXPECT_EQ(fake_.boards[0].cap, 212'500'000U);
  EXPECT_EQ(Board()->Cap().value().current, 212.5_W);
}

TEST_P(SmiBoardTest, AMissingFunctionIsNotCalled) {
  rocm_.dev_energy_count_get = nullptr;
  rocm_.dev_power_cap_set = nullptr;
  amd_.get_energy_count = nullptr;
  amd_.set_power_cap = nullptr;
  EXPECT_EQ(Board()->Energy().value().ticks, 65536000U);
  ASSERT_TRUE(Board()->SetCap(200_W).ok());
  EXPECT_EQ(tree_.Get(0, "hwmon/power1_cap"), "200000000");
}

TEST_P(SmiBoardTest, SysfsSaysWhoTheBoardIs) {
  const auto board = Board();
  EXPECT_EQ(board->identity().uuid, "18f68e602b8a0000");
  EXPECT_EQ(board->identity().model, "AMD INSTINCT MI210");
}

class RocmSmiTest : public SmiBoardTest {};
INSTANTIATE_TEST_SUITE_P(Only, RocmSmiTest, ::testing::Values("Rocm"));

TEST_P(RocmSmiTest, PowerIsTheLibrarysElseThatOfSysfs) {
  EXPECT_EQ(Board()->Power(PowerKind::kOneSecondAverage).value(), 90_W);
  tree_.Set(0, "hwmon/power1_input", "95000000\n");
  EXPECT_EQ(Board()->Power(PowerKind::kInstant).value(), 95_W);
  rocm_.dev_current_socket_power_get = [](std::uint32_t, std::uint64_t* power) -> std::uint32_t {
    *power = 97'000'000;
    return 0;
  };
  EXPECT_EQ(Board()->Power(PowerKind::kInstant).value(), 97_W);
}

TEST_P(RocmSmiTest, NamesBoardsThatSysfsCannotName) {
  tree_.Remove(0, "product_name");
  tree_.Remove(0, "unique_id");
  EXPECT_EQ(Board()->identity().model, "Fake board");
  EXPECT_EQ(Board()->identity().uuid, "0000000000000300");
}

TEST_P(RocmSmiTest, PermissionIsToldWithTheWayOut) {
  fake_.set_status = 4;
  const auto set = Board()->SetCap(200_W);
  EXPECT_EQ(set.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(
      set.error().message,
      fmt::format("rsmi_dev_power_cap_set: permission denied; {} (status 4)", RefusalAdvice()));
}

class AmdSmiTest : public SmiBoardTest {};
INSTANTIATE_TEST_SUITE_P(Only, AmdSmiTest, ::testing::Values("Amd"));

TEST_P(AmdSmiTest, OnAHypervisorCapsAreWattsInBothDirections) {
  fake_.boards[0] = {.cap_min = 100, .cap_max = 750, .cap_default = 750, .cap = 750};
  EXPECT_EQ(Board()->Cap().value().range.max, 750_W);
  ASSERT_TRUE(Board()->SetCap(500_W).ok());
  EXPECT_EQ(fake_.boards[0].cap, 500U);
}

TEST_P(AmdSmiTest, PowerComesFromSysfs) {
  EXPECT_EQ(Board()->Power(PowerKind::kOneSecondAverage).value(), 100_W);
}

}  // namespace smi_test
}  // namespace zeus::amd
