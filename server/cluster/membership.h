// The cluster that a collector belongs to, as its configuration has it: who keeps which jobs, which
// of them this collector is, and the ways to the others (docs/cluster.md). With spare collectors,
// who keeps a shard changes while the programs run; the bucket says who (server/takeover).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/job_shard.h"
#include "tacho/config/v1/collector.pb.h"

namespace grpc {
class Channel;
}

namespace tacho::server::cluster {

// The collector's own address and shard, as the configuration names them.
struct Self {
  std::string address;           // One of cluster.members or cluster.spares; empty: no cluster.
  std::optional<uint32_t> home;  // The shard of its place in members. None: it is a spare.
};

// Reads and checks `cluster`. `host_name` is that of this machine, which counts where
// `cluster.member` is empty. Its part before the first dot is enough.
//   INVALID_ARGUMENT  `cluster` contradicts itself, or does not say which collector this is; the
//                     text names the key and says what to do.
absl::StatusOr<Self> FindSelf(const config::v1::Collector& config, absl::string_view host_name);

// In a cluster with spares: what this collector owns, and who owns the rest.
struct Seat {
  uint32_t shard = 0;
  // The address of a shard's owner; empty: not known. Thread-safe.
  std::function<std::string(uint32_t shard)> owner;
};

// Without `cluster.members` there is one shard, which is this collector's, and no cluster. Movable;
// thread-safe.
class Membership {
 public:
  // More than this is a mistake: each member is asked for each list.
  static constexpr size_t kMaxMembers = 1'000;

  // Without a seat the place in `cluster.members` is the shard; a spare then counts as shard 0.
  // Opens no connection.
  //   INVALID_ARGUMENT  as FindSelf(). Or as config::ReadCheckedFile() and
  //                     config::ParseCertificates() for `cluster.ca_file`.
  static absl::StatusOr<Membership> Make(const config::v1::Collector& config,
                                         absl::string_view host_name,
                                         std::optional<Seat> seat = std::nullopt);
  Membership(Membership&&) noexcept;
  Membership& operator=(Membership&&) noexcept;
  ~Membership();

  // Whether there are others.
  bool is_cluster() const;
  uint32_t shards() const;  // At least 1.
  uint32_t own() const;
  // Whether shards move from one collector to another.
  bool moves() const;
  const JobDivision& division() const;
  // The shard of the job itself. If the job is split (cluster.split_jobs), it has only what belongs
  // to no host.
  uint32_t ShardOf(absl::string_view job) const { return division().ShardOf(job); }
  bool Keeps(absl::string_view job) const { return ShardOf(job) == own(); }
  // The shard of what the job has from a host.
  uint32_t ShardOf(absl::string_view job, absl::string_view host) const {
    return division().ShardOf(job, host);
  }
  bool Keeps(absl::string_view job, absl::string_view host) const {
    return ShardOf(job, host) == own();
  }
  bool IsSplit(absl::string_view job) const { return division().IsSplit(job); }

  // HOST:PORT of the owner's gRPC port; empty without a cluster. Where the owner is not known, of
  // the shard's place in `cluster.members`. REQUIRES: shard < shards().
  std::string address(uint32_t shard) const;

  // "collector-1.tacho:7411 (shard 1 of 3)": for people.
  std::string NameOf(uint32_t shard) const;

  // For rows and requests that came to the wrong collector.
  //   FAILED_PRECONDITION  (MISDIRECTED) another member keeps the job; the text names it.
  absl::Status CheckKeeps(absl::string_view job) const;
  // The same for what the job has from a host.
  absl::Status CheckKeeps(absl::string_view job, absl::string_view host) const;

  // The channel to a shard's owner, made at the first call and shared by all. It connects by
  // itself, and again after a failure. TLS if listen.tls has a certificate, which is then shown as
  // the client's certificate, too; its files are read again when they change. REQUIRES:
  // is_cluster(), shard < shards().
  std::shared_ptr<grpc::Channel> channel(uint32_t shard) const;

 private:
  struct State;
  explicit Membership(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tacho::server::cluster
