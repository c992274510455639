#include "server/query/read/host_part.h"

#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/job_shard.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {
namespace {

constexpr uint32_t kMaxParts = 1'000;  // As many as a cluster has members.

}  // namespace

bool HostPart::Has(absl::string_view job, absl::string_view host) const {
  return parts <= 1 || ShardOfHost(job, host, parts) == part;
}

absl::StatusOr<HostPart> ReadHostPart(const v1::HostPart& proto, absl::string_view field) {
  const HostPart part = {proto.part(), proto.parts()};
  if (part.parts >= 1 && part.parts <= kMaxParts && part.part < part.parts) return part;
  return errors::InvalidFieldError(
      field, absl::StrCat("is part ", part.part, " of ", part.parts,
                          "; parts count from 0, and there are 1 to ", kMaxParts));
}

void KeepPart(const HostPart& part, std::vector<storage::SeriesPtr>* series) {
  if (part.parts <= 1) return;
  // Series of a source mostly follow each other.
  const storage::SeriesSource* source = nullptr;
  bool has = false;
  std::erase_if(*series, [&](const storage::SeriesPtr& one) {
    if (one->source != source) {
      source = one->source;
      has = part.Has(source->job, source->host);
    }
    return !has;
  });
}

void KeepPart(const HostPart& part, storage::JobDetail* detail) {
  storage::JobSummary& summary = detail->summary;
  std::erase_if(detail->tasks,
                [&](const auto& task) { return !part.Has(summary.name, task.host); });
  std::set<std::optional<uint32_t>> tasks;
  std::set<absl::string_view> hosts;
  summary.extent = storage::Extent();
  summary.series = 0;
  for (const storage::TaskInfo& task : detail->tasks) {
    tasks.insert(task.task);
    hosts.insert(task.host);
    summary.extent.Include(task.extent);
    summary.series += task.series;
  }
  tasks.erase(std::nullopt);
  summary.tasks = static_cast<uint32_t>(tasks.size());
  summary.hosts = static_cast<uint32_t>(hosts.size());
}

void KeepPart(const HostPart& part, absl::string_view job, storage::JobEntities* entities) {
  const auto is_other = [&](const auto& one) { return !part.Has(job, one.host); };
  std::erase_if(entities->incarnations, is_other);
  std::erase_if(entities->chips, is_other);
}

}  // namespace tacho::server::query
