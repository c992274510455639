// Builds the parts of the collector in the order in which they need each other, and drains them in
// reverse.
#include "server/collector.h"

#include <atomic>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "prometheus/registry.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/admin/admin_listener.h"
#include "server/admin/admin_service.h"
#include "server/bridge/connect_bridge.h"
#include "server/collector_figures.h"
#include "server/conditions/condition_engine.h"
#include "server/conditions/condition_families.h"
#include "server/conditions/window/signal_names.h"
#include "server/edge/door.h"
#include "server/edge/quotas.h"
#include "server/errors/unparsed_requests.h"
#include "server/forward/forwarding.h"
#include "server/goodput/goodput_board.h"
#include "server/goodput/goodput_families.h"
#include "server/history/history_bucket.h"
#include "server/http/families.h"
#include "server/http/http_server.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"
#include "server/http/routes.h"
#include "server/ingest/agent_asker.h"
#include "server/ingest/agent_clocks.h"
#include "server/ingest/agent_ledger.h"
#include "server/ingest/ingest_service.h"
#include "server/interop/doors.h"
#include "server/limits/series_limiting.h"
#include "server/marks/marks_service.h"
#include "server/process/clock_watch.h"
#include "server/process/grpc_transport.h"
#include "server/process/reloader.h"
#include "server/promread/explore_door.h"
#include "server/promread/remote_read_door.h"
#include "server/query/query_service.h"
#include "server/requests/agent_requests_service.h"
#include "server/security/grpc_caller.h"
#include "server/security/security.h"
#include "server/store_options.h"
#include "server/tensorboard/tensorboard_service.h"
#include "server/view/view_service.h"
#include "server/web/page_url.h"
#include "server/web/web_routes.h"
#include "storage/store.h"

namespace tacho::server {
namespace {

// After the streams are gone only unary calls and health watchers are left.
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

}  // namespace

class Collector::Parts {
 public:
  Parts(const config::v1::Collector& config, CollectorWorld world);
  ~Parts();

  // The others do what the header says.
  absl::Status Start();
  int grpc_port() const { return door_->port(); }
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }
  int admin_port() const { return admin_listener_ == nullptr ? 0 : admin_listener_->port(); }
  absl::Status Reload(absl::string_view asked_by);
  absl::Status Drain();
  std::string PageUrl() const ABSL_LOCKS_EXCLUDED(page_mutex_);

 private:
  absl::Status MakeSecurity();
  absl::Status OpenStore();
  absl::Status OpenDoor();
  absl::Status StartAdmin();
  // As tacho.v1.Admin says.
  v1::DrainResponse DrainIngest(absl::Duration timeout);
  void FillStats(v1::GetStatsResponse* stats);
  CollectorFigures Figures() const;
  absl::Status MakeConditions();
  void MakeServices();
  absl::Status MakeInterop();
  void OnDisk(storage::DiskState state, const absl::Status& why);
  process::ClockWatch::Options ClockWatchOptions();
  void TellHealth() ABSL_LOCKS_EXCLUDED(health_mutex_);
  absl::Status StartGrpc();
  absl::Status StartHttp();
  // Decides who may use the HTTP port.
  http::HttpGuard Guard() const;
  // The page for browsers, and its API.
  absl::Status AddPage(const http::HttpGuard& guard, http::HttpServerOptions* options);
  void StopGrpc();

  const config::v1::Collector config_;  // As it was started.
  const CollectorWorld world_;
  const std::shared_ptr<prometheus::Registry> registry_;
  http::Readiness readiness_;
  absl::Mutex health_mutex_;
  // Belongs to grpc_; set while it serves.
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(health_mutex_) = nullptr;
  mutable absl::Mutex page_mutex_;
  std::string page_url_ ABSL_GUARDED_BY(page_mutex_);  // Known once HTTP has its port.
  bool drained_ = false;
  const absl::Time started_;
  std::atomic<bool> draining_ = false;
  ingest::AgentClocks agent_clocks_;
  process::ClockWatch clock_watch_;
  // In the order in which they are built.
  std::unique_ptr<security::Security> security_;
  std::unique_ptr<history::HistoryBucket> bucket_;  // Null: there is none.
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<limits::SeriesLimiting> limiting_;
  std::unique_ptr<edge::Quotas> quotas_;
  std::unique_ptr<edge::Door> door_;
  ingest::AgentLedger agents_;
  ingest::AgentAsker asker_;
  std::unique_ptr<conditions::ConditionEngine> conditions_;
  std::unique_ptr<ingest::IngestService> ingest_;
  std::unique_ptr<interop::Doors> doors_;
  std::unique_ptr<query::QueryService> query_;
  std::unique_ptr<TensorBoardService> tensorboard_;
  std::unique_ptr<promread::RemoteReadDoor> remote_read_;
  std::unique_ptr<promread::ExploreDoor> explore_;
  std::unique_ptr<marks::MarksService> marks_;
  std::unique_ptr<requests::AgentRequestsService> requests_;
  std::unique_ptr<goodput::GoodputBoard> goodput_;
  std::unique_ptr<view::ViewService> view_;
  std::unique_ptr<forward::Forwarding> forwarding_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<http::MetricsPage> metrics_page_;
  std::unique_ptr<bridge::ConnectBridge> bridge_;
  std::unique_ptr<http::HttpServer> http_;
  std::unique_ptr<admin::AdminService> admin_;
  std::unique_ptr<admin::AdminListener> admin_listener_;
  process::Reloader reloader_;
};

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

Collector::Parts::~Parts() { Drain().IgnoreError(); }

absl::Status Collector::Parts::Start() {
  TACHO_RETURN_IF_ERROR(MakeSecurity());
  TACHO_RETURN_IF_ERROR(OpenStore());
  TACHO_RETURN_IF_ERROR(OpenDoor());
  TACHO_RETURN_IF_ERROR(MakeConditions());
  MakeServices();
  TACHO_RETURN_IF_ERROR(MakeInterop());
  TACHO_ASSIGN_OR_RETURN(
      forwarding_, forward::Forwarding::Create({config_, store_.get(), registry_.get(), world_.now,
                                                TACHO_VERSION, world_.log}));
  TACHO_RETURN_IF_ERROR(StartGrpc());
  TACHO_RETURN_IF_ERROR(StartHttp());
  reloader_.Started();
  readiness_.SetReady();
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
  if (!config_.bucket().url().empty()) {
    TACHO_ASSIGN_OR_RETURN(bucket_,
                           history::HistoryBucket::Open({config_, registry_.get(), world_.log}));
    options.history = bucket_->history();
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
  if (const auto stats = store_->Stats(); stats.missing_commits > 0) {
    world_.log.Error(
        "the store has lost the end of its log; agents send again what they still have",
        {{"commits", stats.missing_commits},
         {"messages", stats.missing_messages},
         {"rows", stats.missing_rows}});
  }
  return absl::OkStatus();
}

absl::Status Collector::Parts::OpenDoor() {
  quotas_ = std::make_unique<edge::Quotas>(edge::QuotasOptions{
      config_.quotas(), config_.storage().journal_queue_bytes(), registry_.get()});
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
  options.now = world_.now;
  options.registry = registry_.get();
  options.log = world_.log;
  conditions_ = std::make_unique<conditions::ConditionEngine>(std::move(options));
  reloader_.Add(conditions_.get());
  return absl::OkStatus();
}

void Collector::Parts::MakeServices() {
  limiting_ =
      std::make_unique<limits::SeriesLimiting>(store_.get(), registry_.get(), config_.limits());
  reloader_.Add(limiting_.get());
  ingest::IngestServiceOptions ingest;
  ingest.quotas = quotas_.get();
  ingest.connections = door_->connections();
  ingest.limiting = limiting_.get();
  ingest.ledger = &agents_;
  ingest.asker = &asker_;
  ingest.clocks = &agent_clocks_;
  ingest.clock_watch = &clock_watch_;
  ingest.store = store_.get();
  ingest.registry = registry_.get();
  ingest.limits = config_.ingest();
  ingest.retention = absl::Nanoseconds(config_.storage().retention());
  ingest.now = world_.now;
  ingest.version = TACHO_VERSION;
  ingest.log = world_.log;
  ingest.access = security_->access();
  ingest_ = std::make_unique<ingest::IngestService>(std::move(ingest));
  reloader_.Add(ingest_.get());

  const auto signals = std::make_shared<const conditions::SignalNames>(
      conditions::ConfiguredNames(config_.conditions().signals()));
  query::QueryServiceOptions query;
  query.store = store_.get();
  query.refusals = &limiting_->ledger();
  query.job_refusals = &limiting_->job_refusals();
  query.conditions = &conditions_->board();
  query.limits = config_.query();
  query.now = world_.now;
  query.registry = registry_;
  query.access = security_->access();
  query.signals = signals;
  const auto reports = [agents = &agents_, now = world_.now](const std::string& host) {
    return agents->Reports(host, absl::ToUnixNanos(now()));
  };
  query.reports = reports;
  query_ = std::make_unique<query::QueryService>(std::move(query));
  tensorboard_ = std::make_unique<TensorBoardService>(query_.get());
  remote_read_ = std::make_unique<promread::RemoteReadDoor>(query_.get(), Guard());
  explore_ = std::make_unique<promread::ExploreDoor>(query_.get(), Guard(), TACHO_VERSION);
  marks_ = std::make_unique<marks::MarksService>(
      marks::MarksServiceOptions{store_.get(), security_->access(), world_.log});
  requests_ = std::make_unique<requests::AgentRequestsService>(requests::AgentRequestsOptions{
      .jobs = {.store = store_.get(), .asker = &asker_, .now = world_.now},
      .access = security_->access(),
      .log = world_.log});
  reloader_.Add(query_.get());

  goodput::GoodputBoardOptions goodput;
  goodput.store = store_.get();
  goodput.now = world_.now;
  goodput.signals = signals;
  goodput.reports = reports;
  goodput_ = std::make_unique<goodput::GoodputBoard>(std::move(goodput));
  reloader_.Add(goodput_.get());

  view::ViewServiceOptions view;
  view.queries = query_.get();
  view.goodput = goodput_.get();
  view.version = TACHO_VERSION;
  view.salt = static_cast<uint64_t>(absl::ToUnixNanos(started_));
  view.page_url = [this] { return PageUrl(); };
  view.fill_collector = [this](v1::CollectorResponse* response) { Figures().Fill(response); };
  view_ = std::make_unique<view::ViewService>(std::move(view));
}

absl::Status Collector::Parts::StartGrpc() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  process::ConfigureGrpc(config_.ingest(), config_.quotas(), &builder);
  edge::Door::Interceptors interceptors;
  interceptors.push_back(std::make_unique<errors::UnparsedRequests>(
      [query = query_.get()](absl::string_view method) { query->CountUnparsed(method); }));
  door_->Attach(&builder, security_->grpc_credentials(), std::move(interceptors));
  builder.RegisterService(ingest_.get());
  builder.RegisterService(query_.get());
  builder.RegisterService(tensorboard_.get());
  builder.RegisterService(marks_.get());
  builder.RegisterService(requests_.get());
  builder.RegisterService(view_.get());
  doors_->Register(&builder);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::InternalError("gRPC's server does not start");
  door_->Serve();
  return absl::OkStatus();
}

http::HttpGuard Collector::Parts::Guard() const {
  const auto certificates = security_->tls() == nullptr ? security::ClientCertificates::kNone
                                                        : security_->tls()->client_certificates();
  return {.access = security_->access(),
          .require_certificate = config_.listen().tls().http() &&
                                 certificates == security::ClientCertificates::kRequire};
}

absl::Status Collector::Parts::StartHttp() {
  if (auto rules = aggregate::MakeAggregateRules(config_.metrics()); !rules.ok())
    return rules.status();
  TACHO_RETURN_IF_ERROR(web::CheckPageUrl(config_.ui().url()));
  http::MetricsPageOptions page{store_.get(), registry_,   config_.metrics(),       world_.now,
                                world_.log,   &readiness_, config_.storage().path()};
  page.others.push_back([board = &conditions_->board()](size_t max_lines) {
    return conditions::ConditionFamilies(board->All([](const std::string&) { return true; }),
                                         max_lines);
  });
  page.others.push_back([board = goodput_.get()](size_t max_lines) {
    return goodput::GoodputFamilies(board->Newest(), board->Stats(), max_lines);
  });
  page.others.push_back([this](size_t) { return http::PageFamilies(PageUrl()); });
  page.others.push_back([this](size_t) { return forwarding_->Families(); });
  if (bucket_ != nullptr) {
    page.others.push_back([this](size_t) { return bucket_->Families(*store_); });
  }
  metrics_page_ = std::make_unique<http::MetricsPage>(std::move(page));
  reloader_.Add(metrics_page_.get());
  http::HttpServerOptions options;
  options.address = config_.listen().http();
  options.registry = registry_.get();
  if (config_.listen().tls().http()) options.tls = security_->tls();
  const http::HttpGuard guard = Guard();
  options.hosts.assign(config_.listen().http_hosts().begin(), config_.listen().http_hosts().end());
  // Users come under this name.
  if (const std::string host = web::HostOfPageUrl(config_.ui().url()); !host.empty()) {
    options.hosts.push_back(host);
  }
  options.require_certificate = guard.require_certificate;
  TACHO_RETURN_IF_ERROR(AddPage(guard, &options));
  doors_->AddRoutes(&options.routes);
  for (http::Route& route : remote_read_->Routes()) options.routes.push_back(std::move(route));
  for (http::Route& route : explore_->Routes()) options.routes.push_back(std::move(route));
  auto http = http::HttpServer::Start(std::move(options));
  if (!http.ok()) {
    return absl::Status(http.status().code(),
                        absl::StrCat("listen.http: ", http.status().message()));
  }
  http_ = *std::move(http);
  if (config_.ui().enabled() && web::HasPage({.directory = world_.web_directory})) {
    absl::MutexLock lock(&page_mutex_);
    page_url_ = web::PageUrl(config_, http_->port());
  }
  return absl::OkStatus();
}

absl::Status Collector::Parts::MakeInterop() {
  interop::IntakeOptions options;
  options.store = store_.get();
  options.admission = &ingest_->admission();
  options.metrics = ingest_->metrics();
  options.limiting = limiting_.get();
  options.quotas = quotas_.get();
  options.clock_watch = &clock_watch_;
  options.registry = registry_.get();
  options.now = world_.now;
  options.monotonic = world_.monotonic;
  options.log = world_.log;
  TACHO_ASSIGN_OR_RETURN(doors_,
                         interop::Doors::Open(config_.interop(), std::move(options), Guard()));
  reloader_.Add(doors_->intake());
  return absl::OkStatus();
}

std::string Collector::Parts::PageUrl() const {
  absl::MutexLock lock(&page_mutex_);
  return page_url_;
}

absl::Status Collector::Parts::AddPage(const http::HttpGuard& guard,
                                       http::HttpServerOptions* options) {
  const web::WebOptions files{.directory = world_.web_directory};
  TACHO_RETURN_IF_ERROR(web::CheckWebDirectory(files, options->address));
  const bool with_page = config_.ui().enabled();
  options->routes = http::CollectorRoutes(metrics_page_.get(), &readiness_, guard,
                                          with_page && web::HasPage(files));
  const auto add = [options](std::vector<http::Route> routes) {
    std::move(routes.begin(), routes.end(), std::back_inserter(options->routes));
  };
  if (with_page) add(web::WebRoutes(files));
  if (!with_page && !config_.ui().api()) return absl::OkStatus();
  grpc::ChannelArguments no_limits;
  no_limits.SetMaxReceiveMessageSize(-1);
  bridge_ = std::make_unique<bridge::ConnectBridge>(grpc_->InProcessChannel(no_limits));
  add(bridge_->Routes());
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
  if (goodput_ != nullptr) goodput_->Stop();
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
