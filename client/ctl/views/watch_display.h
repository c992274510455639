// The output of 'tachoctl watch'.
#pragma once

#include <memory>
#include <string>

#include "client/ctl/line/command.h"
#include "client/ctl/views/watch_screen.h"

namespace tacho::ctl {

// Not thread-safe.
class WatchDisplay {
 public:
  virtual ~WatchDisplay() = default;

  // Every sample once.
  virtual void Sample(const v1::SeriesInfo& series, const Point& point) = 0;
  virtual void Event(const v1::RecordedEvent& event) = 0;
  // The connection was lost or restored.
  virtual void Note(const std::string& text) = 0;
  // The current state; called at each interval.
  virtual void Show(const WatchView& view) = 0;
};

// On a terminal: a screen that is repainted, and removed by the destructor. Elsewhere: a line for
// each interval in which something came. With -o json a line for each sample and event, with -o csv
// one for each sample.
std::unique_ptr<WatchDisplay> MakeWatchDisplay(const Invocation& invocation);

}  // namespace tacho::ctl
