#include "agent/agent.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "agent/requests/answer_desk.h"
#include "agent/requests/take_profiles.h"
#include "agent/requests/take_stacks.h"
#include "agent/sources/identity/host_facts.h"
#include "agent/sources/identity/identity.h"
#include "agent/sources/identity/identity_source.h"
#include "agent/sources/kubernetes/api_server.h"
#include "agent/sources/make_sources.h"
#include "agent/sources/self/self_source.h"
#include "agent/sources/self/source_ledger.h"
#include "agent/stream/acknowledged.h"
#include "agent/stream/collector_config.h"
#include "agent/stream/refused_totals.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

constexpr size_t kMaxHelloLabels = 32;  // As tacho/v1/ingest.proto states it.

// Null if the agent answers nothing.
std::shared_ptr<RequestTaker> MakeRequestTaker(const AgentOptions& options,
                                               const std::string& host) {
  const config::v1::Agent::Requests& config = options.config.requests();
  std::map<std::string, AnswerDesk::Answer> answers;
  if (config.stacks() != "never") {
    answers["stacks"] = [stacks =
                             StacksOptions{.config = config,
                                           .rings = options.config.sources().rings().directory()}](
                            const v1::AgentRequest& request, absl::Time until) {
      return TakeStacks(stacks, request, until);
    };
  }
  if (!config.profiles().directory().empty()) {
    answers["profile"] = [profiles = ProfilesOptions{
                              .config = config.profiles(),
                              .rings = options.config.sources().rings().directory(),
                              .host = host}](const v1::AgentRequest& request, absl::Time until) {
      return TakeProfiles(profiles, request, until);
    };
  }
  if (answers.empty()) return nullptr;
  return std::make_shared<AnswerDesk>(std::move(answers), options.log);
}

StreamOptions MakeStreamOptions(const AgentOptions& options, const Identity& identity,
                                std::shared_ptr<const KnownHost> known,
                                std::shared_ptr<RefusedTotals> refused,
                                std::shared_ptr<MissingTotals> missing) {
  const config::v1::Agent::Collector& collector = options.config.collector();
  StreamOptions stream;
  stream.security = SecurityOf(collector);
  stream.agent_id = identity.agent_id;
  stream.labels = [known = std::move(known)] { return LabelsOf(known->Get(), kMaxHelloLabels); };
  stream.version = options.version;
  stream.backoff_min = absl::Nanoseconds(collector.backoff_min());
  stream.backoff_max = absl::Nanoseconds(collector.backoff_max());
  stream.return_after = absl::Nanoseconds(collector.return_after());
  stream.backlog_rows_per_second = collector.backlog_rows_per_second();
  stream.sync_interval = absl::Nanoseconds(options.config.spool().sync_interval());
  stream.log = options.log;
  stream.refused = std::move(refused);
  stream.missing = std::move(missing);
  stream.broken = options.broken;
  stream.requests = MakeRequestTaker(options, identity.host);
  return stream;
}

DeliveryFigures FiguresOf(const SpoolStats& spool, const MissingMessages& missing,
                          const std::optional<ClockOffset::Estimate>& clock) {
  DeliveryFigures figures = {.waiting_messages = spool.entries,
                             .waiting_bytes = spool.bytes,
                             .rows = spool.appended_rows,
                             .lost_rows = spool.dropped_rows(),
                             .missing_again = missing.again,
                             .missing_gone = missing.gone};
  if (clock.has_value()) {
    figures.clock_ahead_seconds = absl::ToDoubleSeconds(clock->ahead);
    figures.clock_uncertainty_seconds = absl::ToDoubleSeconds(clock->uncertainty);
  }
  return figures;
}

// The agent's own rows are filed with its host's, and at the same interval.
std::unique_ptr<Source> MakeSelfSource(const AgentOptions& options, const Identity& identity,
                                       std::shared_ptr<const SourceLedger> ledger,
                                       const Delivery* delivery,
                                       std::shared_ptr<const RefusedTotals> refused,
                                       std::shared_ptr<const MissingTotals> missing) {
  const config::v1::Agent::Host& host = options.config.sources().host();
  return std::make_unique<SelfSource>(
      SelfOptions{.job = host.job(),
                  .host = identity.host,
                  .agent_id = identity.agent_id,
                  .version = options.version,
                  .interval = absl::Nanoseconds(host.interval()),
                  .log = options.log,
                  .ledger = std::move(ledger),
                  .delivery =
                      [delivery, missing = std::move(missing)] {
                        return FiguresOf(delivery->Stats(), missing->Get(), delivery->clock());
                      },
                  .spool = [delivery] { return delivery->Stats(); },
                  .refused = [refused = std::move(refused)] { return refused->samples(); }});
}

// Under which jobs this agent records its machine.
std::set<std::string> HostJobs(const config::v1::Agent::Sources& sources) {
  return {sources.host().job(), sources.gpu().job(), sources.tpu().job()};
}

// None where it cannot be watched; `diagnose` says why as well.
std::optional<NodePlace> NodeOf(const AgentOptions& options) {
  const config::v1::Agent::Node& node = options.config.sources().node();
  if (!node.enabled()) return std::nullopt;
  auto place = FindNode(options.environment, node.service_account());
  if (place.ok()) return *std::move(place);
  options.log.Info("the node is not watched", {{"reason", place.status().message()}});
  return std::nullopt;
}

// Filed likewise.
std::unique_ptr<IdentitySource> MakeIdentitySource(const AgentOptions& options,
                                                   const Identity& identity,
                                                   std::shared_ptr<KnownHost> known) {
  return std::make_unique<IdentitySource>(
      IdentitySourceOptions{.job = options.config.sources().host().job(),
                            .host = identity.host,
                            .local = identity.facts,
                            .metadata = identity.metadata,
                            .known = std::move(known),
                            .log = options.log});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(AgentOptions options) {
  TACHO_ASSIGN_OR_RETURN(const auto addresses, CollectorAddresses(options.config.collector()));
  TACHO_RETURN_IF_ERROR(CheckSecurity(options.config.collector()));
  const auto identity = ResolveIdentity(
      options.config.identity(),
      {.environment = options.environment, .sys = options.config.sources().host().sys()});
  if (!identity.ok()) return identity.status();
  auto known = std::make_shared<KnownHost>(identity->facts);
  auto identity_source = MakeIdentitySource(options, *identity, known);
  const std::string tpu_ports = identity_source->AskNow();

  auto sources = MakeSources(options.config,
                             SourceIdentity{.host = identity->host,
                                            .metadata = identity->metadata,
                                            .node = NodeOf(options),
                                            .tpu_metrics_ports = tpu_ports},
                             options.log);
  if (!sources.ok()) return sources.status();

  options.broken = [broken = std::move(options.broken),
                    told = std::make_shared<std::atomic<bool>>(false)](const absl::Status& status) {
    if (broken && !told->exchange(true)) broken(status);  // Only the first spool tells.
  };
  auto refused = std::make_shared<RefusedTotals>();
  auto missing = std::make_shared<MissingTotals>();
  const config::v1::Agent::Spool& spool = options.config.spool();
  auto delivery =
      Delivery::Open({.spool = {.path = spool.path(),
                                .max_bytes = spool.max_bytes(),
                                .max_age = absl::Nanoseconds(spool.max_age()),
                                .patient_sources = {"tfevents"},
                                .log = options.log},
                      .addresses = addresses,
                      .cluster = IsCluster(options.config.collector()),
                      .spares = SpareAddresses(options.config.collector()),
                      .home_job = options.config.sources().host().job(),
                      .home_host = identity->host,
                      .host_jobs = HostJobs(options.config.sources()),
                      .split_jobs = {options.config.collector().split_jobs().begin(),
                                     options.config.collector().split_jobs().end()},
                      .stream = [options, identity = *identity, known, refused, missing] {
                        return MakeStreamOptions(options, identity, known, refused, missing);
                      }});
  if (!delivery.ok()) return delivery.status();

  auto agent = std::unique_ptr<Agent>(new Agent());
  agent->log_ = options.log;
  agent->flush_ = options.flush;
  agent->delivery_ = *std::move(delivery);
  auto ledger = std::make_shared<SourceLedger>();
  if (options.config.sources().host().enabled()) {
    sources->push_back(
        MakeSelfSource(options, *identity, ledger, agent->delivery_.get(), refused, missing));
    sources->push_back(std::move(identity_source));
  }
  agent->sampler_ = std::make_unique<Sampler>(
      *std::move(sources),
      SamplerOptions{.sink = agent->delivery_->sink(), .ledger = ledger, .log = options.log});
  options.log.Info("tacho-agent starts", {{"version", options.version},
                                          {"agent_id", identity->agent_id},
                                          {"agent_id_from", identity->agent_id_from},
                                          {"host", identity->host},
                                          {"host_from", identity->host_from},
                                          {"spool", spool.path()},
                                          {"spooled_messages", agent->delivery_->Stats().entries},
                                          {"collectors", absl::StrJoin(addresses, ", ")}});
  return agent;
}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  delivery_->Start();
  sampler_->Start();
}

void Agent::Stop() {
  if (sampler_ == nullptr) return;
  sampler_->Stop();
  delivery_->Stop(flush_);
  const SpoolStats left = delivery_->Stats();
  log_.Info("stopped; what is spooled waits for the next start",
            {{"spooled_messages", left.entries}, {"spooled_bytes", left.bytes}});
  sampler_.reset();
}

}  // namespace tacho::agent
