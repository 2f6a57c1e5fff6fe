#include "zeus/device/privilege.h"

#include <unistd.h>

namespace zeus {

Privilege CurrentPrivilege() { return ::geteuid() == 0 ? Privilege::kRoot : Privilege::kUser; }

std::string_view RefusalAdvice(Privilege privilege) {
  return privilege == Privilege::kRoot
             ? "refused although this process is root: the container or the driver forbids it"
             : "needs root (CAP_SYS_ADMIN in containers)";
}

}  // namespace zeus
