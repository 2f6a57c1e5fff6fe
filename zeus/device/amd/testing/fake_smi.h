#pragma once

#include <cstdint>
#include <vector>

#include "zeus/device/amd/smi.h"

namespace zeus::testing {

// Boards behind fake function tables of both libraries. The functions of a table carry no state,
// so one instance at a time stands behind all tables.
class FakeSmi {
 public:
  struct FakeBoard {
    std::uint64_t bus_id = 0x0300;  // Bus 03, device 0, function 0.
    std::uint64_t energy = 65536;
    float microjoules_per_tick = 15.3F;
    std::uint64_t average_microwatts = 90'000'000;
    std::uint64_t cap_min = 100'000'000;
    std::uint64_t cap_max = 300'000'000;
    std::uint64_t cap_default = 300'000'000;
    std::uint64_t cap = 300'000'000;
  };

  explicit FakeSmi(std::vector<FakeBoard> boards_behind);
  ~FakeSmi();
  FakeSmi(const FakeSmi&) = delete;
  FakeSmi& operator=(const FakeSmi&) = delete;

  // Complete tables; a test removes what an old library lacks.
  static amd::RocmSmiApi Rocm();
  static amd::AmdSmiApi Amd();

  std::vector<FakeBoard> boards;
  std::uint32_t energy_status = 0;
  std::uint32_t set_status = 0;
  int initialised = 0;  // Starts minus shut-downs.
};

}  // namespace zeus::testing
