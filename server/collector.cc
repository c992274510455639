#include "server/collector.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "proto/config/config_diff.h"
#include "server/conditions/condition_families.h"
#include "server/conditions/window/configured_names.h"
#include "server/goodput/goodput_families.h"
#include "server/process/grpc_transport.h"
#include "server/http/routes.h"
#include "server/limits/limit_config.h"
#include "server/security/grpc_caller.h"

namespace tacho::server {
namespace {

// Agents ping about every 30 s to keep their connection through idle times and middle boxes; gRPC's
// default would take more than one ping in 5 minutes for an attack and hang up.
constexpr int kMinPingIntervalMs = 10'000;
// An agent needs one stream and a person a few queries; a proxy that folds many into one connection
// opens another.
constexpr int kMaxStreamsPerConnection = 100;
// Without a call; a client that comes back later connects again.
constexpr int kMaxIdleMs = 300'000;
// Of one call: a token of ours has some hundred bytes.
constexpr int kMaxHeaderBytes = 8 << 10;
// Ceiling for gRPC's buffers; past it flow control tightens instead of memory growing. Takes 20,000
// connections at the 75 KiB that one was measured to cost.
constexpr size_t kGrpcMemoryBytes = 1536u << 20;
// After the streams are gone only unary calls and health watchers are left.
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

void Configure(const config::v1::Collector::Ingest& limits, const config::v1::Quotas& quotas,
               grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes()));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  TuneTransport(builder);
  // Nobody of ours compresses, and 1.51 unpacks a message whole before it looks at its size.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeaderBytes);
  // A connection without TLS or HTTP/2 settings by then is closed.
  builder->AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(absl::Nanoseconds(quotas.hello_timeout()))));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder->SetResourceQuota(grpc::ResourceQuota("tacho-collector").Resize(kGrpcMemoryBytes));
}

void FillStoreStats(const storage::StoreStats& from, v1::GetStatsResponse::StoreStats* to) {
  to->set_jobs(from.jobs);
  to->set_series(from.series);
  to->set_samples_appended(from.samples_appended);
  to->set_rows_appended(from.rows_appended);
  to->set_open_rows(from.open_rows);
  to->set_open_bytes(from.open_bytes);
  to->set_journal_entries(from.journal_entries);
  to->set_journal_bytes(from.journal_bytes);
  to->set_queued_bytes(from.queued_bytes);
  to->set_partitions(from.partitions);
  to->set_disk_bytes(from.disk_bytes);
}

}  // namespace

Collector::Collector(const config::v1::Collector& config, CollectorWorld world)
    : config_(config),
      world_(std::move(world)),
      registry_(std::make_shared<prometheus::Registry>()),
      started_(world_.now()),
      log_level_(world_.log),
      reloadables_{&log_level_},
      reload_metrics_(registry_.get()) {}

Collector::~Collector() { Drain().IgnoreError(); }

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(const config::v1::Collector& config,
                                                            CollectorWorld world) {
  std::unique_ptr<Collector> collector(new Collector(config, std::move(world)));
  if (auto s = collector->MakeSecurity(); !s.ok()) return s;
  if (auto s = collector->OpenStore(); !s.ok()) return s;
  if (auto s = collector->OpenDoor(); !s.ok()) return s;
  if (auto s = collector->MakeConditions(); !s.ok()) return s;
  collector->MakeServices();
  if (auto s = collector->StartGrpc(); !s.ok()) return s;
  if (auto s = collector->StartHttp(); !s.ok()) return s;
  collector->reload_metrics_.Started(collector->world_.now());
  collector->readiness_.SetReady();
  {
    absl::MutexLock lock(&collector->health_mutex_);
    collector->health_ = collector->grpc_->GetHealthCheckService();
  }
  collector->TellHealth();
  collector->security_->Watch([ingest = collector->ingest_.get()] { ingest->RecheckCallers(); });
  collector->conditions_->Start();
  // Last: it may be told at once to drain.
  if (auto s = collector->StartAdmin(); !s.ok()) return s;
  return collector;
}

absl::Status Collector::MakeSecurity() {
  SecurityOptions options;
  options.now = world_.now;
  options.log = world_.log;
  options.registry = registry_.get();
  auto security = Security::Create(config_, std::move(options));
  if (!security.ok()) return security.status();
  security_ = *std::move(security);
  const auto& parts = security_->reloadables();
  reloadables_.insert(reloadables_.end(), parts.begin(), parts.end());
  return absl::OkStatus();
}

absl::Status Collector::OpenStore() {
  const auto& storage = config_.storage();
  storage::StoreOptions options;
  options.path = storage.path();
  options.retention = absl::Nanoseconds(storage.retention());
  options.retention_bytes = storage.retention_bytes();
  options.seal_age = absl::Nanoseconds(storage.seal_age());
  options.seal_rows = storage.seal_rows();
  options.queue_bytes = storage.journal_queue_bytes();
  options.block_cache_bytes = storage.block_cache_bytes();
  options.column_cache_bytes = storage.column_cache_bytes();
  auto limits = MakeLimitPolicy(config_.limits());
  if (!limits.ok()) return limits.status();
  options.limits = *std::move(limits);
  options.now = world_.now;
  options.env = world_.env;
  options.log = [log = world_.log](absl::string_view line) { log.Info(line, {{"part", "store"}}); };
  options.on_disk = [this](storage::DiskState state, const absl::Status& why) {
    OnDisk(state, why);
  };
  auto store = storage::Store::Open(std::move(options));
  if (!store.ok()) {
    return absl::Status(store.status().code(), absl::StrCat("storage.path ", storage.path(), ": ",
                                                            store.status().message()));
  }
  store_ = *std::move(store);
  return absl::OkStatus();
}

absl::Status Collector::OpenDoor() {
  quotas_ = std::make_unique<Quotas>(
      QuotasOptions{config_.quotas(), config_.storage().journal_queue_bytes(), registry_.get()});
  if (auto s = quotas_->Prepare(config_); !s.ok()) return s.status();
  DoorOptions options;
  options.config = config_;
  options.registry = registry_.get();
  options.memory_short = [this] { return quotas_->pressure() == Pressure::kRefuse; };
  // Whoever connects can cause these.
  options.log = [log = world_.log](absl::string_view line) {
    log.Limited(log::Level::kInfo, "connections", {{"text", line}});
  };
  auto door = Door::Open(std::move(options));
  if (!door.ok()) return door.status();
  door_ = *std::move(door);
  reloadables_.push_back(quotas_.get());
  reloadables_.push_back(door_.get());
  return absl::OkStatus();
}

void Collector::OnDisk(storage::DiskState state, const absl::Status& why) {
  readiness_.SetHeldBy(std::string(why.message()));
  TellHealth();
  switch (state) {
    case storage::DiskState::kWritable:
      return world_.log.Info("the disk takes writes again: storing goes on");
    case storage::DiskState::kRefusing:
      return world_.log.Error("nothing is stored until the disk has room, queries are answered",
                              {{"reason", why.message()}});
    case storage::DiskState::kFailed:
      world_.log.Error("nothing more is stored by this process", {{"reason", why.message()}});
      if (world_.on_disk_failed) world_.on_disk_failed();
  }
}

void Collector::TellHealth() {
  absl::MutexLock lock(&health_mutex_);
  if (health_ != nullptr) health_->SetServingStatus(readiness_.WhyNotReady().empty());
}

absl::Status Collector::MakeConditions() {
  auto settings = ConditionSettings::Create(config_.conditions());
  if (!settings.ok()) return settings.status();
  ConditionEngineOptions options;
  options.store = store_.get();
  options.agents = &agents_;
  options.settings = *std::move(settings);
  options.now = world_.now;
  options.registry = registry_.get();
  options.log = world_.log;
  conditions_ = std::make_unique<ConditionEngine>(std::move(options));
  reloadables_.push_back(conditions_.get());
  return absl::OkStatus();
}

void Collector::MakeServices() {
  limiting_ = std::make_unique<SeriesLimiting>(store_.get(), registry_.get(), config_.limits());
  reloadables_.push_back(limiting_.get());
  IngestServiceOptions ingest;
  ingest.quotas = quotas_.get();
  ingest.connections = door_->connections();
  ingest.limiting = limiting_.get();
  ingest.ledger = &agents_;
  ingest.store = store_.get();
  ingest.registry = registry_.get();
  ingest.limits = config_.ingest();
  ingest.retention = absl::Nanoseconds(config_.storage().retention());
  ingest.now = world_.now;
  ingest.version = TACHO_VERSION;
  ingest.log = world_.log;
  ingest.access = security_->access();
  ingest_ = std::make_unique<IngestService>(std::move(ingest));
  reloadables_.push_back(ingest_.get());

  const auto signals =
      std::make_shared<const SignalNames>(ConfiguredNames(config_.conditions().signals()));
  QueryServiceOptions query;
  query.store = store_.get();
  query.refusals = &limiting_->ledger();
  query.conditions = &conditions_->board();
  query.limits = config_.query();
  query.now = world_.now;
  query.registry = registry_;
  query.access = security_->access();
  query.signals = signals;
  query_ = std::make_unique<QueryService>(std::move(query));
  tensorboard_ = std::make_unique<TensorBoardService>(query_.get());
  reloadables_.push_back(query_.get());

  GoodputBoardOptions goodput;
  goodput.store = store_.get();
  goodput.now = world_.now;
  goodput.signals = signals;
  goodput_ = std::make_unique<GoodputBoard>(std::move(goodput));
  reloadables_.push_back(goodput_.get());
}

absl::Status Collector::StartGrpc() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  Configure(config_.ingest(), config_.quotas(), &builder);
  door_->Attach(&builder, security_->grpc_credentials());
  builder.RegisterService(ingest_.get());
  builder.RegisterService(query_.get());
  builder.RegisterService(tensorboard_.get());
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::InternalError("gRPC's server does not start");
  door_->Serve();
  return absl::OkStatus();
}

absl::Status Collector::StartHttp() {
  if (auto rules = MakeAggregateRules(config_.metrics()); !rules.ok()) return rules.status();
  MetricsPageOptions page{store_.get(), registry_,   config_.metrics(),       world_.now,
                          world_.log,   &readiness_, config_.storage().path()};
  page.others.push_back([board = &conditions_->board()](size_t max_lines) {
    return ConditionFamilies(board->All([](const std::string&) { return true; }), max_lines);
  });
  page.others.push_back([board = goodput_.get()](size_t max_lines) {
    return GoodputFamilies(board->Newest(), board->Stats(), max_lines);
  });
  metrics_page_ = std::make_unique<MetricsPage>(std::move(page));
  reloadables_.push_back(metrics_page_.get());
  HttpServerOptions options;
  options.address = config_.listen().http();
  options.registry = registry_.get();
  if (config_.listen().tls().http()) options.tls = security_->tls();
  HttpGuard guard;
  guard.access = security_->access();
  guard.require_certificate =
      options.tls != nullptr && options.tls->client_certificates() == ClientCertificates::kRequire;
  options.routes = CollectorRoutes(metrics_page_.get(), &readiness_, guard);
  auto http = HttpServer::Start(std::move(options));
  if (!http.ok()) {
    return absl::Status(http.status().code(),
                        absl::StrCat("listen.http: ", http.status().message()));
  }
  http_ = *std::move(http);
  return absl::OkStatus();
}

absl::Status Collector::StartAdmin() {
  // A file system that is not the real one has no place for a socket.
  if (config_.admin().listen() == "off" || world_.env != nullptr) return absl::OkStatus();
  const auto address = ParseAdminAddress(config_.admin().listen(), config_.storage().path());
  if (!address.ok()) return address.status();
  AdminServiceOptions options;
  options.actions.drain = [this](absl::Duration timeout) { return DrainIngest(timeout); };
  options.actions.fill_stats = [this](v1::GetStatsResponse* stats) { FillStats(stats); };
  options.actions.reload = [this] { return Reload("tachoctl"); };
  options.snapshots = {store_.get(), config_.admin().snapshot_directory(), world_.now};
  options.log = world_.log;
  // A port of the loopback interface is for everybody on the machine.
  if (address->socket.empty()) {
    options.authorize = [access = security_->access()](const grpc::CallbackServerContext& context) {
      return AdmitCall(access, context, Role::kAdmin).status();
    };
  }
  admin_ = std::make_unique<AdminService>(std::move(options));
  auto listener = AdminListener::Start(*address, admin_.get());
  if (!listener.ok()) return listener.status();
  admin_listener_ = *std::move(listener);
  return absl::OkStatus();
}

v1::DrainResponse Collector::DrainIngest(absl::Duration timeout) {
  v1::DrainResponse response;
  response.set_streams(ingest_->open_streams());
  draining_ = true;
  readiness_.SetNotReady("draining");
  TellHealth();
  ingest_->Drain(absl::Now() + timeout);
  response.set_streams_left(ingest_->open_streams());
  return response;
}

void Collector::FillStats(v1::GetStatsResponse* stats) {
  stats->set_version(TACHO_VERSION);
  stats->set_pid(static_cast<uint32_t>(::getpid()));
  stats->set_started_unix_ns(absl::ToUnixNanos(started_));
  stats->set_now_unix_ns(absl::ToUnixNanos(world_.now()));
  stats->set_not_ready(readiness_.WhyNotReady());
  stats->set_draining(draining_);
  stats->set_streams(ingest_->open_streams());
  {
    absl::MutexLock lock(&reload_mutex_);
    reload_metrics_.Fill(stats->mutable_reload());
    stats->mutable_reload()->set_last_refusal(std::string(last_reload_.message()));
  }
  FillStoreStats(store_->Stats(), stats->mutable_store());
}

absl::Status Collector::Reload(absl::string_view asked_by) {
  absl::MutexLock lock(&reload_mutex_);
  const auto read = world_.read_config
                        ? world_.read_config()
                        : absl::FailedPreconditionError("there is no configuration to read again");
  last_reload_ = read.ok() ? ReloadParts(*read) : read.status();
  reload_metrics_.Reloaded(last_reload_.ok(), world_.now());
  if (last_reload_.ok()) {
    world_.log.Info("the configuration was read again", {{"asked_by", asked_by}});
  } else {
    world_.log.Error("reload refused: nothing was changed",
                     {{"asked_by", asked_by}, {"reason", last_reload_.message()}});
  }
  return last_reload_;
}

absl::Status Collector::ReloadParts(const config::v1::Collector& config) {
  const std::vector<std::string> fixed = config::KeysThatNeedRestart(config_, config);
  if (!fixed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(absl::StrJoin(fixed, ", "), ": changed, which needs a restart"));
  }
  std::vector<std::function<void()>> changes;
  for (Reloadable* const part : reloadables_) {
    auto change = part->Prepare(config);
    if (!change.ok()) return change.status();
    changes.push_back(*std::move(change));
  }
  for (const auto& change : changes) change();
  ingest_->RecheckCallers();
  return absl::OkStatus();
}

absl::Status Collector::Drain() {
  if (std::exchange(drained_, true)) return absl::OkStatus();
  readiness_.SetNotReady("draining");
  draining_ = true;
  if (security_ != nullptr) security_->StopWatching();
  if (grpc_ != nullptr) StopGrpc();
  if (admin_listener_ != nullptr) admin_listener_->Stop(kShutdownGrace);
  if (http_ != nullptr) http_->Stop();
  if (conditions_ != nullptr) conditions_->Stop();
  if (goodput_ != nullptr) goodput_->Stop();
  return store_ == nullptr ? absl::OkStatus() : store_->Close();
}

void Collector::StopGrpc() {
  {
    absl::MutexLock lock(&health_mutex_);
    health_ = nullptr;
  }
  grpc_->GetHealthCheckService()->SetServingStatus(false);
  const absl::Time deadline = absl::Now() + world_.drain_timeout;
  if (!ingest_->Drain(deadline)) {
    // Nothing is lost: what was not acknowledged stays in the agents' spools.
    world_.log.Warn("some agents did not take their last acknowledgement in time: cut off",
                    {{"streams", ingest_->open_streams()}});
  }
  query_->Drain();
  door_->Stop();
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kShutdownGrace));
  grpc_->Wait();
}

}  // namespace tacho::server
