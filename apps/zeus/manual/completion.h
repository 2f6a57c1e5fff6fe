#pragma once

#include <string>

#include "apps/zeus/manual/description.h"

// Scripts with which shells complete verbs, options and their values. They contain all words, so
// that a shell need not start the program for each key.
namespace zeus::cli {

enum class Shell { kBash, kZsh, kFish };

std::string Completion(Shell shell, const VerbDescription& program);

}  // namespace zeus::cli
