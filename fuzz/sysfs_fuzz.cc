// Parses the kernel's texts about CPUs, zones, boards and cards. Besides not crashing, a parser
// must keep its promises about what it accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "zeus/base/text.h"
#include "zeus/device/rapl/rapl_text.h"
#include "zeus/device/soc/soc_discovery.h"
#include "zeus/device/sysfs.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

void FuzzNumbers(std::string_view text) {
  (void)zeus::ParseInteger(zeus::Trim(text));
  (void)zeus::ParseUnsigned(zeus::Trim(text));
  (void)zeus::ParseUnsigned(text, 16);
  if (const auto scale = zeus::rapl::ParseEventScale(text); scale.ok())
    Require(scale.value() > 0.0 && scale.value() <= 1.0);
}

void FuzzRapl(std::string_view text) {
  (void)zeus::rapl::ParseEventConfig(text);
  if (const auto cpus = zeus::rapl::ParseCpuList(text); cpus.ok()) {
    Require(!cpus.value().empty());
    int last = -1;
    for (const int cpu : cpus.value()) {
      Require(cpu > last);
      last = cpu;
    }
  }
  if (const auto id = zeus::rapl::ParseZoneId(text); id.ok()) Require(!id.value().path.empty());
  if (const auto name = zeus::rapl::ParseZoneName(text); name.ok())
    Require(name.value().package >= 0 && name.value().die >= 0);
  for (const auto& [package, model] : zeus::rapl::ParseCpuInfo(text).model_of_package)
    Require(package >= 0 && zeus::IsPrintable(model));
}

void FuzzSoc(std::string_view text) {
  for (const auto& [key, value] : zeus::soc::ParseUevent(text))
    Require(zeus::IsPrintable(key) && zeus::IsPrintable(value));
  if (const auto name = zeus::soc::ParseGraceSensorName(text); name.ok())
    Require(name.value().socket >= 0);
  (void)zeus::soc::RailRole(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  FuzzNumbers(text);
  FuzzRapl(text);
  FuzzSoc(text);
  return 0;
}
