#include "zeus/device/privilege.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace zeus {

Privilege CurrentPrivilege() {
  // glibc has no wrapper, and libcap would be a dependency for one call.
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return Privilege::kUser;
  const auto& set = sets[CAP_TO_INDEX(CAP_SYS_ADMIN)];
  const bool may = (set.effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
  return may ? Privilege::kRoot : Privilege::kUser;
}

std::string_view RefusalAdvice(Privilege privilege) {
  return privilege == Privilege::kRoot
             ? "refused although this process has CAP_SYS_ADMIN: the container or the driver "
               "forbids it"
             : kPrivilegeNeeded;
}

}  // namespace zeus
