#pragma once

#include <filesystem>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Writes what a report of a mistake needs into one archive: versions, the findings of the doctor,
// the machine, the answers of the driver, configuration, journal of knobs and the last lines of the
// node daemon's log. Identities and secrets are taken out. Prints what is inside.
Status WriteDoctorBundle(const std::filesystem::path& path, const Json& findings);

}  // namespace zeus::cli
