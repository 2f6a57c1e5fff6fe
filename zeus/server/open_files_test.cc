#include "zeus/server/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace zeus::server {
namespace open_files_test {

TEST(OpenFilesTest, ConnectionsFollowTheLimitOfOpenFiles) {
  EXPECT_EQ(ConnectionsWithin(1024), 896U);
  EXPECT_EQ(ConnectionsWithin(4096), 3968U);
  EXPECT_EQ(ConnectionsWithin(100), 16U);
  EXPECT_EQ(ConnectionsWithin(RLIM_INFINITY), 10'000U);
  ::rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(ConnectionsByOpenFiles(), ConnectionsWithin(limit.rlim_cur));
}

}  // namespace open_files_test
}  // namespace zeus::server
