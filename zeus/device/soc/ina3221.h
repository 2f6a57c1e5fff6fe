#pragma once

#include <filesystem>

#include "zeus/device/node.h"

namespace zeus::soc {

// The rails that the INA3221 chips of a Jetson measure, named as the board labels them
// ("rail:VDD_CPU_GPU_CV": a combined rail stays one). Both drivers are read: hwmon (JetPack 5 and
// later) and industrial I/O (JetPack 4). Rails that cannot be read are absent with the reason.
void FindIna3221Rails(const std::filesystem::path& sysfs, Findings& findings);

}  // namespace zeus::soc
