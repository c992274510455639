// The way to each collector: its name, a connection, TLS and rights, the clock, how fast it is.
#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/diagnose/context.h"
#include "agent/diagnose/tcp_connect.h"
#include "agent/stream/collector_config.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "tacho/v1/ingest.grpc.pb.h"

namespace tacho::agent {
namespace {

struct Way {
  config::v1::Agent config;
  std::string agent_id;
  std::string address;
  std::string version;
  absl::Duration timeout;
  uint32_t shards = 0;  // As in Hello; 0: no cluster.
  uint32_t shard = 0;
};

// The key that has the address, for the operator.
std::string KeyOf(const Way& way) {
  return way.shards > 0 ? "collector.members" : "collector.addresses";
}

std::string Milliseconds(absl::Duration time) {
  return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time));
}

std::chrono::system_clock::time_point Deadline(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

Finding CheckName(const Way& way) {
  const std::string host = config::HostOf(way.address);
  const auto addresses = ResolveName(host);
  if (!addresses.ok()) {
    return {.check = "dns",
            .subject = host,
            .severity = Severity::kFailed,
            .message = std::string(addresses.status().message()),
            .remedy = absl::StrCat("correct the name in ", KeyOf(way),
                                   ", or the resolver of this machine")};
  }
  return {.check = "dns",
          .subject = host,
          .message = absl::StrCat(addresses->size(), " addresses, the first is ",
                                  addresses->empty() ? "none" : addresses->front())};
}

Finding CheckConnection(const Way& way) {
  const std::string port = way.address.substr(way.address.rfind(':') + 1);
  const auto took = TcpConnect(config::HostOf(way.address), port, way.timeout);
  if (!took.ok()) {
    return {.check = "connection",
            .subject = way.address,
            .severity = Severity::kFailed,
            .message = std::string(took.status().message()),
            .remedy = absl::StrCat("start the collector, correct ", KeyOf(way),
                                   ", or open the firewall")};
  }
  return {.check = "connection",
          .subject = way.address,
          .message = absl::StrCat("connected in ", Milliseconds(*took)),
          .figures = {{"connect_seconds", absl::StrFormat("%.6f", absl::ToDoubleSeconds(*took))}}};
}

// The meaning of a call's status for the operator.
std::string RemedyFor(const Way& way, const grpc::Status& status, bool tls) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
      return "give the agent a token or certificate that the collector knows: "
             "collector.token_file, "
             "collector.tls";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "in the collector's access file, give the entry the role write and this agent "
             "id";
    case grpc::StatusCode::UNAVAILABLE:
      return tls ? "compare collector.tls with the collector's: ca, certificate, server_name"
                 : "check that this is a collector, and whether it requires TLS "
                   "(collector.tls.enabled)";
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::StrCat("this is another service; correct ", KeyOf(way));
    case grpc::StatusCode::FAILED_PRECONDITION:
      return "give the agent's collector.members and cluster.members of all collectors the same "
             "addresses in the same order; without a cluster, leave members out";
    default:
      return "see the collector's log";
  }
}

struct Greeting {
  grpc::Status status;
  v1::Welcome welcome;
  absl::Duration round_trip;
  absl::Duration offset;  // The collector's clock less ours.
};

// Says Hello under the id, with a spool that nobody has, and leaves again: no row is stored.
Greeting Greet(const Way& way, v1::Ingest::Stub* stub, const std::string& authorization,
               const std::string& agent_id) {
  Greeting greeting;
  grpc::ClientContext context;
  context.set_deadline(Deadline(way.timeout));
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  const auto stream = stub->Stream(&context);
  v1::ClientMessage message;
  v1::Hello* const hello = message.mutable_hello();
  hello->set_agent_id(agent_id);
  std::random_device random;
  hello->set_spool_generation((uint64_t{random()} << 32 | random()) | 1);
  hello->set_first_sequence(1);
  hello->set_version(absl::StrCat(way.version, " diagnose"));
  hello->set_several_collectors(true);
  hello->set_shards(way.shards);
  hello->set_shard(way.shard);
  const absl::Time sent = absl::Now();
  const absl::Time began = MonotonicNow();
  hello->set_clock_unix_ns(absl::ToUnixNanos(sent));
  v1::ServerMessage answer;
  const bool welcomed = stream->Write(message) && stream->Read(&answer) && answer.has_welcome();
  greeting.round_trip = MonotonicNow() - began;
  stream->WritesDone();
  if (welcomed) {
    greeting.welcome = answer.welcome();
    greeting.offset =
        absl::FromUnixNanos(greeting.welcome.clock_unix_ns()) - (sent + greeting.round_trip / 2);
    context.TryCancel();
    stream->Finish();
    return greeting;
  }
  greeting.status = stream->Finish();
  return greeting;
}

std::vector<Finding> AboutClock(const Way& way, const Greeting& greeting) {
  constexpr absl::Duration kTooFarApart = absl::Seconds(1);
  const double offset = absl::ToDoubleSeconds(greeting.offset);
  Finding finding{
      .check = "clock offset",
      .subject = way.address,
      .message = absl::StrFormat("the collector's clock is %+.4f s from ours, known to %s", offset,
                                 Milliseconds(greeting.round_trip / 2)),
      .figures = {{"offset_seconds", absl::StrFormat("%.6f", offset)},
                  {"round_trip_seconds",
                   absl::StrFormat("%.6f", absl::ToDoubleSeconds(greeting.round_trip))}}};
  if (absl::AbsDuration(greeting.offset) > kTooFarApart + greeting.round_trip / 2) {
    finding.severity = Severity::kWarning;
    finding.remedy = "run a time service on both machines";
  }
  return {finding};
}

// A health check with a long name goes there and is refused: nothing is stored, and each takes as
// long as its bytes. The first, a short one, is the round trip.
Finding MeasureThroughput(const Way& way, const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& authorization) {
  constexpr size_t kBytes = 1 << 20;
  constexpr int kTimes = 3;
  const auto call = [&](size_t bytes) -> absl::StatusOr<absl::Duration> {
    grpc::ClientContext context;
    context.set_deadline(Deadline(way.timeout));
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    // HealthCheckRequest: field 1, a length in three bytes of seven bits, the name.
    constexpr int kBits = 7;
    std::string request = {'\x0a', static_cast<char>(0x80 | (bytes & 0x7f)),
                           static_cast<char>(0x80 | ((bytes >> kBits) & 0x7f)),
                           static_cast<char>((bytes >> (2 * kBits)) & 0x7f)};
    request.resize(request.size() + bytes, 'x');
    const grpc::Slice slice(request);
    const grpc::ByteBuffer message(&slice, 1);
    grpc::GenericStub stub(channel);
    grpc::CompletionQueue queue;
    const absl::Time began = MonotonicNow();
    const auto unary =
        stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", message, &queue);
    unary->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    unary->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
        status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      return absl::UnavailableError(status.error_message());
    }
    return MonotonicNow() - began;
  };
  absl::Duration round_trip = absl::InfiniteDuration();
  absl::Duration transfer = absl::InfiniteDuration();
  for (int i = 0; i < kTimes; ++i) {
    const auto small = call(1);
    const auto large = call(kBytes);
    if (!small.ok() || !large.ok()) {
      return {
          .check = "throughput",
          .subject = way.address,
          .severity = Severity::kWarning,
          .message = absl::StrCat("no measurement possible: ",
                                  (small.ok() ? large : small).status().message()),
          .remedy = "the network loses packets, or the collector is overloaded: see its /metrics"};
    }
    round_trip = std::min(round_trip, *small);
    transfer = std::min(transfer, *large);
  }
  const double seconds = std::max(1e-6, absl::ToDoubleSeconds(transfer - round_trip));
  const double rate = static_cast<double>(kBytes) / seconds;
  return {.check = "throughput",
          .subject = way.address,
          .message = absl::StrFormat("round trip %s, about %.0f MB/s", Milliseconds(round_trip),
                                     rate / 1e6),
          .figures = {
              {"round_trip_seconds", absl::StrFormat("%.6f", absl::ToDoubleSeconds(round_trip))},
              {"bytes_per_second", absl::StrFormat("%.0f", rate)}}};
}

std::vector<Finding> CheckCalls(const Way& way, const std::string& agent_id) {
  const client::ChannelSecurity security = SecurityOf(way.config.collector());
  grpc::ChannelArguments arguments;
  const auto secured = client::SecureChannel(security, way.address, kSecurityKeys, &arguments);
  if (!secured.ok()) {
    return {{.check = "security",
             .subject = way.address,
             .severity = Severity::kFailed,
             .message = std::string(secured.status().message()),
             .remedy = "correct collector.tls and collector.token_file"}};
  }
  const auto channel = grpc::CreateCustomChannel(way.address, secured->credentials, arguments);
  const auto stub = v1::Ingest::NewStub(channel);
  Greeting greeting = Greet(way, stub.get(), secured->authorization, agent_id);
  std::vector<Finding> findings;
  const std::string how = security.tls ? "over TLS" : "without TLS";
  Finding call{.check = "collector", .subject = way.address};
  if (greeting.status.error_code() == grpc::StatusCode::ALREADY_EXISTS) {
    call.message = absl::StrCat("reached ", how, "; the agent ", agent_id, " is connected");
    findings.push_back(call);
    // Under another name, where tokens do not say which: for the clock.
    greeting = Greet(way, stub.get(), secured->authorization, agent_id + ".diagnose");
    if (!greeting.status.ok()) {
      findings.push_back({.check = "clock offset",
                          .subject = way.address,
                          .severity = Severity::kInfo,
                          .message = "not available while the agent is connected"});
    }
  } else if (!greeting.status.ok()) {
    call.severity = Severity::kFailed;
    call.message = absl::StrCat("refused ", how, ": ", greeting.status.error_message());
    call.remedy = RemedyFor(way, greeting.status, security.tls);
    findings.push_back(call);
    return findings;
  } else {
    call.message =
        absl::StrCat("takes this agent's rows ", how, "; version ", greeting.welcome.version());
    call.figures = {{"version", greeting.welcome.version()}};
    findings.push_back(call);
  }
  if (greeting.status.ok()) {
    for (Finding& finding : AboutClock(way, greeting)) findings.push_back(std::move(finding));
  }
  findings.push_back(MeasureThroughput(way, channel, secured->authorization));
  return findings;
}

std::vector<Finding> CheckWay(const Way& way) {
  std::vector<Finding> findings = {CheckName(way)};
  if (findings.back().severity == Severity::kFailed) return findings;
  findings.push_back(CheckConnection(way));
  if (findings.back().severity == Severity::kFailed) return findings;
  if (way.agent_id.empty()) return findings;  // The check of the identity says it.
  for (Finding& finding : CheckCalls(way, way.agent_id)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

// The findings of the first way that works, or of the first one: with spares any of them may lead
// to the owner of a shard.
std::vector<Finding> CheckWays(const std::vector<Way>& ways) {
  std::vector<Finding> first;
  for (const Way& way : ways) {
    std::vector<Finding> findings = CheckWay(way);
    const bool works = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == Severity::kFailed;
    });
    if (works || ways.size() == 1) return findings;
    if (first.empty()) first = std::move(findings);
  }
  return first;
}

}  // namespace

std::vector<Check> CollectorChecks(const DiagnoseContext& context) {
  const auto addresses = CollectorAddresses(context.config.collector());
  if (!addresses.ok()) {
    return {{.name = "collector", .run = [status = addresses.status()] {
               return std::vector<Finding>{
                   {.severity = Severity::kFailed,
                    .message = std::string(status.message()),
                    .remedy = "correct collector.addresses or collector.members"}};
             }}};
  }
  const auto identity = IdentityOf(context);
  std::vector<Check> checks;
  const bool cluster = IsCluster(context.config.collector());
  const std::vector<std::string> spares = SpareAddresses(context.config.collector());
  for (size_t i = 0; i < addresses->size(); ++i) {
    const std::string& address = (*addresses)[i];
    Way way{.config = context.config,
            .agent_id = identity.ok() ? identity->agent_id : "",
            .address = address,
            .version = context.version,
            .timeout = context.timeout,
            .shards = cluster ? static_cast<uint32_t>(addresses->size()) : 0,
            .shard = cluster ? static_cast<uint32_t>(i) : 0};
    std::vector<Way> ways = {way};
    for (const std::string& spare : spares) {
      way.address = spare;
      ways.push_back(way);
    }
    for (size_t other = 0; !spares.empty() && other < addresses->size(); ++other) {
      way.address = (*addresses)[other];
      if (other != i) ways.push_back(way);
    }
    // The steps of a way one after the other; most end at once where the first one fails.
    const absl::Duration deadline = 3 * context.timeout * ways.size();
    checks.push_back({.name = absl::StrCat("collector ", address),
                      .deadline = deadline,
                      .run = [ways = std::move(ways)] { return CheckWays(ways); },
                      .remedy = "the resolver or the network drops everything; look at "
                                "/etc/resolv.conf and the firewall"});
  }
  return checks;
}

}  // namespace tacho::agent
