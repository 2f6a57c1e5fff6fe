#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/units.h"

namespace zeus::testing {

// The bytes of a gpu_metrics file of 264 bytes. Versions from v1.4 on carry current power, older
// ones average power.
struct GpuMetricsFile {
  unsigned format = 1;
  unsigned content = 3;
  std::uint64_t energy = 0;
  std::uint16_t watts = 100;

  std::string Bytes() const;
};

// A sysfs tree with AMD cards, as amdgpu lays it out: an idle MI210-like board unless told
// otherwise.
class AmdgpuTree {
 public:
  const std::filesystem::path& sysfs() const { return directory_.path(); }

  // A card with all files, as card<number>.
  void AddCard(int number, const std::string& pci_address);

  // A device on the bus that has no card; `driver` may be empty.
  void AddBareDevice(const std::string& pci_address, const std::string& driver);

  // A node of the compute driver's topology; a CPU has no SIMD units.
  enum class NodeKind { kCpu, kGpu };
  void AddNode(int number, NodeKind kind, int bus);

  // Paths below the device directory, "hwmon/…" being its hwmon directory.
  std::filesystem::path File(int card, const std::string& file) const;
  void Set(int card, const std::string& file, std::string_view content);
  void Remove(int card, const std::string& file);
  std::string Get(int card, const std::string& file) const;

  // The counter of a card, in v1.3 of its file.
  void SetEnergy(int card, std::uint64_t ticks);

  // The driver of an MI250 gives this answer for the second die.
  void MakeSecondDie(int card);

  // The little of a kernel that time needs: the counter moves by power x time, and clocks obey
  // the levels that were chosen.
  void Advance(int card, Seconds by);

 private:
  TemporaryDirectory directory_;
};

}  // namespace zeus::testing
