#pragma once

#include <functional>

namespace zeus::python {

// Asks `done`, without the GIL, until it holds or `seconds` are over; whether it did. Ctrl-C ends
// the wait with KeyboardInterrupt. Throws Failure for a time that is negative or not a number.
bool WaitUntil(const std::function<bool()>& done, double seconds);

}  // namespace zeus::python
