#include "zeus/gateway/model_router.h"

#include <gmock/gmock.h>

namespace zeus::gateway::model_router_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelRouterTest, OneUpstreamGetsEverything) {
  const ModelRouter router({{.name = "a"}});
  EXPECT_EQ(router.Choose("anything").value(), 0U);
  EXPECT_EQ(router.Choose("").value(), 0U);
}

TEST(ModelRouterTest, ModelsDecideAmongSeveral) {
  ModelRouter router({{.name = "a", .models = {"declared"}}, {.name = "b"}});
  router.SetListed(1, {"llama3:latest", "declared"});
  EXPECT_EQ(router.Choose("declared").value(), 0U);
  EXPECT_EQ(router.Choose("llama3").value(), 1U);
  EXPECT_EQ(router.Choose("").value(), 0U);
  const auto unknown = router.Choose("gpt");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("declared, llama3:latest"));
}

TEST(ModelRouterTest, AnUpstreamThatListedNothingMayHaveTheModel) {
  ModelRouter router({{.name = "a"}, {.name = "b"}});
  router.SetListed(0, {"x"});
  EXPECT_EQ(router.Choose("y").value(), 1U);
}

TEST(ModelRouterTest, ListsAreReadAndCombined) {
  EXPECT_THAT(ParseModelList(R"({"data": [{"id": "a"}, {"no": 1}, 5, {"id": "b"}]})").value(),
              ElementsAre("a", "b"));
  EXPECT_FALSE(ParseModelList("{}").has_value());
  EXPECT_FALSE(ParseModelList("oops").has_value());
  const std::vector<Result<Fetched>> answers = {
      Fetched{200, R"({"data": [{"id": "a", "owned_by": "x"}]})"}, Fetched{500, "oops"},
      Error{ErrorCode::kUnavailable, "down"},
      Fetched{200, R"({"data": [{"id": "a"}, {"id": "b"}]})"}};
  EXPECT_EQ(CombineModelLists(answers).value(),
            R"({"object":"list","data":[{"id":"a","owned_by":"x"},{"id":"b"}]})");
  const auto none = CombineModelLists({Error{ErrorCode::kUnavailable, "down"}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "down");
}

TEST(ModelRouterTest, ModelsAreFoundInBodies) {
  EXPECT_EQ(ModelInBody(R"({"input": 1, "model": "m"})"), "m");
  EXPECT_EQ(ModelInBody(R"({"model": 5})"), "");
  EXPECT_EQ(ModelInBody("[]"), "");
}

TEST(ModelRouterTest, GaugesOfEnginesAreRead) {
  EXPECT_EQ(RunningRequestsInMetrics("# HELP x\nvllm:num_requests_running{m=\"a b\"} 3.0\n"
                                     "vllm:num_requests_running{m=\"c\"} 2 1700000\n"),
            5.0);
  EXPECT_EQ(RunningRequestsInMetrics("llamacpp:requests_processing 1\n"), 1.0);
  EXPECT_EQ(RunningRequestsInMetrics("vllm:num_requests_waiting 1\n"), std::nullopt);
  EXPECT_EQ(RunningRequestsInMetrics("vllm:num_requests_running oops\n"), std::nullopt);
}

}  // namespace
}  // namespace zeus::gateway::model_router_test
