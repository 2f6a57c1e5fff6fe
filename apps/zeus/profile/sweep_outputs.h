#pragma once

#include "apps/zeus/profile/profile_options.h"
#include "apps/zeus/profile/sweep_report.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Whether all files can be written: found out before the command has cost an hour.
Status CheckFiles(const ProfileFiles& files);

// Writes all of them; the first error.
Status WriteResults(const SweepReport& report, const ProfileFiles& files);

// Table and plot on standard error, as plain as that can show.
void ShowResults(const SweepReport& report);

}  // namespace zeus::cli
