// Which notices were recorded, and the events that still wait for the spool.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/sources/rows/source.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// All of it is stored in the spool with each event that it gives to the sink, so that after a
// restart no event is repeated and none is missing. One thread.
class NoticeBook {
 public:
  // Beyond, while a disk refuses everything, the oldest are dropped.
  static constexpr size_t kMaxWaiting = 1024;

  // `key`: of the checkpoint, which is read now. One that is damaged counts as none: then a notice
  // that still stands is recorded again.
  NoticeBook(std::string key, const RowSink& sink);

  // Takes what `notice` says now, empty for nothing. Returns whether that is new.
  bool Update(const std::string& notice, const std::string& says);
  // Its notices, as of the last Update().
  std::string Says(const std::string& notice) const;

  void Add(v1::Event event);
  // Gives what waits to the sink.
  //   others  of the sink; call it again.
  absl::Status Flush(RowSink* sink);

  size_t waiting() const { return waiting_.size(); }

 private:
  std::string Encode() const;
  bool Decode(absl::string_view text);

  const std::string key_;
  std::map<std::string, std::string> says_;
  std::deque<v1::Event> waiting_;
  bool stored_ = true;
};

}  // namespace tacho::agent
