#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zeus/client/node/node_view.h"
#include "zeus/wire/node/lease.h"

namespace zeus::cli {

// The order and the choice of devices that `zeus top` was asked for.
struct TopView {
  enum class Order { kDevice, kPower, kTemperature };
  Order order = Order::kDevice;
  std::string filter{};  // Only devices that contain it in their name, id or leases.
};

// The state of a node at one moment.
struct TopState {
  std::vector<client::ReadingView> readings{};
  std::vector<wire::LeaseView> leases{};
  std::string trouble{};  // Why the state is old; empty when it is not.
};

// The effect of a key that was pressed: 'd', 'p' and 't' choose the order, '/' begins a filter that
// Enter ends and Escape clears, 'q' ends the program. One owner.
class TopKeys {
 public:
  explicit TopKeys(TopView& view) : view_(view) {}
  // Returns false when the program is to end.
  bool Press(char key);
  bool typing() const { return typing_; }

 private:
  TopView& view_;
  bool typing_ = false;
};

// A title, a row per device with its power, limit and the leases on it, and a line about the keys
// where there are some.
enum class TopFooter { kNone, kKeys };
std::vector<std::string> TopRows(const TopState& state, const TopView& view, TopFooter footer);

// The beginning of a line that fits into so many columns of a terminal: a longer one would go on in
// the next row, and the picture could not be drawn over.
std::string CutToWidth(const std::string& line, std::size_t width);

}  // namespace zeus::cli
