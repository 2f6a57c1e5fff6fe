#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "zeus/client/node/board_view.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/wire/node/board_message.h"

namespace {

using namespace zeus;
using wire::board::Device;
using wire::board::Header;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// A device whose readings are those of a board.
class BoardMeter final : public EnergyMeter {
 public:
  explicit BoardMeter(client::DeviceView device) : device_(device) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { std::abort(); }
  Result<Watts> Power() override { std::abort(); }
  std::shared_ptr<ReadingFeed> Follow() override { return std::make_shared<Feed>(device_); }

 private:
  class Feed final : public ReadingFeed {
   public:
    explicit Feed(client::DeviceView device) : cursor_(device) {}
    bool HasNext(TimePoint /*now*/) override { return cursor_.HasNext(); }
    std::optional<TimedReading> Next(TimePoint now) override { return cursor_.Next(now); }

   private:
    client::UpdateCursor cursor_;
  };

  const client::DeviceView device_;
  const std::string name_ = "gpu:0";
};

// A board whose header is right, so that the fuzzer need not find it: what is in the records is
// his.
void ReadRecords(const std::uint8_t* data, std::size_t size) {
  const std::size_t whole = wire::board::SizeOf(1);
  const std::unique_ptr<void, Free> memory(std::aligned_alloc(64, whole));
  std::memset(memory.get(), 0, whole);
  auto* const header = static_cast<Header*>(memory.get());
  *header = {.magic = wire::board::kMagic,
             .version = wire::board::kVersion,
             .size = whole,
             .device_count = 1,
             .device_size = sizeof(Device),
             .updates = wire::board::kUpdates,
             .telemetry = wire::board::kTelemetry,
             .generation = 1};
  auto* const records = reinterpret_cast<char*>(header + 1);
  const std::size_t ring = offsetof(Device, ring);
  const std::size_t head = std::min(size, ring);
  std::memcpy(records, data, head);
  std::memcpy(records + ring, data + head, std::min(size - head, sizeof(Device) - ring));
  const auto view = client::BoardView::Check(memory.get(), whole);
  if (!view.ok()) __builtin_trap();
  const client::DeviceView& device = view.value().devices().front();
  (void)device.Newest();
  (void)device.NewestTelemetry();
  VirtualClock clock;
  clock.Advance(Seconds(10));
  BoardMeter meter(device);
  EnergyMonitor monitor(clock, {{.meter = &meter}});
  if (!monitor.BeginWindow("w").ok()) __builtin_trap();
  clock.Advance(Seconds(1));
  (void)monitor.EndWindow("w");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)wire::ParseBoardMessage({reinterpret_cast<const char*>(data), size});
  const std::unique_ptr<void, Free> copy(std::aligned_alloc(64, (size / 64 + 1) * 64));
  std::memcpy(copy.get(), data, size);
  (void)client::BoardView::Check(copy.get(), size);
  ReadRecords(data, size);
  return 0;
}
