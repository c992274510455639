// How many chips the hosts of the fleet have, as their agents record them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "storage/store.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::view {

// Agents file what they record of machines under this job.
inline constexpr absl::string_view kHostsJob = "hosts";

using FleetHosts = google::protobuf::RepeatedPtrField<v1::FleetHost>;

// The chips of hosts that nobody uses.
uint32_t IdleChips(const FleetHosts& hosts);

// Not thread-safe.
class FleetChips {
 public:
  // Looks again if that is due.
  //   as Store::Entities().
  absl::Status Renew(const storage::Store& store, absl::Time now);

  // On these hosts.
  uint32_t On(const std::vector<std::string>& hosts) const;
  // All hosts, by name. `used`: those on which running jobs have tasks.
  FleetHosts Hosts(const absl::flat_hash_set<absl::string_view>& used) const;

  // Grows when figures have changed.
  uint64_t version() const { return version_; }

 private:
  struct Host {
    uint32_t chips = 0;
    bool reports = false;
    bool operator==(const Host&) const = default;
  };

  // Counts the series of the job, so it is done only if there are new ones.
  absl::Status CountChips(const storage::Store& store);

  absl::flat_hash_map<std::string, uint32_t> chips_;  // By host.
  absl::flat_hash_map<std::string, Host> hosts_;
  absl::Time looked_ = absl::InfinitePast();
  uint64_t series_ = 0;  // The job had so many when its chips were counted.
  uint64_t version_ = 0;
};

// The number in the attribute device_count; 0: there is none, or it cannot be true.
uint32_t DeviceCountOf(const storage::JobOutline& outline);

}  // namespace tacho::server::view
