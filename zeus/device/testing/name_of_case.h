#pragma once

#include <gtest/gtest.h>

#include <string>

namespace zeus::testing {

// Names the instances of a parameterised test after the `name` of their parameter.
struct NameOfCase {
  template <class Case>
  std::string operator()(const ::testing::TestParamInfo<Case>& tested) const {
    return tested.param.name;
  }
};

}  // namespace zeus::testing
