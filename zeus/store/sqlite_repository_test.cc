#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/store/open_repository.h"
#include "zeus/store/testing/repository_concurrency.h"
#include "zeus/store/testing/repository_conformance.h"

namespace zeus::testing {
namespace {

RepositoryHarness InAFile() {
  auto folder = std::make_shared<TemporaryDirectory>();
  const std::string url = "sqlite://" + (folder->path() / "zeus.db").string();
  return {folder, [url] { return OpenRepository(url); }};
}

RepositoryHarness InMemory() {
  return {nullptr, [] { return OpenRepository("sqlite::memory:"); }};
}

const auto kCases =
    ::testing::Values(RepositoryCase{"File", InAFile}, RepositoryCase{"Memory", InMemory, false});

INSTANTIATE_TEST_SUITE_P(Sqlite, RepositoryConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, RepositoryConcurrency, kCases, NameOfRepositoryCase());

}  // namespace
}  // namespace zeus::testing
