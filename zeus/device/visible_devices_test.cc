#include "zeus/device/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeus {
namespace visible_devices_test {

using ::testing::HasSubstr;

constexpr auto kWhole = BoardShare::kWhole;
constexpr auto kPartition = BoardShare::kPartition;
using Boards = std::vector<VisibleBoard>;

std::vector<SelectableBoard> FourBoards() {
  return {{.uuid = "GPU-aa11b2c3-0000-0000-0000-000000000001", .partitions = {}},
          {.uuid = "GPU-aa12b2c3-0000-0000-0000-000000000002", .partitions = {}},
          {.uuid = "GPU-cc11b2c3-0000-0000-0000-000000000003",
           .partitions = {"MIG-11111111-0000-0000-0000-000000000001",
                          "MIG-22222222-0000-0000-0000-000000000002"}},
          {.uuid = "dd11b2c300000000", .partitions = {}}};
}

Result<Boards> Select(const std::optional<std::string>& value) {
  return SelectVisibleBoards("CUDA_VISIBLE_DEVICES", value, FourBoards());
}

TEST(VisibleDevicesTest, UnsetSelectsEveryBoard) {
  EXPECT_EQ(Select(std::nullopt).value(),
            (Boards{{0, kWhole}, {1, kWhole}, {2, kWhole}, {3, kWhole}}));
}

TEST(VisibleDevicesTest, IndicesSelectInTheirOrder) {
  EXPECT_EQ(Select("2,0").value(), (Boards{{2, kWhole}, {0, kWhole}}));
  EXPECT_EQ(Select(" 1 , 3 ").value(), (Boards{{1, kWhole}, {3, kWhole}}));
}

TEST(VisibleDevicesTest, ValuesThatMeanNoDevicesSelectNone) {
  for (const char* none : {"", " ", "-1", "NoDevFiles"}) {
    const auto selected = Select(none);
    ASSERT_TRUE(selected.ok()) << none;
    EXPECT_TRUE(selected.value().empty()) << none;
  }
}

TEST(VisibleDevicesTest, TheBeginningOfAUuidSuffices) {
  EXPECT_EQ(Select("GPU-cc").value(), (Boards{{2, kWhole}}));
  EXPECT_EQ(Select("GPU-aa12b2c3-0000-0000-0000-000000000002,0").value(),
            (Boards{{1, kWhole}, {0, kWhole}}));
}

TEST(VisibleDevicesTest, UuidsMatchWithoutTheirPrefixAndInAnyCase) {
  EXPECT_EQ(Select("GPU-DD11B2C300000000").value(), (Boards{{3, kWhole}}));
}

TEST(VisibleDevicesTest, APartitionMapsToItsBoard) {
  EXPECT_EQ(Select("MIG-22222222-0000-0000-0000-000000000002").value(), (Boards{{2, kPartition}}));
  EXPECT_EQ(Select("MIG-GPU-aa11b2c3-0000-0000-0000-000000000001/7/0").value(),
            (Boards{{0, kPartition}}));
}

TEST(VisibleDevicesTest, TwoPartitionsOfABoardGiveItOnce) {
  const auto selected =
      Select("MIG-11111111-0000-0000-0000-000000000001,MIG-22222222-0000-0000-0000-000000000002");
  EXPECT_EQ(selected.value(), (Boards{{2, kPartition}}));
}

struct BadValue {
  const char* value;
  const char* explanation;
};

class VisibleDevicesErrorTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(VisibleDevicesErrorTest, AWrongValueIsAnErrorThatQuotesIt) {
  const auto selected = Select(GetParam().value);
  ASSERT_FALSE(selected.ok());
  EXPECT_EQ(selected.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(selected.error().message, HasSubstr("CUDA_VISIBLE_DEVICES=\""));
  EXPECT_THAT(selected.error().message, HasSubstr(GetParam().explanation));
}

INSTANTIATE_TEST_SUITE_P(
    All, VisibleDevicesErrorTest,
    ::testing::Values(BadValue{"banana", "\"banana\" is neither"},
                      BadValue{"0,banana", "\"banana\" is neither"},
                      BadValue{"4", "there is no GPU 4: this machine has GPUs 0 to 3"},
                      BadValue{"99999999999999999999999", "there is no GPU 99999"},
                      BadValue{"0,-1", "\"-1\" is neither"}, BadValue{"+1", "\"+1\" is neither"},
                      BadValue{"0x1", "\"0x1\" is neither"}, BadValue{"1.5", "\"1.5\" is neither"},
                      BadValue{"0,,1", "an entry of the list is empty"},
                      BadValue{"0,1,", "an entry of the list is empty"},
                      BadValue{"0 1", "\"0 1\" is neither"},
                      BadValue{"1,1", "\"1\" names a GPU twice"},
                      BadValue{"0,GPU-aa11", "\"GPU-aa11\" names a GPU twice"},
                      BadValue{"GPU-", "has no UUID"}, BadValue{"GPU-aa1", "is ambiguous"},
                      BadValue{"GPU-ff", "no GPU of this machine is called \"GPU-ff\""},
                      BadValue{"MIG-33333333-0000", "no MIG instance of this machine"},
                      BadValue{"MIG-", "no MIG instance of this machine"},
                      BadValue{"MIG-GPU-aa11", "is not MIG-GPU-<uuid>/"},
                      BadValue{"MIG-GPU-aa11/1", "is not MIG-GPU-<uuid>/"},
                      BadValue{"MIG-GPU-aa11/x/0", "is not MIG-GPU-<uuid>/"},
                      BadValue{"MIG-GPU-ff/1/0", "no GPU of this machine is called \"GPU-ff\""},
                      BadValue{"2,MIG-11111111-0000-0000-0000-000000000001", "names a GPU twice"},
                      BadValue{"\x1b[31m", "\\x1b[31m"}));

TEST(VisibleDevicesTest, AnIndexOnAMachineWithoutGpusSaysSo) {
  const auto selected = SelectVisibleBoards("HIP_VISIBLE_DEVICES", "0", {});
  ASSERT_FALSE(selected.ok());
  EXPECT_EQ(selected.error().message,
            "HIP_VISIBLE_DEVICES=\"0\": there is no GPU 0: this machine has none");
}

class LostBoardTest : public ::testing::Test {
 protected:
  Result<Boards> Select(const char* value) {
    auto boards = FourBoards();
    boards[1] = {.uuid = "", .partitions = {}, .identified = false};
    return SelectVisibleBoards("CUDA_VISIBLE_DEVICES", value, boards);
  }
};

TEST_F(LostBoardTest, AnUnknownIdentifierMayBeItsOwn) {
  EXPECT_EQ(Select("GPU-ff,GPU-cc").value(), (Boards{{1, kWhole, "GPU-ff"}, {2, kWhole}}));
  EXPECT_EQ(Select("MIG-ff").value(), (Boards{{1, kPartition, "MIG-ff"}}));
  EXPECT_EQ(Select("MIG-GPU-ff/1/0,MIG-ff").value(), (Boards{{1, kPartition, "MIG-GPU-ff/1/0"}}));
}

TEST_F(LostBoardTest, MoreUnknownIdentifiersThanLostBoardsAreAnError) {
  for (const char* value : {"GPU-ff,GPU-ee", "1,GPU-ff", "GPU-ff,MIG-ff"}) {
    const auto selected = Select(value);
    ASSERT_FALSE(selected.ok()) << value;
    EXPECT_EQ(selected.error().code, ErrorCode::kInvalidArgument) << value;
  }
}

TEST_F(LostBoardTest, WhatIsNoIdentifierIsStillAnError) {
  for (const char* value : {"banana", "4", "GPU-", "MIG-GPU-ff/1", "GPU-ff,GPU-ff"})
    EXPECT_EQ(Select(value).error().code, ErrorCode::kInvalidArgument) << value;
}

TEST(VisibleDevicesTest, AnEndlessIndexIsCutInTheMessage) {
  EXPECT_LT(Select(std::string(5000, '9')).error().message.size(), 400U);
}

TEST(VisibleDevicesTest, KnowsWhetherTheNumberingMatters) {
  EXPECT_TRUE(SelectsByIndex("GPU-aa11,3"));
  EXPECT_FALSE(SelectsByIndex("GPU-aa11"));
  EXPECT_FALSE(SelectsByIndex(""));
  EXPECT_FALSE(SelectsByIndex(std::nullopt));
}

TEST(DeviceOrderTest, ReadsBothOrders) {
  EXPECT_EQ(ParseDeviceOrder(std::nullopt).value(), DeviceOrder::kFastestFirst);
  EXPECT_EQ(ParseDeviceOrder("").value(), DeviceOrder::kFastestFirst);
  EXPECT_EQ(ParseDeviceOrder("FASTEST_FIRST").value(), DeviceOrder::kFastestFirst);
  EXPECT_EQ(ParseDeviceOrder("PCI_BUS_ID").value(), DeviceOrder::kPciBusId);
}

TEST(DeviceOrderTest, AWrongOrderIsAnErrorThatQuotesIt) {
  const auto order = ParseDeviceOrder("pci_bus_id");
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(order.error().message, HasSubstr("CUDA_DEVICE_ORDER=\"pci_bus_id\""));
}

}  // namespace visible_devices_test
}  // namespace zeus
