#include "server/view/fleet_chips.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/query/read/job_state.h"

namespace tacho::server::view {
namespace {

// Machines come and go slowly, and a look goes over all of them.
constexpr absl::Duration kLookEvery = absl::Seconds(10);
// A trainer writes the number as it likes. More is a mistake, and the sums of 10,000 jobs must not
// wrap.
constexpr uint32_t kMaxDeviceCount = 400'000;

}  // namespace

absl::Status FleetChips::Renew(const storage::Store& store, absl::Time now) {
  if (!HasCome(looked_ + kLookEvery, now, kLookEvery)) return absl::OkStatus();
  const std::optional<storage::JobDetail> detail = store.FindJob(kHostsJob);
  absl::flat_hash_map<std::string, Host> hosts;
  if (detail.has_value()) {
    if (detail->summary.series != series_) {
      TACHO_RETURN_IF_ERROR(CountChips(store));
      series_ = detail->summary.series;
    }
    const int64_t since_ns = absl::ToUnixNanos(now - query::kActiveFor);
    for (const storage::TaskInfo& task : detail->tasks) {
      const auto chips = chips_.find(task.host);
      if (chips == chips_.end()) continue;
      Host& host = hosts[task.host];
      host.chips = chips->second;
      host.reports = host.reports || task.extent.last_time_ns >= since_ns;
    }
  }
  looked_ = now;
  if (hosts == hosts_) return absl::OkStatus();
  hosts_ = std::move(hosts);
  ++version_;
  return absl::OkStatus();
}

absl::Status FleetChips::CountChips(const storage::Store& store) {
  TACHO_ASSIGN_OR_RETURN(const auto entities, store.Entities(kHostsJob));
  chips_.clear();
  const storage::JobEntities::Chip* before = nullptr;
  for (const auto& chip : entities.chips) {  // By host and chip.
    if (before != nullptr && before->host == chip.host && before->chip == chip.chip) continue;
    ++chips_[chip.host];
    before = &chip;
  }
  return absl::OkStatus();
}

uint32_t FleetChips::On(const std::vector<std::string>& hosts) const {
  uint32_t chips = 0;
  for (const std::string& host : hosts) {
    const auto found = hosts_.find(host);
    if (found != hosts_.end()) chips += found->second.chips;
  }
  return chips;
}

FleetHosts FleetChips::Hosts(const absl::flat_hash_set<absl::string_view>& used) const {
  FleetHosts hosts;
  const auto add = [&](absl::string_view name, uint32_t chips) {
    v1::FleetHost* const host = hosts.Add();
    host->set_name(std::string(name));
    host->set_chips(chips);
    host->set_used(used.contains(name));
  };
  for (const auto& [name, host] : hosts_) add(name, host.reports ? host.chips : 0);
  for (const absl::string_view name : used) {
    if (!hosts_.contains(name)) add(name, 0);
  }
  std::sort(hosts.pointer_begin(), hosts.pointer_end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return hosts;
}

uint32_t IdleChips(const FleetHosts& hosts) {
  uint32_t chips = 0;
  for (const v1::FleetHost& host : hosts) {
    if (!host.used()) chips += host.chips();
  }
  return chips;
}

uint32_t DeviceCountOf(const storage::JobOutline& outline) {
  const auto found = outline.attributes.find("device_count");
  uint32_t count = 0;
  if (found == outline.attributes.end() || !absl::SimpleAtoi(found->second, &count)) return 0;
  return count <= kMaxDeviceCount ? count : 0;
}

}  // namespace tacho::server::view
