#include "zeus/optimizer/pipeline/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/periodic_frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {
namespace problem_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string WhyNot(const Result<Problem>& problem) {
  return problem.ok() ? "it was accepted" : problem.error().message;
}

Schedule Custom(std::string_view text) { return ParseSchedule(text).value(); }

std::string Name(const Problem& problem, int computation) {
  const Computation& c = problem.computations[static_cast<std::size_t>(computation)];
  const char kind = problem.Kind(computation).instruction == kForward ? 'F' : 'B';
  return std::string(1, kind) + std::to_string(c.stage) + std::to_string(c.microbatch);
}

std::set<std::string> DescribeEdges(const Problem& problem) {
  std::set<std::string> edges;
  for (int from = 0; from < problem.graph.size(); ++from)
    for (const int to : problem.graph.Successors(from))
      edges.insert(Name(problem, from) + ">" + Name(problem, to));
  return edges;
}

void Add(PipelineProfile& profile, int stage, std::string_view name, double seconds,
         double joules) {
  profile.instructions.push_back(
      {stage, std::string(name), {{Hertz(), Seconds(seconds), Joules(joules)}}});
}

TEST(ProblemTest, ComputationsWaitForTheirStageAndForTheirInput) {
  const auto schedule = MakeSchedule("1f1b", {.stages = 2, .microbatches = 2});
  const auto problem = MakeProblem(SyntheticProfile(2), schedule.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_THAT(DescribeEdges(problem.value()),
              UnorderedElementsAre("F00>F01", "F01>B00", "B00>B01",  // Stage 0 in its order,
                                   "F10>B10", "B10>F11", "F11>B11",  // stage 1 in its order,
                                   "F00>F10", "F01>F11", "B10>B00", "B11>B01"));  // between them.
}

TEST(ProblemTest, FusedBackwardsWaitForTheNextStageToo) {
  const auto schedule = MakeSchedule("early_recompute", {.stages = 3, .microbatches = 4});
  PipelineProfile profile = SyntheticProfile(3);
  for (int stage = 0; stage < 3; ++stage) {
    Add(profile, stage, kForwardBackward, 0.09, 20);
    Add(profile, stage, kRecomputation, 0.03, 6);
  }
  const auto problem = MakeProblem(profile, schedule.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  int waits_for_next_stage = 0;
  for (int i = 0; i < problem.value().graph.size(); ++i) {
    const Computation& c = problem.value().computations[static_cast<std::size_t>(i)];
    const std::string& name = problem.value().Kind(i).instruction;
    if (name != kForwardBackward && name != kBackward) continue;
    const auto before = problem.value().graph.Predecessors(i);
    waits_for_next_stage += static_cast<int>(std::ranges::count_if(before, [&](int other) {
      return problem.value().computations[static_cast<std::size_t>(other)].stage == c.stage + 1;
    }));
  }
  EXPECT_EQ(waits_for_next_stage, 2 * 4);  // All backwards but those of the last stage.
}

TEST(ProblemTest, ChunksFollowEachOtherAroundTheRing) {
  const auto schedule = MakeSchedule("interleaved", {.stages = 2, .microbatches = 2, .chunks = 2});
  const auto problem = MakeProblem(SyntheticProfile(2), schedule.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  const auto find = [&](std::string_view name, int stage, int chunk) {
    for (int i = 0; i < problem.value().graph.size(); ++i) {
      const Computation& c = problem.value().computations[static_cast<std::size_t>(i)];
      if (problem.value().Kind(i).instruction == name && c.stage == stage && c.chunk == chunk &&
          c.microbatch == 1)
        return i;
    }
    return -1;
  };
  const auto waits_for = [&](int computation) {
    return problem.value().graph.Predecessors(computation);
  };
  EXPECT_THAT(waits_for(find(kForward, 0, 1)), ::testing::Contains(find(kForward, 1, 0)));
  EXPECT_THAT(waits_for(find(kBackward, 1, 0)), ::testing::Contains(find(kBackward, 0, 1)));
}

TEST(ProblemTest, InsertsConstantOperationsThatTheProfileKnows) {
  PipelineProfile profile = SyntheticProfile(2);
  Add(profile, 0, kDataLoad, 0.01, 1);
  Add(profile, 0, kTransfer, 0.002, 0.1);
  Add(profile, 1, kOptimizerStep, 0.05, 9);
  const auto schedule = MakeSchedule("gpipe", {.stages = 2, .microbatches = 2});
  const auto problem = MakeProblem(profile, schedule.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  const auto names = [&](int stage) {
    std::vector<std::string> all;
    for (const int i : problem.value().stage_order[static_cast<std::size_t>(stage)])
      all.push_back(problem.value().Kind(i).instruction);
    return all;
  };
  EXPECT_THAT(names(0),
              ElementsAre("data_load", "forward", "data_load", "forward", "backward", "backward"));
  EXPECT_THAT(names(1),
              ElementsAre("forward", "forward", "backward", "backward", "optimizer_step"));
  // Transfers are in no stage's order: forwards of two microbatches from stage 0.
  EXPECT_EQ(problem.value().graph.size(), 6 + 5 + 2);
}

TEST(ProblemTest, TransfersTakeTimeBetweenStagesWithoutOccupyingThem) {
  PipelineProfile profile{.stages = 2, .blocking_power = Watts(10)};
  Add(profile, 0, kForward, 1, 100);
  Add(profile, 1, kForward, 1, 100);
  Add(profile, 0, kTransfer, 0.5, 3);
  const auto problem = MakeProblem(profile, Custom("F0 F1\nF0 F1\n"));
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  const Evaluation evaluation = Evaluate(problem.value(), FastestChoice(problem.value()));
  EXPECT_DOUBLE_EQ(evaluation.time.count(), 3.5);
  // Four forwards, two transfers, and each stage blocks for 1.5 of the 3.5 seconds.
  EXPECT_DOUBLE_EQ(evaluation.energy.value(), 4 * 100 + 2 * 3 + 2 * 1.5 * 10);
}

TEST(ProblemTest, RefusesSchedulesThatContradictThemselves) {
  const PipelineProfile profile = SyntheticProfile(2);
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0 B0 F1 B1\nF1 F0 B0 B1\n"))),
              HasSubstr("can never finish: "));
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0 B0\nB0 F0\n"))),
              HasSubstr("before its forward"));
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0 F0\nF0\n"))),
              HasSubstr("forward of microbatch 0 on stage 0 twice"));
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0\nF0 F1\n"))),
              HasSubstr("forward of microbatch 1 on stage 1 but not on stage 0"));
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0\n"))), HasSubstr("2 stages"));
  EXPECT_THAT(WhyNot(MakeProblem(profile, Custom("F0 optimizer_step\nF0\n"))),
              HasSubstr("nothing about \"optimizer_step\" on stage 0"));
}

TEST(ProblemTest, NamesACircleOfComputations) {
  const auto graph = ComputationGraph::Of(4, {{0, 1}, {1, 2}, {2, 3}, {3, 1}},
                                          [](int i) { return std::to_string(i); });
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().message, HasSubstr("1 waits for 3 waits for 2 waits for 1"));
}

TEST(ProblemTest, ManyComputationsAreNoTroubleAndTooManyAreRefused) {
  const auto schedule = MakeSchedule("1f1b", {.stages = 16, .microbatches = 4096});
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  const auto problem = MakeProblem(SyntheticProfile(16), schedule.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_EQ(problem.value().graph.size(), kMostInstructions);
  EXPECT_THAT(MakeSchedule("1f1b", {.stages = 16, .microbatches = 32'768}).error().message,
              HasSubstr("1048576 instructions, more than the 131072"));
}

TEST(ResizableTest, GivesTheSamePipelineWithOtherMicrobatches) {
  for (const char* const name : {"1f1b", "gpipe"}) {
    const auto of_size = [&](int microbatches) {
      const auto schedule = MakeSchedule(name, {.stages = 3, .microbatches = microbatches});
      return MakeProblem(SyntheticProfile(3), schedule.value()).value();
    };
    const Problem problem = of_size(4);
    const auto resizable = Resizable(problem);
    ASSERT_TRUE(resizable) << name;
    const Problem larger = (*resizable)(9).value();
    EXPECT_EQ(DescribeEdges(larger), DescribeEdges(of_size(9))) << name;
    for (std::size_t i = 0; i < larger.kinds.size(); ++i)
      EXPECT_EQ(larger.kinds[i].instruction, problem.kinds[i].instruction) << name;
  }
}

TEST(ResizableTest, KnowsWhenAPipelineIsNotOneOfOurs) {
  const PipelineProfile profile = SyntheticProfile(2);
  const Problem custom = MakeProblem(profile, Custom("F0 F1 B1 B0\nF0 F1 B1 B0\n")).value();
  EXPECT_FALSE(Resizable(custom));
}

TEST(InstanceTest, TheGraphOfASharedInstanceIsTheOneWeBuild) {
  const auto path = InstanceDirectory() / "instances" / "gpt3_a100_8x32.json";
  const auto text = ReadSmallFile(path, 1 << 24);
  if (!text.ok()) GTEST_SKIP() << "needs the shared instances: " << text.error().message;
  const auto problem = ParseInstance(text.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  const auto schedule = MakeSchedule("1f1b", {.stages = 8, .microbatches = 32});
  const auto ours = MakeProblem(SyntheticProfile(8), schedule.value());
  EXPECT_EQ(DescribeEdges(problem.value()), DescribeEdges(ours.value()));
}

TEST(InstanceTest, NamesTheFieldThatIsWrong) {
  const auto why = [](std::string_view text) { return WhyNot(ParseInstance(text)); };
  const std::string good =
      R"({"num_stages": 1, "num_microbatches": 1, "p2p_power_w": 80,
          "specs": [{"stage": 0, "type": "forward",
                     "options_all": [{"freq": 1410, "time_s": 0.1, "energy_j": 20}]}],
          "nodes": [[0, 0, "F", 0]], "edges": []})";
  EXPECT_TRUE(ParseInstance(good).ok());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(why("{"), HasSubstr("JSON"));
  EXPECT_THAT(why("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(why(with("\"num_stages\": 1", "\"num_stages\": 0")), HasSubstr("num_stages"));
  EXPECT_THAT(why(with("\"num_stages\": 1", "\"num_stages\": 2")), HasSubstr("stage 1"));
  EXPECT_THAT(why(with("\"energy_j\": 20", "\"energy_j\": -20")), HasSubstr("-20 J"));
  EXPECT_THAT(why(with("[[0, 0, \"F\", 0]]", "[[0, 0, \"F\", 7]]")), HasSubstr("nodes[0]"));
  EXPECT_THAT(why(with("[[0, 0, \"F\", 0]]", "[]")), HasSubstr("nodes"));
  EXPECT_THAT(why(with("\"edges\": []", "\"edges\": [[0, 0]]")), HasSubstr("can never finish"));
  EXPECT_THAT(why(with("\"edges\": []", "\"edges\": [[0, 5]]")), HasSubstr("edges[0]"));
  EXPECT_THAT(why(with("\"edges\": []", "\"edges\": 3")), HasSubstr("edges: must be a list"));
  EXPECT_THAT(why(with("[[0, 0, \"F\", 0]]", "[[0, 0, \"F\", 0], [0, 1, \"F\", 0]]")),
              HasSubstr("node 0 and node 1 of stage 0 at the same time"));
  EXPECT_THAT(why(with("\"num_microbatches\": 1", "\"num_microbatches\": 0")),
              HasSubstr("num_microbatches"));
}

}  // namespace problem_test
}  // namespace zeus::pipeline
