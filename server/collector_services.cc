// What answers calls: the services of gRPC, the routes of HTTP, and the doors of other tools.

#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/server_builder.h"
#include "proto/base/status_macros.h"
#include "server/collector_parts.h"
#include "server/conditions/condition_families.h"
#include "server/conditions/window/signal_names.h"
#include "server/errors/packed_calls.h"
#include "server/errors/unparsed_requests.h"
#include "server/http/families.h"
#include "server/http/routes.h"
#include "server/metrics/metric_families.h"
#include "server/process/grpc_transport.h"
#include "server/takeover/ownership.h"
#include "server/web/page_url.h"
#include "server/web/web_routes.h"

namespace tacho::server {

absl::Status Collector::Parts::MakeServices() {
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
  ingest.membership = membership_.get();
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
  TACHO_ASSIGN_OR_RETURN(query.cost, cost::CostSettingsOf(config_));
  const auto reports = [agents = &agents_, now = world_.now](const std::string& host) {
    return agents->Reports(host, absl::ToUnixNanos(now()));
  };
  query.reports = reports;
  query.own_part = OwnPart();
  const auto cost = query.cost;
  query_ = std::make_unique<query::QueryService>(std::move(query));
  tensorboard_ = std::make_unique<TensorBoardService>(query_.get());
  promread::Members members;
  if (membership_->is_cluster()) {
    forwarded_reads_ = std::make_unique<cluster::ForwardReads>(ForwardOptions());
    members = {membership_.get(), forwarded_reads_.get()};
    member_reads_ = std::make_unique<promread::MemberReads>(query_.get(), membership_.get());
  }
  remote_read_ = std::make_unique<promread::RemoteReadDoor>(query_.get(), Guard(), members);
  explore_ = std::make_unique<promread::ExploreDoor>(query_.get(), Guard(), TACHO_VERSION, members);
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
  boards_ = std::make_unique<JobBoards>(std::move(goodput), cost, &reloader_);
  MakeView();
  return absl::OkStatus();
}

void Collector::Parts::MakeView() {
  view::ViewServiceOptions view;
  view.queries = query_.get();
  view.goodput = boards_->goodput();
  view.version = TACHO_VERSION;
  view.salt = static_cast<uint64_t>(absl::ToUnixNanos(started_));
  view.shows = ShownJobs();
  view.own_part = OwnPart();
  view.page_url = [this] { return PageUrl(); };
  view.fill_collector = [this](v1::CollectorResponse* response) { Figures().Fill(response); };
  view_ = std::make_unique<view::ViewService>(std::move(view));
}

void Collector::Parts::MakeCluster() {
  cluster::ClusterServiceOptions options;
  options.membership = membership_.get();
  options.access = security_->access();
  options.registry = registry_.get();
  options.version = TACHO_VERSION;
  options.fill_own = [this](v1::ClusterMember* member) { FillMember(member); };
  if (world_.ownership != nullptr) {
    options.standbys = [ownership = world_.ownership] { return ownership->standbys(); };
  }
  cluster_ = std::make_unique<cluster::ClusterService>(std::move(options));
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
  if (membership_->is_cluster()) {
    cluster::ForwardOptions forward = ForwardOptions();
    forward.writes = true;
    forwarded_writes_ = std::make_unique<cluster::ForwardWrites>(std::move(forward));
    options.elsewhere = forwarded_writes_.get();
  }
  TACHO_ASSIGN_OR_RETURN(doors_,
                         interop::Doors::Open(config_.interop(), std::move(options), Guard()));
  reloader_.Add(doors_->intake());
  return absl::OkStatus();
}

void Collector::Parts::MakeForwarding() {
  if (!membership_->is_cluster()) return;
  cluster::ForwardedServices::Here here;
  here.query = query_.get();
  here.service = query_.get();
  here.compare_across = std::bind_front(&query::QueryService::CompareAcross, query_.get());
  here.view = view_.get();
  here.marks = marks_.get();
  here.agent_requests = requests_.get();
  here.tensorboard = tensorboard_.get();
  forwarded_ = std::make_unique<cluster::ForwardedServices>(ForwardOptions(), here);
}

cluster::ForwardOptions Collector::Parts::ForwardOptions() const {
  cluster::ForwardOptions options;
  options.membership = membership_.get();
  options.access = security_->access();
  options.registry = registry_.get();
  options.now = world_.now;
  return options;
}

absl::Status Collector::Parts::StartGrpc() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  process::ConfigureGrpc(config_.ingest(), config_.quotas(), &builder);
  edge::Door::Interceptors interceptors;
  interceptors.push_back(std::make_unique<errors::PackedCalls>(doors_->MethodsThatUnpack()));
  interceptors.push_back(std::make_unique<errors::UnparsedRequests>(
      [query = query_.get()](absl::string_view method) { query->CountUnparsed(method); }));
  door_->Attach(&builder, security_->grpc_credentials(), std::move(interceptors));
  builder.RegisterService(ingest_.get());
  builder.RegisterService(cluster_.get());
  if (forwarded_ != nullptr) {
    forwarded_->Register(&builder);
    builder.RegisterService(member_reads_.get());
  } else {
    builder.RegisterService(query_.get());
    builder.RegisterService(tensorboard_.get());
    builder.RegisterService(marks_.get());
    builder.RegisterService(requests_.get());
    builder.RegisterService(view_.get());
  }
  doors_->Register(&builder);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::InternalError("gRPC's server does not start");
  if (forwarded_ != nullptr) forwarded_->Serve(grpc_.get());
  door_->Serve();
  return absl::OkStatus();
}

std::function<bool(absl::string_view job)> Collector::Parts::ShownJobs() const {
  if (!membership_->is_cluster()) return nullptr;
  return [membership = membership_.get()](absl::string_view job) {
    return membership->Keeps(job) || membership->IsSplit(job);
  };
}

std::function<bool(absl::string_view job, absl::string_view host)> Collector::Parts::ShownRows()
    const {
  if (!membership_->is_cluster()) return nullptr;
  return [membership = membership_.get()](absl::string_view job, absl::string_view host) {
    return membership->Keeps(job, host);
  };
}

query::OwnPart Collector::Parts::OwnPart() const {
  if (membership_->division().split_jobs.empty()) return nullptr;
  return [membership = membership_.get()](absl::string_view job) -> std::optional<query::HostPart> {
    if (!membership->IsSplit(job)) return std::nullopt;
    return query::HostPart{membership->own(), membership->shards()};
  };
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
  page.shows = ShownJobs();
  if (OwnPart() != nullptr) {
    page.is_copy = [membership = membership_.get()](const storage::SeriesSource& source) {
      return membership->IsSplit(source.job) && !membership->Keeps(source.job, source.host);
    };
  }
  page.others.push_back([board = &conditions_->board()](size_t max_lines) {
    return conditions::ConditionFamilies(board->All([](const std::string&) { return true; }),
                                         max_lines);
  });
  page.others.push_back([this](size_t max_lines) { return boards_->Families(max_lines); });
  page.others.push_back([this](size_t) { return http::PageFamilies(PageUrl()); });
  page.others.push_back([this](size_t) { return forwarding_->Families(); });
  if (world_.ownership != nullptr) {
    page.others.push_back([ownership = world_.ownership](size_t) {
      return std::vector<prometheus::MetricFamily>{
          metrics::OneLine("tacho_cluster_standbys",
                           static_cast<double>(ownership->standbys().size())),
          metrics::OneLine("tacho_cluster_takeovers_total",
                           static_cast<double>(ownership->takeovers()))};
    });
  }
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

std::string Collector::Parts::PageUrl() const {
  absl::MutexLock lock(&page_mutex_);
  return page_url_;
}

}  // namespace tacho::server
