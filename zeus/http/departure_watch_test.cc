#include "zeus/http/departure_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace zeus::http {
namespace departure_watch_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~Pair() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  int ends[2] = {-1, -1};
};

TEST(DepartureWatchTest, EachDepartureIsReportedOnceAlsoBehindUnreadBytes) {
  auto watch = DepartureWatch::Start().value();
  Pair stays;
  Pair closes;
  Pair shuts;
  ASSERT_TRUE(watch.Add(stays.ends[0], 1).ok());
  ASSERT_TRUE(watch.Add(closes.ends[0], 2).ok());
  ASSERT_TRUE(watch.Add(shuts.ends[0], 3).ok());
  for (Pair* pair : {&stays, &closes, &shuts}) ASSERT_EQ(::write(pair->ends[1], "x", 1), 1);
  EXPECT_THAT(watch.Take(), IsEmpty());
  ::close(closes.ends[1]);
  closes.ends[1] = -1;
  EXPECT_THAT(watch.Take(), ElementsAre(2));
  ::shutdown(shuts.ends[1], SHUT_WR);
  EXPECT_THAT(watch.Take(), ElementsAre(3));
  EXPECT_THAT(watch.Take(), IsEmpty());
}

TEST(DepartureWatchTest, ManyDeparturesAtOnceAreAllReported) {
  auto watch = DepartureWatch::Start().value();
  std::vector<Pair> pairs(200);
  for (std::size_t i = 0; i < pairs.size(); ++i) ASSERT_TRUE(watch.Add(pairs[i].ends[0], i).ok());
  for (Pair& pair : pairs) ::shutdown(pair.ends[1], SHUT_RDWR);
  EXPECT_EQ(watch.Take().size(), 200U);
}

TEST(DepartureWatchTest, AClosedDescriptorCannotBeWatched) {
  EXPECT_FALSE(DepartureWatch::Start().value().Add(-1, 1).ok());
}

}  // namespace departure_watch_test
}  // namespace zeus::http
