#include "zeus/base/version.h"

namespace zeus {

// The only file that is compiled with the version, so that a new one compiles little again.
const char* Version() { return ZEUS_VERSION; }

}  // namespace zeus
