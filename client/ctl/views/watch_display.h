// Where what 'tachoctl watch' sees is shown.
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
  // Something changed for the connection: it was lost, or is there again.
  virtual void Note(const std::string& text) = 0;
  // How it is now; called at each interval.
  virtual void Show(const WatchView& view) = 0;
};

// On a terminal a screen that is painted over itself, which the destructor takes down; else a line
// at each interval in which something came; with -o json a line for each sample and event, with
// -o csv a line for each sample.
std::unique_ptr<WatchDisplay> MakeWatchDisplay(const Invocation& invocation);

}  // namespace tacho::ctl
