#pragma once

#include <string>
#include <string_view>

#include "zeus/base/units.h"

// Numbers as people read them, in one style for every command, report and page: a blank before the
// unit, one prefix and one unit for a value and its uncertainty, and as many digits as the
// uncertainty leaves meaning to.
namespace zeus {

// A prefix of the SI and the number that it stands for.
struct SiPrefix {
  double scale = 1;
  std::string_view text = "";
};
// The prefix that suits values of this size, for axes and columns with one unit: {1e3, "k"} for
// 12345, none from 1 to 999.
SiPrefix PrefixFor(double size);

// "708 ± 22 J", "61 ± 14 kJ", "4.213 ± 0.012 ms": two digits of one standard deviation and the
// value to the same place. The prefix suits the larger of the two; numbers from 1 to 9999 have
// none while sigma is below 100. A sigma that is 0, infinite or NaN is not known: the value stands
// alone, as NumberText() writes it. Without a unit ("") and for rates ("/s") there is no prefix
// either.
std::string WithSigma(double value, double sigma, std::string_view unit);
std::string WithSigma(Joules energy, Joules sigma);
std::string WithSigma(Watts power, Watts sigma);
// "8.40 ± 0.12 s", from three minutes on "12.30 ± 0.40 min", from two hours on "4.100 ± 0.020 h".
std::string WithSigma(Seconds time, Seconds sigma);

// "0.698 ± 0.004": both with this many decimals, for columns of numbers that share a unit.
std::string FixedWithSigma(double value, double sigma, int decimals);

// "812 J", "12.3 kJ", "4.56 MJ": three digits, with the prefixes of WithSigma() but from 1000 on.
std::string NumberText(double value, std::string_view unit);
std::string EnergyText(Joules energy);
// "231.4 W" below a kilowatt, "1042 W" from there on; a node draws kilowatts.
std::string PowerText(Watts power);
// "8.40 s", "12.3 min", "4.10 h".
std::string TimeText(Seconds time);

// "12.3 %" for a share of 0.123.
std::string PercentText(double share, int decimals = 1);
// "17.20 ± 0.90 %" for shares, "-12.30 ± 0.40 %" for signed changes. Arguments are in per cent.
std::string PercentWithSigma(double percent, double sigma);
std::string ChangeWithSigma(double percent, double sigma);
// "-12.3 %", "+0.0 %": how far `value` is from `reference`; "-" when the reference is 0.
std::string ChangeText(double value, double reference);

}  // namespace zeus
