#include "zeus/store/pq_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace zeus {
namespace pq_api_test {

using ::testing::HasSubstr;

TEST(PqApiTest, ThreadsThatLoadAtTheSameTimeGetTheSameFunctions) {
  constexpr int kThreads = 8;
  std::vector<PqApi> tables(kThreads);
  std::vector<std::thread> threads;
  for (PqApi& table : tables)
    threads.emplace_back([&table] {
      const auto loaded = LoadPq();
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      table = loaded.value();
    });
  for (std::thread& thread : threads) thread.join();
  for (const PqApi& table : tables) {
    EXPECT_NE(table.connect, nullptr);
    EXPECT_EQ(table.connect, tables.front().connect);
  }
}

TEST(PqApiTest, WithoutTheLibraryTheErrorNamesThePackageToInstall) {
  const auto loaded = LoadPq("libpq-none.so.5");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(loaded.error().message, "libpq-none.so.5 not found: apt-get install libpq5");
}

TEST(PqApiTest, ALibraryThatLacksFunctionsIsRefused) {
  const auto loaded = LoadPq("libc.so.6");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(loaded.error().message,
              HasSubstr("libc.so.6 is not libpq 14 or newer: it lacks PQconninfoParse"));
}

}  // namespace pq_api_test
}  // namespace zeus
