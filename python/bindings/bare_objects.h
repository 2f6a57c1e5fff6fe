#pragma once

namespace zeus::python {

// Objects of our classes whose __init__() was not called, as by a subclass that forgets it, are
// refused with an exception where pybind11 would read memory that nobody wrote.
void RefuseBareObjects();

}  // namespace zeus::python
