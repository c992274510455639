// Limits a window to tasks whose process lives, for verdicts on speed, hosts and chips.
#pragma once

#include <cstddef>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// While it exists, its window has only the tasks that live (TaskWindow::lives()), with their hosts
// and chips. Afterwards it is as before.
class RunningTasks {
 public:
  // `window` outlives it.
  explicit RunningTasks(JobWindow* window);
  RunningTasks(const RunningTasks&) = delete;
  RunningTasks& operator=(const RunningTasks&) = delete;
  ~RunningTasks();

 private:
  // A list of the window, from which some entries were moved to the shorter list in their order.
  template <typename Entry>
  struct Parted {
    std::vector<Entry> all;
    std::vector<size_t> kept;
  };
  template <typename Entry, typename Keep>
  static Parted<Entry> Part(const Keep& keep, std::vector<Entry>* list);
  template <typename Entry>
  static void Join(Parted<Entry>* parted, std::vector<Entry>* list);

  JobWindow* const window_;
  bool parted_ = false;
  Parted<TaskWindow> tasks_;
  Parted<HostWindow> hosts_;
  Parted<ChipWindow> chips_;
};

}  // namespace tacho::server::conditions
