// The cluster that a collector belongs to, as its configuration has it: who keeps which jobs, which
// of them this collector is, and the ways to the others (docs/cluster.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/config/v1/collector.pb.h"

namespace grpc {
class Channel;
}

namespace tacho::server::cluster {

// Without `cluster.members` there is one shard, which is this collector's, and no cluster. Movable;
// thread-safe.
class Membership {
 public:
  // More than this is a mistake: each member is asked for each list.
  static constexpr size_t kMaxMembers = 1'000;

  // `host_name` is that of this machine, which counts where `cluster.member` is empty. Its part
  // before the first dot is enough. Opens no connection.
  //   INVALID_ARGUMENT  `cluster` contradicts itself, or does not say which member this is; the
  //                     text names the key and says what to do. Or as config::ReadCheckedFile() and
  //                     config::ParseCertificates() for `cluster.ca_file`.
  static absl::StatusOr<Membership> Make(const config::v1::Collector& config,
                                         absl::string_view host_name);
  Membership(Membership&&) noexcept;
  Membership& operator=(Membership&&) noexcept;
  ~Membership();

  // Whether there are others.
  bool is_cluster() const;
  uint32_t shards() const;  // At least 1.
  uint32_t own() const;
  uint32_t ShardOf(absl::string_view job) const;
  bool Keeps(absl::string_view job) const { return ShardOf(job) == own(); }

  // HOST:PORT of the gRPC port, as `cluster.members` has it; empty without a cluster. REQUIRES:
  // shard < shards().
  const std::string& address(uint32_t shard) const;

  // "collector-1.tacho:7411 (shard 1 of 3)": for people.
  std::string NameOf(uint32_t shard) const;

  // For rows and requests that came to the wrong collector.
  //   FAILED_PRECONDITION  (MISDIRECTED) another member keeps the job; the text names it.
  absl::Status CheckKeeps(absl::string_view job) const;

  // The channel to a member, made at the first call and shared by all. It connects by itself, and
  // again after a failure. TLS if listen.tls has a certificate, which is then shown as the client's
  // certificate, too; its files are read again when they change. REQUIRES: is_cluster(),
  // shard < shards().
  std::shared_ptr<grpc::Channel> channel(uint32_t shard) const;

 private:
  struct State;
  explicit Membership(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tacho::server::cluster
