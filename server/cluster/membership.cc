// Placement is by configuration: the place of an address in the list is its shard. So every member
// and every agent knows the owner of a job without asking anybody, and a wrong list is refused
// where it meets a right one.
#include "server/cluster/membership.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/address.h"
#include "proto/base/check.h"
#include "proto/base/checked_file.h"
#include "proto/base/job_shard.h"
#include "proto/base/pem_files.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"

namespace tacho::server::cluster {
namespace {

using ClusterConfig = config::v1::Collector::Cluster;

constexpr int kMemberConnectMs = 5'000;
constexpr int kMemberFirstPauseMs = 200;
constexpr int kMemberLastPauseMs = 2'000;
// A member that went away without a word is noticed after at most this and the next.
constexpr int kMemberPingMs = 20'000;
constexpr int kMemberPingAnswerMs = 10'000;
constexpr unsigned kCertificateRoundSeconds = 60;

absl::string_view BeforeFirst(absl::string_view text, absl::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

absl::Status Wrong(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", what));
}

absl::Status CheckAddresses(const ClusterConfig& cluster) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const auto& [key, addresses] : {std::pair("cluster.members", &cluster.members()),
                                       std::pair("cluster.spares", &cluster.spares())}) {
    if (static_cast<size_t>(addresses->size()) > Membership::kMaxMembers) {
      return Wrong(key, absl::StrCat("names ", addresses->size(), " collectors; at most ",
                                     Membership::kMaxMembers, " are possible"));
    }
    for (const std::string& address : *addresses) {
      if (absl::EndsWith(address, ":0")) {
        return Wrong(key, absl::StrCat(address,
                                       " has the port 0, to which nobody can connect: name "
                                       "the port of the member's listen.grpc"));
      }
      if (!seen.insert(address).second) {
        return Wrong(key, absl::StrCat("names ", address,
                                       " twice: each collector stands once in cluster.members or "
                                       "cluster.spares"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMembers(const ClusterConfig& cluster) {
  if (cluster.spares().empty()) {
    if (cluster.members_size() > 1) return absl::OkStatus();
    return Wrong("cluster.members",
                 absl::StrCat("names one collector, ", cluster.members(0),
                              ", and a cluster has at least two: add the others, or a collector in "
                              "cluster.spares, or remove the key"));
  }
  if (cluster.ack() == "shared") return absl::OkStatus();
  return Wrong("cluster.spares",
               "needs cluster.ack: shared: what one collector has acknowledged must be in the "
               "bucket before another one can go on with it");
}

// All that the configuration names: the members, then the spares.
std::vector<std::string> AllAddresses(const ClusterConfig& cluster) {
  std::vector<std::string> all(cluster.members().begin(), cluster.members().end());
  all.insert(all.end(), cluster.spares().begin(), cluster.spares().end());
  return all;
}

// Which of them `name` is.
absl::StatusOr<std::string> FindAddress(const ClusterConfig& cluster, absl::string_view name,
                                        absl::string_view who) {
  const std::string keys =
      cluster.spares().empty() ? "cluster.members" : "cluster.members and cluster.spares";
  const std::vector<std::string> all = AllAddresses(cluster);
  std::vector<std::string> matches;
  for (const std::string& address : all) {
    if (address == name) return address;
    if (BeforeFirst(address, ".:") == name) matches.push_back(address);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    return Wrong("cluster.member",
                 absl::StrCat(who, " is none of ", keys, " (", absl::StrJoin(all, ", "),
                              "): set it to the address of this collector as the list has it"));
  }
  return Wrong("cluster.member",
               absl::StrCat(who, " fits ", matches[0], " and ", matches[1], " of ", keys,
                            ": set it to the whole address of this collector"));
}

absl::StatusOr<std::string> FindOwn(const ClusterConfig& cluster, absl::string_view host_name) {
  if (!cluster.member().empty()) return FindAddress(cluster, cluster.member(), cluster.member());
  const absl::string_view name = BeforeFirst(host_name, ".");
  if (name.empty()) {
    return Wrong("cluster.member",
                 "is empty, and this machine has no name: set it to the address of this collector "
                 "as cluster.members has it");
  }
  return FindAddress(cluster, name, absl::StrCat("the name of this machine, ", name, ","));
}

absl::Status CheckAuthorities(const std::string& path) {
  auto pem = config::ReadCheckedFile(path, config::FileTrust::kPublic, 1 << 20);
  absl::Status status = pem.ok() ? config::ParseCertificates(path, *pem).status() : pem.status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("cluster.ca_file: ", status.message()));
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsTo(const config::v1::Collector& config) {
  const auto& tls = config.listen().tls();
  if (tls.certificate().empty()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          tls.key(), tls.certificate(), config.cluster().ca_file(), kCertificateRoundSeconds));
  options.watch_identity_key_cert_pairs();
  if (!config.cluster().ca_file().empty()) options.watch_root_certs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

absl::StatusOr<Self> FindSelf(const config::v1::Collector& config, absl::string_view host_name) {
  const ClusterConfig& cluster = config.cluster();
  if (cluster.members().empty()) {
    for (const auto& [key, value] : {std::pair("cluster.member", &cluster.member()),
                                     std::pair("cluster.ca_file", &cluster.ca_file())}) {
      if (!value->empty()) return Wrong(key, "needs cluster.members, the list of all collectors");
    }
    if (!cluster.spares().empty()) {
      return Wrong("cluster.spares",
                   "needs cluster.members, the collectors that they stand in for");
    }
    if (!cluster.split_jobs().empty()) {
      return Wrong("cluster.split_jobs",
                   "needs cluster.members, the collectors that share the rows of these jobs");
    }
    return Self();
  }
  TACHO_RETURN_IF_ERROR(CheckMembers(cluster));
  TACHO_RETURN_IF_ERROR(CheckAddresses(cluster));
  Self self;
  TACHO_ASSIGN_OR_RETURN(self.address, FindOwn(cluster, host_name));
  for (int i = 0; i < cluster.members_size(); ++i) {
    if (cluster.members(i) == self.address) self.home = static_cast<uint32_t>(i);
  }
  return self;
}

struct Membership::State {
  struct Way {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };
  config::v1::Collector config;  // Only what channels need.
  std::vector<std::string> addresses;
  JobDivision division;
  std::function<std::string(uint32_t)> owner;  // Null: always those of `addresses`.
  uint32_t own = 0;
  absl::Mutex mutex;
  std::shared_ptr<grpc::ChannelCredentials> credentials ABSL_GUARDED_BY(mutex);
  std::vector<Way> ways ABSL_GUARDED_BY(mutex);
};

Membership::Membership(std::unique_ptr<State> state) : state_(std::move(state)) {}
Membership::Membership(Membership&&) noexcept = default;
Membership& Membership::operator=(Membership&&) noexcept = default;
Membership::~Membership() = default;

absl::StatusOr<Membership> Membership::Make(const config::v1::Collector& config,
                                            absl::string_view host_name, std::optional<Seat> seat) {
  const ClusterConfig& cluster = config.cluster();
  TACHO_ASSIGN_OR_RETURN(const Self self, FindSelf(config, host_name));
  auto state = std::make_unique<State>();
  if (self.address.empty()) {
    state->addresses = {""};
    return Membership(std::move(state));
  }
  if (!cluster.ca_file().empty()) TACHO_RETURN_IF_ERROR(CheckAuthorities(cluster.ca_file()));
  *state->config.mutable_listen()->mutable_tls() = config.listen().tls();
  *state->config.mutable_cluster() = cluster;
  state->addresses = {cluster.members().begin(), cluster.members().end()};
  state->division.shards = static_cast<uint32_t>(state->addresses.size());
  state->division.split_jobs.insert(cluster.split_jobs().begin(), cluster.split_jobs().end());
  state->own = self.home.value_or(0);
  if (seat.has_value()) {
    TACHO_CHECK(seat->shard < state->addresses.size());
    state->own = seat->shard;
    state->owner = std::move(seat->owner);
  }
  {
    absl::MutexLock lock(&state->mutex);
    state->ways.resize(state->addresses.size());
  }
  return Membership(std::move(state));
}

bool Membership::is_cluster() const { return state_->addresses.size() > 1; }

uint32_t Membership::shards() const { return static_cast<uint32_t>(state_->addresses.size()); }

bool Membership::moves() const { return state_->owner != nullptr; }

uint32_t Membership::own() const { return state_->own; }

const JobDivision& Membership::division() const { return state_->division; }

std::string Membership::address(uint32_t shard) const {
  TACHO_CHECK(shard < shards());
  std::string owner = state_->owner ? state_->owner(shard) : "";
  return owner.empty() ? state_->addresses[shard] : owner;
}

std::string Membership::NameOf(uint32_t shard) const {
  return absl::StrCat(address(shard), " (shard ", shard, " of ", shards(), ")");
}

absl::Status Membership::CheckKeeps(absl::string_view job) const {
  const uint32_t shard = ShardOf(job);
  if (shard == own()) return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kMisdirected,
      absl::StrCat("job ", job, " belongs to ", NameOf(shard), ": send it there"));
}

absl::Status Membership::CheckKeeps(absl::string_view job, absl::string_view host) const {
  if (!IsSplit(job)) return CheckKeeps(job);
  const uint32_t shard = ShardOf(job, host);
  if (shard == own()) return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kMisdirected,
      absl::StrCat("job ", job, " is divided by hosts (cluster.split_jobs), and host ", host,
                   " belongs to ", NameOf(shard),
                   ": send it there; an agent needs the same collector.split_jobs"));
}

std::shared_ptr<grpc::Channel> Membership::channel(uint32_t shard) const {
  TACHO_CHECK(is_cluster() && shard < shards());
  std::string address = this->address(shard);
  absl::MutexLock lock(&state_->mutex);
  State::Way& way = state_->ways[shard];
  if (way.channel != nullptr && way.address == address) return way.channel;
  if (state_->credentials == nullptr) state_->credentials = CredentialsTo(state_->config);
  grpc::ChannelArguments arguments;
  // The answers of a member have no smaller limit than those of this collector.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMemberConnectMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMemberFirstPauseMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMemberLastPauseMs);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kMemberPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kMemberPingAnswerMs);
  // http_proxy is set on many machines; no proxy can reach our own loopback, and none is to see
  // what a caller has shown.
  if (config::IsLoopback(address)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  way.channel = grpc::CreateCustomChannel(address, state_->credentials, arguments);
  way.address = std::move(address);
  return way.channel;
}

}  // namespace tacho::server::cluster
