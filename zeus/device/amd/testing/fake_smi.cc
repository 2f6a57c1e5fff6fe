#include "zeus/device/amd/testing/fake_smi.h"

#include <array>
#include <cassert>
#include <cstring>
#include <utility>

namespace zeus::testing {
namespace {

FakeSmi* current = nullptr;

constexpr std::uint32_t kInvalidArguments = 1;

FakeSmi::FakeBoard* BoardAt(std::uint64_t index) {
  return index < current->boards.size() ? &current->boards[index] : nullptr;
}

// AMD SMI's handles: the first board is 1, so that none is null.
FakeSmi::FakeBoard* ToBoard(void* processor) {
  return BoardAt(reinterpret_cast<std::uintptr_t>(processor) - 1);
}

std::uint32_t ReadEnergy(const FakeSmi::FakeBoard* board, std::uint64_t* ticks, float* tick,
                         std::uint64_t* nanoseconds) {
  if (board == nullptr) return kInvalidArguments;
  *ticks = board->energy;
  *tick = board->microjoules_per_tick;
  *nanoseconds = 1;
  return current->energy_status;
}

std::uint32_t WriteCap(FakeSmi::FakeBoard* board, std::uint64_t cap) {
  if (board == nullptr) return kInvalidArguments;
  if (current->set_status == 0) board->cap = cap;
  return current->set_status;
}

// Reads one member of the board at an index.
template <std::uint64_t FakeSmi::FakeBoard::*kMember>
std::uint32_t Get(std::uint32_t index, std::uint64_t* value) {
  const auto* board = BoardAt(index);
  if (board == nullptr) return kInvalidArguments;
  *value = board->*kMember;
  return 0;
}

template <std::uint64_t FakeSmi::FakeBoard::*kMember>
std::uint32_t GetOfSensor(std::uint32_t index, std::uint32_t /*sensor*/, std::uint64_t* value) {
  return Get<kMember>(index, value);
}

}  // namespace

FakeSmi::FakeSmi(std::vector<FakeBoard> boards_behind) : boards(std::move(boards_behind)) {
  assert(current == nullptr);
  current = this;
}

FakeSmi::~FakeSmi() { current = nullptr; }

amd::RocmSmiApi FakeSmi::Rocm() {
  amd::RocmSmiApi api;
  api.init = [](std::uint64_t) -> std::uint32_t {
    ++current->initialised;
    return 0;
  };
  api.shut_down = []() -> std::uint32_t {
    --current->initialised;
    return 0;
  };
  api.num_monitor_devices = [](std::uint32_t* count) -> std::uint32_t {
    *count = static_cast<std::uint32_t>(current->boards.size());
    return 0;
  };
  api.dev_pci_id_get = Get<&FakeBoard::bus_id>;
  api.dev_name_get = [](std::uint32_t, char* name, std::size_t size) -> std::uint32_t {
    std::strncpy(name, "Fake board", size);
    return 0;
  };
  api.dev_unique_id_get = Get<&FakeBoard::bus_id>;
  api.dev_energy_count_get = [](std::uint32_t index, std::uint64_t* ticks, float* tick,
                                std::uint64_t* nanoseconds) {
    return ReadEnergy(BoardAt(index), ticks, tick, nanoseconds);
  };
  api.dev_power_ave_get = GetOfSensor<&FakeBoard::average_microwatts>;
  api.dev_power_cap_get = GetOfSensor<&FakeBoard::cap>;
  api.dev_power_cap_default_get = Get<&FakeBoard::cap_default>;
  api.dev_power_cap_range_get = [](std::uint32_t index, std::uint32_t, std::uint64_t* max,
                                   std::uint64_t* min) -> std::uint32_t {
    const auto status = Get<&FakeBoard::cap_max>(index, max);
    return status != 0 ? status : Get<&FakeBoard::cap_min>(index, min);
  };
  api.dev_power_cap_set = [](std::uint32_t index, std::uint32_t, std::uint64_t cap) {
    return WriteCap(BoardAt(index), cap);
  };
  return api;
}

amd::AmdSmiApi FakeSmi::Amd() {
  amd::AmdSmiApi api;
  api.init = Rocm().init;
  api.shut_down = Rocm().shut_down;
  // One socket per board, as on real machines.
  api.get_socket_handles = [](std::uint32_t* count, void** sockets) -> std::uint32_t {
    *count = static_cast<std::uint32_t>(current->boards.size());
    for (std::uintptr_t i = 0; sockets != nullptr && i < *count; ++i)
      sockets[i] = reinterpret_cast<void*>(i + 1);  // NOLINT(performance-no-int-to-ptr)
    return 0;
  };
  api.get_processor_handles = [](void* socket, std::uint32_t* count,
                                 void** processors) -> std::uint32_t {
    *count = 1;
    if (processors != nullptr) processors[0] = socket;
    return 0;
  };
  api.get_gpu_bdf_id = [](void* processor, std::uint64_t* bdf) -> std::uint32_t {
    *bdf = ToBoard(processor)->bus_id;
    return 0;
  };
  api.get_energy_count = [](void* processor, std::uint64_t* ticks, float* tick,
                            std::uint64_t* nanoseconds) {
    return ReadEnergy(ToBoard(processor), ticks, tick, nanoseconds);
  };
  api.get_power_cap_info = [](void* processor, std::uint32_t, void* info) -> std::uint32_t {
    const auto* board = ToBoard(processor);
    const std::array<std::uint64_t, 8> values = {
        board->cap, board->cap_default, 0, board->cap_min, board->cap_max, 0, 0, 0};
    std::memcpy(info, values.data(), sizeof(values));
    return 0;
  };
  api.set_power_cap = [](void* processor, std::uint32_t, std::uint64_t cap) {
    return WriteCap(ToBoard(processor), cap);
  };
  return api;
}

}  // namespace zeus::testing
