#pragma once

#include <vector>

#include "apps/zeus/manual/description.h"

namespace zeus::cli {

// The articles that `zeus help TOPIC` prints, and that become man pages in section 7.
std::vector<Topic> HelpTopics();

}  // namespace zeus::cli
