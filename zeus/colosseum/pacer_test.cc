#include "zeus/colosseum/pacer.h"

#include <gtest/gtest.h>

#include <string>

namespace zeus::colosseum {
namespace pacer_test {

using std::chrono::milliseconds;
using Shown = std::array<std::size_t, 2>;

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

TEST(PacerTest, TheSlowerAnswerSetsThePace) {
  Pacer pacer(Pace::kTogether, 1000);
  EXPECT_EQ(pacer.Release({{{500, false}, {0, false}}}, At(0)), (Shown{0, 0}));
  EXPECT_EQ(pacer.Release({{{500, false}, {3, false}}}, At(1)), (Shown{3, 3}));
  EXPECT_EQ(pacer.Release({{{900, true}, {10, false}}}, At(2)), (Shown{10, 10}));
}

TEST(PacerTest, TheRestOfALongerAnswerComesAtABoundedRate) {
  Pacer pacer(Pace::kTogether, 100);
  pacer.Release({{{10, true}, {10, false}}}, At(0));
  EXPECT_EQ(pacer.Release({{{10, true}, {500, true}}}, At(1)), (Shown{10, 100}));
  EXPECT_EQ(pacer.Release({{{10, true}, {500, true}}}, At(3)), (Shown{10, 300}));
  EXPECT_EQ(pacer.Release({{{10, true}, {500, true}}}, At(9)), (Shown{10, 500}));
}

TEST(PacerTest, SwappingTheSidesSwapsNothingElse) {
  // As long as neither is complete, nobody can see which of them is the slower one.
  Pacer one(Pace::kTogether, 100);
  Pacer other(Pace::kTogether, 100);
  for (int i = 0; i < 50; ++i) {
    const Arrival quick{static_cast<std::size_t>(40 * i), false};
    const Arrival slow{static_cast<std::size_t>(3 * i), false};
    EXPECT_EQ(one.Release({quick, slow}, At(i)), other.Release({slow, quick}, At(i)));
  }
}

TEST(PacerTest, HeldShowsNothingBeforeBothAreComplete) {
  Pacer pacer(Pace::kHeld, 100);
  pacer.Release({{{0, false}, {0, false}}}, At(0));
  EXPECT_EQ(pacer.Release({{{500, true}, {499, false}}}, At(10)), (Shown{0, 0}));
  EXPECT_EQ(pacer.Release({{{500, true}, {499, true}}}, At(11)), (Shown{100, 100}));
}

TEST(PacerTest, RawShowsWhatHasArrived) {
  Pacer pacer(Pace::kRaw, 1);
  EXPECT_EQ(pacer.Release({{{500, false}, {3, false}}}, At(0)), (Shown{500, 3}));
}

TEST(PacerTest, WhatWasShownStaysShown) {
  Pacer pacer(Pace::kTogether, 1000);
  pacer.Release({{{5, false}, {5, false}}}, At(0));
  EXPECT_EQ(pacer.Release({{{5, false}, {5, false}}}, At(1)), (Shown{5, 5}));
  EXPECT_EQ(pacer.Release({{{5, false}, {5, false}}}, At(0.5)), (Shown{5, 5}));
}

TEST(ArrivingTextTest, CharactersAreCountedAndCutWhole) {
  ArrivingText text;
  text.Append("a\xC3");
  EXPECT_EQ(text.characters(), 1U);
  text.Append("\xA4z");
  text.Append("\xF0\x9F\x98");
  text.Append("\x80!");
  EXPECT_EQ(text.text(), "a\xC3\xA4z\xF0\x9F\x98\x80!");
  EXPECT_EQ(text.characters(), 5U);
  EXPECT_EQ(text.ByteOffset(1), 1U);
  EXPECT_EQ(text.ByteOffset(2), 3U);
  EXPECT_EQ(text.ByteOffset(4), 8U);
  EXPECT_EQ(text.ByteOffset(99), 9U);
}

TEST(ArrivingTextTest, BrokenBytesBecomeReplacementCharacters) {
  ArrivingText text;
  text.Append("a\xFFz\xC3(\xED\xA0\x80");
  text.Append("\xE2\x82");
  text.Finish();
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(text.text(), "a" + bad + "z" + bad + "(" + bad + bad + bad + bad);
}

TEST(ArrivingTextTest, ZeroBytesAreReplaced) {
  ArrivingText text;
  text.Append(std::string_view("a\0b", 3));
  EXPECT_EQ(text.text(),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(ArrivingTextTest, EveryCutGivesTheSameText) {
  const std::string whole = "na\xC3\xAFve \xF0\x9F\x98\x80 \xE2\x82\xAC \xC3( end";
  ArrivingText expected;
  expected.Append(whole);
  for (std::size_t i = 0; i <= whole.size(); ++i) {
    ArrivingText text;
    text.Append(std::string_view(whole).substr(0, i));
    text.Append(std::string_view(whole).substr(i));
    EXPECT_EQ(text.text(), expected.text()) << i;
    EXPECT_EQ(text.characters(), expected.characters()) << i;
  }
}

}  // namespace pacer_test
}  // namespace zeus::colosseum
