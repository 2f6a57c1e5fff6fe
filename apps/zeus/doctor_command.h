#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddDoctorCommand(Verb app, Action& action);

}  // namespace zeus::cli
