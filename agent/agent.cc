#include "agent/agent.h"

#include <map>
#include <optional>
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
                                std::vector<std::string> addresses,
                                std::shared_ptr<RefusedTotals> refused,
                                std::shared_ptr<MissingTotals> missing,
                                std::shared_ptr<ClockOffset> clock) {
  const config::v1::Agent::Collector& collector = options.config.collector();
  StreamOptions stream;
  stream.addresses = std::move(addresses);
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
  stream.clock = std::move(clock);
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
                                       const Spool* spool,
                                       std::shared_ptr<const RefusedTotals> refused,
                                       std::shared_ptr<const MissingTotals> missing,
                                       std::shared_ptr<const ClockOffset> clock) {
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
                      [spool, missing = std::move(missing), clock = std::move(clock)] {
                        return FiguresOf(spool->Stats(), missing->Get(), clock->estimate());
                      },
                  .spool = [spool] { return spool->Stats(); },
                  .refused = [refused = std::move(refused)] { return refused->samples(); }});
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

  auto spool = Spool::Open({.path = options.config.spool().path(),
                            .max_bytes = options.config.spool().max_bytes(),
                            .max_age = absl::Nanoseconds(options.config.spool().max_age()),
                            .patient_sources = {"tfevents"},
                            .log = options.log});
  if (!spool.ok()) return spool.status();

  auto agent = std::unique_ptr<Agent>(new Agent());
  agent->log_ = options.log;
  agent->flush_ = options.flush;
  agent->spool_ = *std::move(spool);
  auto refused = std::make_shared<RefusedTotals>();
  auto missing = std::make_shared<MissingTotals>();
  auto clock = std::make_shared<ClockOffset>();
  agent->sender_ = std::make_unique<Sender>(
      MakeStreamOptions(options, *identity, known, addresses, refused, missing, clock),
      agent->spool_.get());
  auto ledger = std::make_shared<SourceLedger>();
  if (options.config.sources().host().enabled()) {
    sources->push_back(
        MakeSelfSource(options, *identity, ledger, agent->spool_.get(), refused, missing, clock));
    sources->push_back(std::move(identity_source));
  }
  agent->sampler_ = std::make_unique<Sampler>(
      *std::move(sources),
      SamplerOptions{.sink = agent->spool_.get(), .ledger = ledger, .log = options.log});
  options.log.Info("tacho-agent starts",
                   {{"version", options.version},
                    {"agent_id", identity->agent_id},
                    {"agent_id_from", identity->agent_id_from},
                    {"host", identity->host},
                    {"host_from", identity->host_from},
                    {"spool", options.config.spool().path()},
                    {"spooled_messages", agent->spool_->end() - agent->spool_->begin()},
                    {"collectors", absl::StrJoin(addresses, ", ")}});
  return agent;
}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  sender_->Start();
  sampler_->Start();
}

void Agent::Stop() {
  if (sampler_ == nullptr) return;
  sampler_->Stop();
  sender_->Stop(flush_);
  const SpoolStats left = spool_->Stats();
  log_.Info("stopped; what is spooled waits for the next start",
            {{"spooled_messages", left.entries}, {"spooled_bytes", left.bytes}});
  sampler_.reset();
}

}  // namespace tacho::agent
