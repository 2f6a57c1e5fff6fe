#include "zeus/device/privilege.h"

#include <gtest/gtest.h>

namespace zeus {
namespace privilege_test {

TEST(PrivilegeTest, OnlyOthersAreToldToBecomeRoot) {
  EXPECT_EQ(RefusalAdvice(Privilege::kUser), "needs root (CAP_SYS_ADMIN in containers)");
  EXPECT_EQ(RefusalAdvice(Privilege::kRoot),
            "refused although this process is root: the container or the driver forbids it");
}

TEST(PrivilegeTest, TheAdviceIsForThisProcess) {
  EXPECT_EQ(RefusalAdvice(), RefusalAdvice(CurrentPrivilege()));
}

}  // namespace privilege_test
}  // namespace zeus
