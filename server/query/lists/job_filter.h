// Which jobs a request for many jobs selects: by name, state, attributes, hosts, tags and group.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/index/matcher.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::query {

// Immutable, so thread-safe.
class JobFilter {
 public:
  // From a ListJobsRequest or a FleetRequest.
  //   INVALID_ARGUMENT  the text names the field.
  template <typename Request>
  static absl::StatusOr<JobFilter> Create(const Request& request);

  bool WantsName(absl::string_view name) const;
  bool WantsState(v1::JobState state) const;
  // The outline has hosts if needs_hosts().
  bool WantsOutline(const storage::JobOutline& outline) const;
  bool needs_hosts() const { return !hosts_.empty(); }
  // Otherwise every outline is wanted.
  bool needs_outline() const {
    return needs_hosts() || !attributes_.empty() || !tags_.empty() || !group_.empty();
  }

 private:
  bool HasWantedMarks(const storage::JobOutline& outline) const;

  std::optional<storage::Matcher> name_;  // Nullopt: any.
  std::vector<storage::Matcher> hosts_;
  std::vector<storage::Matcher> attributes_;
  std::vector<std::string> tags_;  // As attributes.
  std::string group_;              // Empty: any.
  std::vector<v1::JobState> states_;
};

}  // namespace tacho::server::query
