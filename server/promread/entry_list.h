// The first entries of a list in their order, without duplicates: of one collector, or of the
// members of a cluster together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace tacho::server::promread {

// Not thread-safe.
class EntryList {
 public:
  // A key by which entries are ordered, and what the answer has of it; see MemberListResponse.Entry
  // in tacho/v1/member_reads.proto.
  using Entry = std::pair<std::string, std::string>;
  using EntryView = std::pair<absl::string_view, absl::string_view>;
  struct Before {
    using is_transparent = void;
    bool operator()(const EntryView& a, const EntryView& b) const { return a < b; }
  };

  // What comes later than the first `most` is left out; so is what comes when those have
  // `most_bytes`.
  explicit EntryList(size_t most = SIZE_MAX, size_t most_bytes = SIZE_MAX)
      : most_(most), most_bytes_(most_bytes) {}

  // An empty key is no entry.
  void Add(absl::string_view key, absl::string_view json = "");
  // Another list of the same kind leaves something out, and so does this one then.
  void AddMore() { more_ = true; }

  const std::set<Entry, Before>& entries() const { return entries_; }
  size_t most() const { return most_; }
  bool more() const { return more_; }  // Something is left out.

 private:
  size_t most_;
  size_t most_bytes_;
  bool more_ = false;
  size_t bytes_ = 0;
  std::set<Entry, Before> entries_;
};

}  // namespace tacho::server::promread
