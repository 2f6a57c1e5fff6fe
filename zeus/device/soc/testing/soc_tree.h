#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/node.h"

namespace zeus::soc::testing {

// sysfs and procfs of a board, as files. Empty until parts are added.
class SocTree {
 public:
  Surroundings surroundings() {
    return {.clock = clock_,
            .sysfs = directory_.path() / "sys",
            .procfs = directory_.path() / "proc",
            .dev = directory_.path() / "dev",
            .environment = [](const std::string&) { return std::nullopt; }};
  }
  const std::filesystem::path& root() const { return directory_.path(); }

  std::filesystem::path Add(const std::string& file, const std::string& content) {
    return directory_.AddFile(file, content);
  }
  void Remove(const std::string& file) { std::filesystem::remove_all(directory_.path() / file); }

  // JetPack 5: a channel of an INA3221 below the hwmon driver.
  void AddHwmonRail(const std::string& chip, int channel, const std::string& label, int millivolts,
                    int milliamperes) {
    const std::string hwmon = fmt::format("sys/bus/i2c/drivers/ina3221/{}/hwmon/hwmon3/", chip);
    Add(fmt::format("{}in{}_label", hwmon, channel), label + "\n");
    Add(fmt::format("{}in{}_input", hwmon, channel), fmt::format("{}\n", millivolts));
    Add(fmt::format("{}curr{}_input", hwmon, channel), fmt::format("{}\n", milliamperes));
  }

  // JetPack 4: the same below the industrial I/O driver.
  void AddIioRail(const std::string& chip, int channel, const std::string& label, int milliwatts) {
    const std::string device = fmt::format("sys/bus/i2c/drivers/ina3221x/{}/iio:device0/", chip);
    Add(fmt::format("{}rail_name_{}", device, channel), label + "\n");
    Add(fmt::format("{}in_power{}_input", device, channel), fmt::format("{}\n", milliwatts));
  }

  // An ACPI power meter; `directory` is "hwmon2", or "hwmon2/device" as older kernels have it.
  void AddPowerMeter(const std::string& directory, const std::string& info,
                     const std::string& microwatts) {
    const std::string path = "sys/class/hwmon/" + directory + "/";
    Add(path + "name", "power_meter\n");
    Add(path + "power1_oem_info", info + "\n");
    Add(path + "power1_average", microwatts + "\n");
  }

  // An Intel card without hwmon.
  void AddCard(int number, const std::string& pci_address) {
    AddCardFile(number, "vendor", "0x8086");
    AddCardFile(number, "uevent", "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=" + pci_address);
  }
  void AddCardHwmon(int number, const std::string& file, const std::string& content) {
    AddCardFile(number, "hwmon/hwmon4/" + file, content);
  }
  void AddCardFile(int number, const std::string& file, const std::string& content) {
    Add(fmt::format("sys/class/drm/card{}/device/{}", number, file), content + "\n");
  }

 private:
  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
};

}  // namespace zeus::soc::testing
