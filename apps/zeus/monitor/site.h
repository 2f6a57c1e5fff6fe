#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::cli {

// The address of `zeus monitor --serve` as long as it lives.
class MonitorSite {
 public:
  struct Sources {
    std::function<std::string()> metrics{};
    std::function<std::vector<std::string>()> costs{};  // Null: not wanted.
  };

  virtual ~MonitorSite() = default;
  virtual std::string url() const = 0;
  // Whether it has pages, and not metrics alone.
  virtual bool has_pages() const = 0;
};

// Called before anything else by who will start a site. A zeus without its servers goes on in the
// program that has them, and then does not return.
Status PrepareMonitorSite();

// In site.cc with the page, in no_server.cc metrics alone. `node` must outlive it.
Result<std::unique_ptr<MonitorSite>> StartMonitorSite(const std::string& address, NodeMonitor& node,
                                                      MonitorSite::Sources sources);

}  // namespace zeus::cli
