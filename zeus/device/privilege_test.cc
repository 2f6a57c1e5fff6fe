#include "zeus/device/privilege.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "zeus/base/testing/unprivileged.h"

namespace zeus {
namespace privilege_test {

TEST(PrivilegeTest, OnlyOthersAreToldToBecomeRootOrToAskTheDaemon) {
  EXPECT_EQ(RefusalAdvice(Privilege::kUser),
            "needs root (CAP_SYS_ADMIN in containers), or zeusd: see docs/daemon.md");
  EXPECT_EQ(RefusalAdvice(Privilege::kRoot),
            "refused although this process has CAP_SYS_ADMIN: the container or the driver forbids "
            "it");
}

TEST(PrivilegeTest, TheAdviceIsForThisProcess) {
  EXPECT_EQ(RefusalAdvice(), RefusalAdvice(CurrentPrivilege()));
}

TEST(PrivilegeTest, AChangeOfTheUserIsSeenAtOnce) {
  if (CurrentPrivilege() != Privilege::kRoot) GTEST_SKIP() << "only root can give its power up";
  {
    const zeus::testing::Unprivileged nobody;
    if (!nobody.effective()) GTEST_SKIP() << "root may not become somebody else here";
    EXPECT_EQ(CurrentPrivilege(), Privilege::kUser);
  }
  EXPECT_EQ(CurrentPrivilege(), Privilege::kRoot);
}

}  // namespace privilege_test
}  // namespace zeus
