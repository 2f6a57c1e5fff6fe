#include "zeus/client/node/board_view.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace zeus::client {
namespace board_view_test {

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class BoardViewTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = wire::board::SizeOf(1);
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  wire::board::Header& header() { return *static_cast<wire::board::Header*>(memory_.get()); }
  Result<BoardView> Check() { return BoardView::Check(memory_.get(), kSize); }

  void SetUp() override {
    std::memset(memory_.get(), 0, kSize);
    header() = {.magic = wire::board::kMagic,
                .version = wire::board::kVersion,
                .size = kSize,
                .device_count = 1,
                .device_size = sizeof(wire::board::Device),
                .updates = wire::board::kUpdates,
                .telemetry = wire::board::kTelemetry,
                .generation = 7};
  }
  std::unique_ptr<void, Free> memory_{std::aligned_alloc(64, kSize)};
};

TEST_F(BoardViewTest, ABoardIsTakenOnlyWithTheHeaderThatItMustHave) {
  ASSERT_TRUE(Check().ok());
  EXPECT_EQ(Check().value().generation(), 7U);
  using wire::board::Header;
  for (std::uint64_t Header::*field :
       {&Header::magic, &Header::version, &Header::size, &Header::device_count,
        &Header::device_size, &Header::updates, &Header::telemetry}) {
    const std::uint64_t right = header().*field;
    for (const std::uint64_t wrong : {right + 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
      header().*field = wrong;
      EXPECT_FALSE(Check().ok());
    }
    header().*field = right;
  }
  EXPECT_FALSE(BoardView::Check(memory_.get(), kSize - 1).ok());
  EXPECT_FALSE(BoardView::Check(memory_.get(), 8).ok());
}

TEST_F(BoardViewTest, ACountThatIsALieCostsNoMoreThanOneTurnOfTheRing) {
  UpdateCursor cursor(Check().value().devices()[0]);
  auto& device = *reinterpret_cast<wire::board::Device*>(static_cast<std::byte*>(memory_.get()) +
                                                         sizeof(wire::board::Header));
  device.updates.store(~std::uint64_t{0} - 1);
  EXPECT_TRUE(cursor.HasNext());
  EXPECT_FALSE(cursor.Next(At(1)));
  device.updates.store(3);
  EXPECT_FALSE(cursor.Next(At(1)));
}

}  // namespace board_view_test
}  // namespace zeus::client
