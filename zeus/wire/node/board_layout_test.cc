#include "zeus/wire/node/board_layout.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/wire/node/board_message.h"

namespace zeus::wire {
namespace board_layout_test {

using namespace std::chrono_literals;
using namespace zeus::literals;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

TEST(BoardLayoutTest, EveryValueOfAReadingTravels) {
  const Error lost{ErrorCode::kUnavailable, "lost"};
  const GpuReading telemetry{
      .energy = EnergyReading{.total = 12.25_J, .epoch = 3, .taken_at = WallTime(1234567us)},
      .instant_power = 100.5_W,
      .average_power = 101.5_W,
      .memory_power = lost,
      .requested_limit = 250_W,
      .enforced_limit = 200_W,
      .temperature = Celsius(61),
      .utilization = Utilization{.compute = 0.75, .memory = 0.5},
      .memory = MemoryUse{.used_bytes = 7, .total_bytes = 9},
      .graphics_clock = Hertz(1.41e9),
      .memory_clock = Hertz(1.2e9),
      .throttle = ThrottleReasons{.thermal = true}};
  const auto decoded = board::Decode(board::Encode(5, At(2.5), telemetry));
  const GpuReading& reading = decoded.reading;
  EXPECT_EQ(decoded.time, At(2.5));
  EXPECT_EQ(reading.energy.value().total, 12.25_J);
  EXPECT_EQ(reading.energy.value().epoch, 3U);
  EXPECT_EQ(reading.energy.value().taken_at, WallTime(1234567us));
  EXPECT_EQ(reading.instant_power.value(), 100.5_W);
  EXPECT_EQ(reading.average_power.value(), 101.5_W);
  EXPECT_EQ(reading.memory_power.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(reading.requested_limit.value(), 250_W);
  EXPECT_EQ(reading.enforced_limit.value(), 200_W);
  EXPECT_EQ(reading.temperature.value(), Celsius(61));
  EXPECT_EQ(reading.utilization.value().compute, 0.75);
  EXPECT_EQ(reading.memory.value().total_bytes, 9U);
  EXPECT_EQ(reading.memory_clock.value(), Hertz(1.2e9));
  EXPECT_TRUE(reading.throttle.value().thermal);
  EXPECT_FALSE(reading.throttle.value().idle);

  const auto update = board::Decode(board::Encode(
      6, At(3), {.energy = Error{ErrorCode::kNotSupported, "none"}, .power = 9_W}, 4));
  EXPECT_EQ(update.telemetry, 4U);
  EXPECT_EQ(update.reading.energy->error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(update.reading.power->value(), 9_W);
  EXPECT_FALSE(board::Decode(board::Encode(6, At(3), {}, 0)).reading.energy);
}

TEST(BoardMessageTest, AMessageTravelsAndTheWrongOnesAreRefused) {
  const BoardMessage message{
      .generation = ~std::uint64_t{0},
      .boards = {{.kind = BoardKind::kCpu,
                  .size = 77,
                  .devices = {{.name = "cpu:0"}, {.name = "gpu:0", .uuid = "GPU-1"}}}}};
  const Json json = ToJson(message);
  EXPECT_EQ(ParseBoardMessage(JsonText(json)).value(), message);
  for (const auto& [path, wrong] : {std::pair<const char*, Json>{"/schema", "zeus.board/2"},
                                    {"/generation", -1},
                                    {"/boards", 3},
                                    {"/boards/0/kind", "tpu"},
                                    {"/boards/0/size", "77"},
                                    {"/boards/0/devices/0/name", nullptr}}) {
    Json changed = json;
    changed[Json::json_pointer(path)] = wrong;
    EXPECT_FALSE(ParseBoardMessage(JsonText(changed)).ok()) << path;
  }
  EXPECT_FALSE(ParseBoardMessage("no JSON").ok());
}

}  // namespace board_layout_test
}  // namespace zeus::wire
