// The part of a job's hosts that a request is about. In a cluster a split job lies at all members,
// each of which keeps the part of some hosts, and may have copies of others (docs/cluster.md,
// "Hosts").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/job.h"
#include "storage/model/series.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

struct HostPart {
  uint32_t part = 0;
  uint32_t parts = 1;

  bool Has(absl::string_view job, absl::string_view host) const;
};

// Which part of a job this collector keeps; nullopt: the job is not split.
using OwnPart = std::function<std::optional<HostPart>(absl::string_view job)>;

// That of a request: selector.part or part.
//   INVALID_ARGUMENT  there is no such part; the text names the field.
absl::StatusOr<HostPart> ReadHostPart(const v1::HostPart& proto, absl::string_view field);

// These leave out what is of other hosts.
void KeepPart(const HostPart& part, std::vector<storage::SeriesPtr>* series);
// The summary becomes that of the tasks that are left.
void KeepPart(const HostPart& part, storage::JobDetail* detail);
void KeepPart(const HostPart& part, absl::string_view job, storage::JobEntities* entities);

}  // namespace tacho::server::query
