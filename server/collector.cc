// Builds the parts of the collector in the order in which they need each other, and drains them in
// reverse.

#include "server/collector.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/host_name.h"
#include "proto/base/status_macros.h"
#include "server/collector_parts.h"
#include "server/security/grpc_caller.h"
#include "server/store_options.h"
#include "server/takeover/ownership.h"

namespace tacho::server {
namespace {

// After the streams are gone only unary calls and health watchers are left.
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

}  // namespace

Collector::Parts::Parts(const config::v1::Collector& config, CollectorWorld world)
    : config_(config),
      world_(std::move(world)),
      registry_(std::make_shared<prometheus::Registry>()),
      started_(world_.now()),
      agent_clocks_(world_.now, world_.monotonic),
      clock_watch_(ClockWatchOptions()),
      reloader_({config_, world_.read_config, world_.now, registry_.get(), world_.log}) {}

process::ClockWatch::Options Collector::Parts::ClockWatchOptions() {
  process::ClockWatch::Options options;
  options.now = world_.now;
  options.monotonic = world_.monotonic;
  options.votes = [this] { return agent_clocks_.Votes(); };
  options.registry = registry_.get();
  options.log = world_.log;
  options.on_doubt = [this](const std::string& doubt) {
    readiness_.SetClockDoubt(doubt);
    TellHealth();
  };
  return options;
}

Collector::Parts::~Parts() {
  if (world_.hear_ownership) world_.hear_ownership(nullptr);
  Drain().IgnoreError();
}

absl::Status Collector::Parts::Start() {
  TACHO_RETURN_IF_ERROR(MakeMembership());
  TACHO_RETURN_IF_ERROR(MakeSecurity());
  TACHO_RETURN_IF_ERROR(OpenStore());
  TACHO_RETURN_IF_ERROR(OpenDoor());
  TACHO_RETURN_IF_ERROR(MakeConditions());
  TACHO_RETURN_IF_ERROR(MakeServices());
  MakeCluster();
  TACHO_RETURN_IF_ERROR(MakeInterop());
  MakeForwarding();
  TACHO_ASSIGN_OR_RETURN(
      forwarding_, forward::Forwarding::Create({.config = config_,
                                                .store = store_.get(),
                                                .registry = registry_.get(),
                                                .now = world_.now,
                                                .shows = ShownRows(),
                                                .page = [this] { return metrics_page_->Render(); },
                                                .version = TACHO_VERSION,
                                                .log = world_.log}));
  TACHO_RETURN_IF_ERROR(StartGrpc());
  TACHO_RETURN_IF_ERROR(StartHttp());
  reloader_.Started();
  Serve();
  {
    absl::MutexLock lock(&health_mutex_);
    health_ = grpc_->GetHealthCheckService();
  }
  TellHealth();
  clock_watch_.Start(world_.clock_round);
  security_->Watch([ingest = ingest_.get()] { ingest->RecheckCallers(); });
  conditions_->Start();
  forwarding_->Start();
  // Last, because a request to drain may come at once.
  return StartAdmin();
}

absl::Status Collector::Parts::MakeMembership() {
  std::optional<cluster::Seat> seat;
  if (world_.ownership != nullptr) {
    const auto shard = world_.ownership->shard();
    if (!shard.has_value()) return absl::AbortedError("another collector has taken the shard");
    seat = cluster::Seat{.shard = *shard, .owner = [ownership = world_.ownership](uint32_t of) {
                           return ownership->OwnerOf(of);
                         }};
  }
  TACHO_ASSIGN_OR_RETURN(auto membership,
                         cluster::Membership::Make(config_, SystemHostName(), std::move(seat)));
  membership_ = std::make_unique<cluster::Membership>(std::move(membership));
  if (!membership_->is_cluster()) return absl::OkStatus();
  world_.log.Info("member of a cluster", {{"member", membership_->NameOf(membership_->own())}});
  return absl::OkStatus();
}

absl::Status Collector::Parts::MakeSecurity() {
  security::SecurityOptions options;
  options.now = world_.now;
  options.log = world_.log;
  options.registry = registry_.get();
  TACHO_ASSIGN_OR_RETURN(auto security, security::Security::Create(config_, std::move(options)));
  security_ = std::move(security);
  for (process::Reloadable* const part : security_->reloadables()) reloader_.Add(part);
  return absl::OkStatus();
}

absl::Status Collector::Parts::OpenStore() {
  TACHO_ASSIGN_OR_RETURN(storage::StoreOptions options, StoreOptionsOf(config_));
  TACHO_RETURN_IF_ERROR(history::HistoryBucket::Check(config_));
  if (!config_.bucket().url().empty()) {
    TACHO_ASSIGN_OR_RETURN(bucket_, history::HistoryBucket::Open({.config = config_,
                                                                  .shard = membership_->own(),
                                                                  .shards = membership_->shards(),
                                                                  .registry = registry_.get(),
                                                                  .log = world_.log}));
    options.history = bucket_->history();
    options.shared = bucket_->shared();
    options.shared.on_ended = [this](const absl::Status& why) { OnAcksEnded(why); };
    if (world_.hear_ownership) {
      world_.hear_ownership([this](const auto& request) { bucket_->Count(request); });
    }
  }
  if (world_.ownership != nullptr) {
    // Each shard has a store of its own: what is left of another one must not get in the way.
    options.path = absl::StrCat(options.path, "/shard-", membership_->own());
    std::error_code error;
    std::filesystem::create_directories(options.path, error);  // The store reports what fails.
  }
  options.now = world_.now;
  options.monotonic = world_.monotonic;
  options.clock_trusted = [this] { return clock_watch_.IsTrusted(); };
  options.env = world_.env;
  options.log = [log = world_.log](absl::string_view line) { log.Info(line, {{"part", "store"}}); };
  options.on_disk = [this](storage::DiskState state, const absl::Status& why) {
    OnDisk(state, why);
  };
  auto store = storage::Store::Open(std::move(options));
  if (!store.ok()) {
    return absl::Status(
        store.status().code(),
        absl::StrCat("storage.path ", config_.storage().path(), ": ", store.status().message()));
  }
  store_ = *std::move(store);
  LogMissingCommits(store_->Stats(), world_.log);
  return absl::OkStatus();
}

absl::Status Collector::Parts::OpenDoor() {
  edge::QuotasOptions quotas{config_.quotas(), config_.storage().journal_queue_bytes(),
                             registry_.get()};
  if (store_->Shared().on) {
    quotas.unshipped = [this] { return store_->unshipped_bytes(); };
    quotas.queued = [this] { return store_->queued_bytes(); };
    quotas.max_unshipped = config_.cluster().max_unshipped_bytes();
  }
  quotas_ = std::make_unique<edge::Quotas>(std::move(quotas));
  if (auto s = quotas_->Prepare(config_); !s.ok()) return s.status();
  edge::DoorOptions options;
  options.config = config_;
  options.registry = registry_.get();
  options.memory_short = [this] { return quotas_->pressure() == edge::Pressure::kRefuse; };
  // Any client that connects can cause these lines, so their rate is limited.
  options.log = [log = world_.log](absl::string_view line) {
    log.Limited(log::Level::kInfo, "connections", {{"text", line}});
  };
  TACHO_ASSIGN_OR_RETURN(auto door, edge::Door::Open(std::move(options)));
  door_ = std::move(door);
  reloader_.Add(quotas_.get());
  reloader_.Add(door_.get());
  return absl::OkStatus();
}

void Collector::Parts::OnDisk(storage::DiskState state, const absl::Status& why) {
  readiness_.SetHeldBy(std::string(why.message()));
  TellHealth();
  switch (state) {
    case storage::DiskState::kWritable:
      return world_.log.Info("the disk takes writes again: storing continues");
    case storage::DiskState::kRefusing:
      return world_.log.Error("nothing is stored until the disk has room; queries still work",
                              {{"reason", why.message()}});
    case storage::DiskState::kFailed:
      world_.log.Error("nothing more is stored by this process", {{"reason", why.message()}});
      if (world_.on_disk_failed) world_.on_disk_failed();
  }
}

void Collector::Parts::OnAcksEnded(const absl::Status& why) {
  if (!absl::IsAborted(why)) return OnDisk(storage::DiskState::kFailed, why);
  world_.log.Error("another collector has become the owner of this one's data",
                   {{"bucket", config_.bucket().url()}, {"reason", why.message()}});
  {
    absl::MutexLock lock(&owner_mutex_);
    owns_ = false;
    if (!serves_) return;
  }
  TakeNothing();
  if (world_.on_shard_lost) world_.on_shard_lost();
}

void Collector::Parts::Serve() {
  readiness_.SetReady();
  {
    absl::MutexLock lock(&owner_mutex_);
    serves_ = true;
    if (owns_) return;
  }
  TakeNothing();
  if (world_.on_shard_lost) world_.on_shard_lost();
}

void Collector::Parts::TakeNothing() {
  readiness_.SetNotReady("another collector has become the owner of this one's data");
  TellHealth();
  // Streams end at once; agents go on with the owner.
  ingest_->Drain(absl::InfinitePast());
}

void Collector::Parts::TellHealth() {
  absl::MutexLock lock(&health_mutex_);
  if (health_ != nullptr) health_->SetServingStatus(readiness_.WhyNotReady().empty());
}

absl::Status Collector::Parts::MakeConditions() {
  auto settings = conditions::ConditionSettings::Create(config_.conditions());
  if (!settings.ok()) return settings.status();
  conditions::ConditionEngineOptions options;
  options.store = store_.get();
  options.agents = &agents_;
  options.settings = *std::move(settings);
  // The engine runs after all is made, and stops before it is drained.
  options.on_stalled = [this](const std::string& job) { requests_->OnStalled(job); };
  options.on_profile = [this](const conditions::ProfileOrder& order) {
    v1::TakeProfilesRequest request;
    request.set_job(order.job);
    for (const uint32_t task : order.tasks) request.add_tasks(task);
    request.set_duration_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(order.duration)));
    return requests_->TakeProfilesSoon(request, order.cause);
  };
  options.now = world_.now;
  options.registry = registry_.get();
  options.log = world_.log;
  conditions_ = std::make_unique<conditions::ConditionEngine>(std::move(options));
  reloader_.Add(conditions_.get());
  return absl::OkStatus();
}

absl::Status Collector::Parts::StartAdmin() {
  // A file system that is not the real one has no place for a socket.
  if (config_.admin().listen() == "off" || world_.env != nullptr) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(const auto address, admin::ParseAdminAddress(config_.admin().listen(),
                                                                      config_.storage().path()));
  admin::AdminServiceOptions options;
  options.actions.drain = [this](absl::Duration timeout) { return DrainIngest(timeout); };
  options.actions.fill_stats = [this](v1::GetStatsResponse* stats) { FillStats(stats); };
  options.actions.reload = [this] { return Reload("tachoctl"); };
  options.snapshots = {store_.get(), config_.admin().snapshot_directory(), world_.now};
  options.log = world_.log;
  // Everybody on the machine can reach a port of the loopback interface.
  if (address.socket.empty()) {
    options.authorize = [access = security_->access()](const grpc::CallbackServerContext& context) {
      return security::AdmitCall(access, context, security::Role::kAdmin).status();
    };
  }
  admin_ = std::make_unique<admin::AdminService>(std::move(options));
  TACHO_ASSIGN_OR_RETURN(auto listener, admin::AdminListener::Start(address, admin_.get()));
  admin_listener_ = std::move(listener);
  return absl::OkStatus();
}

v1::DrainResponse Collector::Parts::DrainIngest(absl::Duration timeout) {
  v1::DrainResponse response;
  response.set_streams(ingest_->open_streams());
  draining_ = true;
  readiness_.SetNotReady("draining");
  TellHealth();
  ingest_->Drain(MonotonicNow() + timeout);
  response.set_streams_left(ingest_->open_streams());
  return response;
}

void Collector::Parts::FillMember(v1::ClusterMember* member) const {
  member->set_jobs(store_->Stats().jobs);
  member->set_agents(ingest_->open_streams());
  if (bucket_ != nullptr) {
    const auto use = bucket_->use();
    auto* const requests = member->mutable_bucket();
    requests->set_writes(use.writes);
    requests->set_reads(use.reads);
    requests->set_bytes_sent(use.bytes_sent);
    requests->set_bytes_received(use.bytes_received);
    requests->set_seconds(absl::ToDoubleSeconds(use.during));
  }
  const storage::SharedState shared = store_->Shared();
  if (!shared.on) return;
  auto* const shipping = member->mutable_shipping();
  shipping->set_epoch(shared.epoch);
  shipping->set_fenced(shared.fenced);
  shipping->set_unshipped_bytes(shared.unshipped_bytes);
  shipping->set_unshipped_seconds(absl::ToDoubleSeconds(shared.unshipped_for));
}

CollectorFigures Collector::Parts::Figures() const {
  return {.store = store_.get(),
          .ingest = ingest_.get(),
          .readiness = &readiness_,
          .started = started_,
          .draining = draining_,
          .directory = config_.storage().path(),
          .retention = absl::Nanoseconds(config_.storage().retention())};
}

void Collector::Parts::FillStats(v1::GetStatsResponse* stats) {
  stats->set_version(TACHO_VERSION);
  stats->set_now_unix_ns(absl::ToUnixNanos(world_.now()));
  reloader_.Fill(stats->mutable_reload());
  Figures().Fill(stats);
}

absl::Status Collector::Parts::Reload(absl::string_view asked_by) {
  return reloader_.Reload(asked_by, [this] { ingest_->RecheckCallers(); });
}

absl::Status Collector::Parts::Drain() {
  if (std::exchange(drained_, true)) return absl::OkStatus();
  readiness_.SetNotReady("draining");
  draining_ = true;
  clock_watch_.Stop();
  if (security_ != nullptr) security_->StopWatching();
  if (grpc_ != nullptr) StopGrpc();
  if (admin_listener_ != nullptr) admin_listener_->Stop(kShutdownGrace);
  if (http_ != nullptr) http_->Stop();
  if (conditions_ != nullptr) conditions_->Stop();
  if (boards_ != nullptr) boards_->Stop();
  if (doors_ != nullptr) doors_->Stop();
  if (forwarding_ != nullptr) forwarding_->Stop();
  return store_ == nullptr ? absl::OkStatus() : store_->Close();
}

void Collector::Parts::StopGrpc() {
  {
    absl::MutexLock lock(&health_mutex_);
    health_ = nullptr;
  }
  grpc_->GetHealthCheckService()->SetServingStatus(false);
  const absl::Time deadline = MonotonicNow() + world_.drain_timeout;
  if (!ingest_->Drain(deadline)) {
    // Nothing is lost: what was not acknowledged stays in the agents' spools.
    world_.log.Warn("some agents did not take their last acknowledgement in time: cut off",
                    {{"streams", ingest_->open_streams()}});
  }
  if (forwarded_ != nullptr) forwarded_->Drain();
  doors_->StopStatsd();
  if (forwarded_writes_ != nullptr) forwarded_writes_->Drain();
  if (forwarded_reads_ != nullptr) forwarded_reads_->Drain();
  query_->Drain();
  marks_->Drain();
  asker_.Close();
  requests_->Drain();
  door_->Stop();
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kShutdownGrace));
  grpc_->Wait();
}

Collector::Collector(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Collector::~Collector() = default;

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(const config::v1::Collector& config,
                                                            CollectorWorld world) {
  auto parts = std::make_unique<Parts>(config, std::move(world));
  TACHO_RETURN_IF_ERROR(parts->Start());
  return std::unique_ptr<Collector>(new Collector(std::move(parts)));
}
int Collector::grpc_port() const { return parts_->grpc_port(); }
int Collector::http_port() const { return parts_->http_port(); }
int Collector::admin_port() const { return parts_->admin_port(); }
std::string Collector::page_url() const { return parts_->PageUrl(); }
absl::Status Collector::Reload(absl::string_view asked_by) { return parts_->Reload(asked_by); }
absl::Status Collector::Drain() { return parts_->Drain(); }

}  // namespace tacho::server
