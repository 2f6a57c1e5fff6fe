// Compares Student's distribution with that of Boost.Math, which the tests have and the command has
// not (docs/adr/0030-libraries-or-our-own.md).
#if __has_include(<boost/math/distributions/students_t.hpp>)

#include <boost/math/distributions/students_t.hpp>
#include <gtest/gtest.h>

#include <cmath>

#include "zeus/base/statistics.h"

namespace zeus {
namespace statistics_reference_test {

TEST(StudentReferenceTest, CumulativeIsThatOfBoost) {
  for (const double degrees : {1.0, 1.5, 2.0, 3.7, 10.0, 29.3, 1e3, 1e5}) {
    const boost::math::students_t reference(degrees);
    for (const double t : {-40.0, -3.0, -1.0, -1e-3, 0.0, 0.5, 1.96, 4.0, 100.0}) {
      EXPECT_NEAR(StudentCumulative(t, degrees), boost::math::cdf(reference, t), 1e-8)
          << t << " with " << degrees;
    }
  }
}

TEST(StudentReferenceTest, QuantileIsThatOfBoost) {
  for (const double degrees : {1.0, 1.5, 2.0, 3.7, 10.0, 29.3, 1e3, 1e5}) {
    const boost::math::students_t reference(degrees);
    for (const double probability : {1e-4, 0.025, 0.3, 0.5, 0.8, 0.95, 0.999}) {
      const double expected = boost::math::quantile(reference, probability);
      EXPECT_NEAR(StudentQuantile(probability, degrees), expected, 1e-7 * (1 + std::abs(expected)))
          << probability << " with " << degrees;
    }
  }
}

}  // namespace statistics_reference_test
}  // namespace zeus

#endif
