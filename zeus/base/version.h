#pragma once

namespace zeus {

// The version of Zeus, as in "0.1.0".
const char* Version();

}  // namespace zeus
