#include "server/promread/entry_list.h"

#include <iterator>

namespace tacho::server::promread {

void EntryList::Add(absl::string_view key, absl::string_view json) {
  if (key.empty()) return;
  // Most names come many times, so that a copy is made of new ones alone.
  const EntryView entry = {key, json};
  if (entries_.find(entry) != entries_.end()) return;
  if (bytes_ >= most_bytes_ ||
      (entries_.size() == most_ && (most_ == 0 || EntryView(*entries_.rbegin()) < entry))) {
    more_ = true;
    return;
  }
  entries_.emplace(key, json);
  bytes_ += key.size() + json.size();
  if (entries_.size() <= most_) return;
  more_ = true;
  const auto last = std::prev(entries_.end());
  bytes_ -= last->first.size() + last->second.size();
  entries_.erase(last);
}

}  // namespace tacho::server::promread
