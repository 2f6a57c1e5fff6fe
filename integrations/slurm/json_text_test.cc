#include "integrations/slurm/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace zeus::slurm {
namespace json_text_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kJob = R"({"cpu": {"energy_joules": 1.5}, "text": "a\"}b",
  "steps": {"0": {"energy_joules": 42.25}, "batch": {"energy_joules": null}}, "devices": ["GPU-1", "GPU-2"]})";

TEST(FindJsonTest, ValuesAreFoundByTheNamesAboveThem) {
  EXPECT_EQ(FindJsonNumber(kJob, {"steps", "0", "energy_joules"}), 42.25);
  EXPECT_EQ(FindJsonNumber(kJob, {"cpu", "energy_joules"}), 1.5);
  EXPECT_EQ(FindJson(kJob, {"text"}), R"("a\"}b")");
}

TEST(FindJsonTest, WhatIsNotThereIsNothing) {
  EXPECT_EQ(FindJsonNumber(kJob, {"energy_joules"}), std::nullopt);
  EXPECT_EQ(FindJsonNumber(kJob, {"steps", "batch", "energy_joules"}), std::nullopt);
  EXPECT_EQ(FindJsonNumber(kJob, {"steps", "7", "energy_joules"}), std::nullopt);
  EXPECT_EQ(FindJson("", {"steps"}), std::nullopt);
}

TEST(FindJsonTest, NoBeginningOfATextIsReadBeyondItsEnd) {
  for (std::size_t size = 0; size < kJob.size(); ++size) {
    const std::string part(kJob.substr(0, size));  // A copy, so that a sanitizer sees its end.
    const auto found = FindJsonNumber(part, {"steps", "0", "energy_joules"});
    EXPECT_EQ(found.value_or(42.25), 42.25);
    (void)JsonElements(part);
  }
}

TEST(FindJsonTest, DamagedTextsAreReadToTheirEndAtMost) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text(kJob);
    for (int i = 0; i < 4; ++i) text[random() % text.size()] = R"({}[]",:\0)"[random() % 9];
    (void)FindJsonNumber(text, {"steps", "0", "energy_joules"});
    for (const std::string_view element : JsonElements(text)) (void)ToPlainText(element);
  }
}

TEST(FindJsonTest, DeepNestingIsRefused) {
  EXPECT_EQ(FindJson("{\"a\":" + std::string(1000, '['), {"a"}), std::nullopt);
}

TEST(JsonElementsTest, AnArrayHasItsElements) {
  EXPECT_THAT(JsonElements(*FindJson(kJob, {"devices"})), ElementsAre("\"GPU-1\"", "\"GPU-2\""));
  EXPECT_THAT(JsonElements("[]"), IsEmpty());
  EXPECT_THAT(JsonElements("[1, {\"a\": [2, 3]}]"), ElementsAre("1", "{\"a\": [2, 3]}"));
}

TEST(ToJsonTextTest, TextsAreShortAndPlain) {
  EXPECT_EQ(ToJsonText("my \"job\"\n\\ ü"), R"("my \"job\"?\\ ??")");
  EXPECT_EQ(ToJsonText(std::string(1000, 'a')).size(), 202U);
}

}  // namespace json_text_test
}  // namespace zeus::slurm
