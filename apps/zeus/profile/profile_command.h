#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `tail` must outlive the app; it holds the command to run.
void AddProfileCommand(Verb app, Action& action, const CommandTail& tail);

}  // namespace zeus::cli
