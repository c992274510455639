// 'cluster': the collectors that share the jobs, and how each of them is, in the three formats.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/insight/insight.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "tacho/v1/cluster.pb.h"

namespace tacho::ctl {
namespace {

// What a member is, in a word, and why.
std::string StateOf(const v1::ClusterMember& member) {
  if (!member.error().empty()) return "unreachable";
  return member.shipping().fenced() ? "fenced" : "ok";
}

std::string StateText(const v1::ClusterMember& member) {
  if (!member.error().empty()) return absl::StrCat("unreachable: ", member.error());
  if (member.shipping().fenced()) return "fenced: another collector has become owner of the shard";
  return "ok";
}

// As StateOf(), where nothing is known of it: no figures.
bool IsKnown(const v1::ClusterMember& member) { return member.error().empty(); }

std::string SecondsText(const v1::ClusterMember& member) {
  return ReadableNumber(member.shipping().unshipped_seconds());
}

// Which collectors would take over a lost shard.
void PrintWaiting(const Invocation& invocation, const v1::GetMembersResponse& answer) {
  if (!answer.has_spares()) return;
  std::vector<std::string> waiting;
  for (const std::string& address : answer.standbys()) waiting.push_back(Printable(address));
  *invocation.env.out
      << (waiting.empty()
              ? "No collector is seen to wait for a shard. If that stays so, nobody "
                "would take over a shard that is lost.\n"
              : absl::StrCat("Waiting for a shard: ", absl::StrJoin(waiting, ", "), "\n"));
}

// US dollars for one request of S3 in us-east-1, from its price list. Other stores differ.
constexpr double kWritePrice = 0.005 / 1000;
constexpr double kReadPrice = 0.0004 / 1000;
constexpr double kHourS = 3600;
constexpr double kMonthS = 30 * 24 * kHourS;
// A rate of less time than this says little.
constexpr double kShortestS = 60;

bool HasRates(const v1::ClusterMember& member) {
  return member.has_bucket() && member.bucket().seconds() >= kShortestS;
}
double RequestsAnHour(uint64_t requests, const v1::ClusterMember& member) {
  return static_cast<double>(requests) / member.bucket().seconds() * kHourS;
}
double DollarsAMonth(const v1::ClusterMember& member) {
  const auto& bucket = member.bucket();
  return (static_cast<double>(bucket.writes()) * kWritePrice +
          static_cast<double>(bucket.reads()) * kReadPrice) /
         bucket.seconds() * kMonthS;
}

// What the members ask of the bucket, and what that costs.
void PrintRequests(const Invocation& invocation, const v1::GetMembersResponse& answer) {
  const auto& members = answer.members();
  if (std::none_of(members.begin(), members.end(), [](auto& m) { return m.has_bucket(); })) return;
  *invocation.env.out << "\nRequests to the bucket since each collector began with its shard, and "
                         "their price at S3 in us-east-1:\n";
  Table table({{"SHARD", Align::kRight},
               {"WRITES/HOUR", Align::kRight},
               {"READS/HOUR", Align::kRight},
               {"BYTES SENT/HOUR", Align::kRight},
               {"US DOLLARS/MONTH", Align::kRight}});
  double dollars = 0;
  for (const v1::ClusterMember& member : members) {
    if (!member.has_bucket()) continue;
    if (!HasRates(member)) {
      table.AddRow({absl::StrCat(member.shard()), "", "", "", "after a minute"});
      continue;
    }
    const auto& bucket = member.bucket();
    dollars += DollarsAMonth(member);
    table.AddRow({absl::StrCat(member.shard()),
                  ReadableNumber(RequestsAnHour(bucket.writes(), member)),
                  ReadableNumber(RequestsAnHour(bucket.reads(), member)),
                  Thousands(static_cast<uint64_t>(RequestsAnHour(bucket.bytes_sent(), member))),
                  absl::StrFormat("%.2f", DollarsAMonth(member))});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
  *invocation.env.out << absl::StrFormat("Together %.2f US dollars a month, without storage.\n",
                                         dollars);
}

void PrintMembers(const Invocation& invocation, const v1::GetMembersResponse& answer) {
  Table table({{"SHARD", Align::kRight},
               {"ADDRESS"},
               {"VERSION"},
               {"JOBS", Align::kRight},
               {"AGENTS", Align::kRight},
               {"EPOCH", Align::kRight},
               {"UNSHIPPED BYTES", Align::kRight},
               {"SECONDS", Align::kRight},
               {"STATE", Align::kLeft, true}});
  for (const v1::ClusterMember& member : answer.members()) {
    const bool known = IsKnown(member);
    const bool ships = known && member.has_shipping();
    table.AddRow({absl::StrCat(member.shard()), member.address(), member.version(),
                  known ? Thousands(member.jobs()) : "", known ? Thousands(member.agents()) : "",
                  ships ? absl::StrCat(member.shipping().epoch()) : "",
                  ships ? Thousands(member.shipping().unshipped_bytes()) : "",
                  ships ? SecondsText(member) : "", StateText(member)});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
  PrintWaiting(invocation, answer);
  PrintRequests(invocation, answer);
}

void WriteBucketJson(JsonWriter* json, const v1::ClusterMember& member) {
  json->Key("bucket");
  if (!member.has_bucket()) {
    json->Null();
    return;
  }
  const auto& bucket = member.bucket();
  json->Object([&] {
    json->Field("writes", bucket.writes());
    json->Field("reads", bucket.reads());
    json->Field("bytes_sent", bucket.bytes_sent());
    json->Field("bytes_received", bucket.bytes_received());
    json->Field("seconds", bucket.seconds());
    json->Field("usd_per_month", Maybe(HasRates(member), DollarsAMonth(member)));
  });
}

void WriteMembersJson(std::ostream& out, const v1::GetMembersResponse& answer) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("own_shard", Maybe(!answer.members().empty(), answer.own_shard()));
    if (answer.has_spares()) {
      json.Array("standbys", answer.standbys(),
                 [&](const std::string& address) { json.Value(address); });
    }
    json.Objects("members", answer.members(), [&](const v1::ClusterMember& member) {
      const bool known = IsKnown(member);
      json.Field("shard", member.shard());
      json.Field("address", member.address());
      json.Field("state", StateOf(member));
      json.Field("error", MaybeText(member.error()));
      json.Field("version", MaybeText(member.version()));
      json.Field("jobs", Maybe(known, member.jobs()));
      json.Field("agents", Maybe(known, member.agents()));
      WriteBucketJson(&json, member);
      json.Key("shipping");
      if (!known || !member.has_shipping()) {
        json.Null();
        return;
      }
      const auto& shipping = member.shipping();
      json.Object([&] {
        json.Field("epoch", shipping.epoch());
        json.Field("fenced", shipping.fenced());
        json.Field("unshipped_bytes", shipping.unshipped_bytes());
        json.Field("unshipped_seconds", shipping.unshipped_seconds());
      });
    });
  });
}

void WriteMembersCsv(std::ostream& out, const v1::GetMembersResponse& answer) {
  out << CsvLine({"shard", "address", "version", "jobs", "agents", "epoch", "unshipped_bytes",
                  "unshipped_seconds", "state", "error", "bucket_writes", "bucket_reads",
                  "bucket_bytes_sent", "bucket_bytes_received", "bucket_seconds"});
  for (const v1::ClusterMember& member : answer.members()) {
    const bool known = IsKnown(member);
    const bool ships = known && member.has_shipping();
    const auto number = [](bool there, uint64_t value) {
      return there ? absl::StrCat(value) : std::string();
    };
    out << CsvLine({absl::StrCat(member.shard()), member.address(), member.version(),
                    number(known, member.jobs()), number(known, member.agents()),
                    number(ships, member.shipping().epoch()),
                    number(ships, member.shipping().unshipped_bytes()),
                    ships ? ExactNumber(member.shipping().unshipped_seconds()) : "",
                    StateOf(member), member.error(),
                    number(member.has_bucket(), member.bucket().writes()),
                    number(member.has_bucket(), member.bucket().reads()),
                    number(member.has_bucket(), member.bucket().bytes_sent()),
                    number(member.has_bucket(), member.bucket().bytes_received()),
                    member.has_bucket() ? ExactNumber(member.bucket().seconds()) : ""});
  }
}

int RunCluster(const Invocation& invocation) {
  QueryClient client = Connect(invocation);
  const auto answer = client.GetMembers();
  if (!answer.ok()) return CallError(invocation, client, answer.status());
  switch (invocation.common.format) {
    case Format::kJson:
      WriteMembersJson(*invocation.env.out, *answer);
      break;
    case Format::kCsv:
      WriteMembersCsv(*invocation.env.out, *answer);
      break;
    case Format::kTable:
      if (answer->members().empty()) {
        *invocation.env.out << "The collector at " << Printable(client.address())
                            << " is in no cluster: it keeps every job itself.\n";
      } else {
        PrintMembers(invocation, *answer);
      }
  }
  return std::all_of(answer->members().begin(), answer->members().end(),
                     [](const v1::ClusterMember& member) { return StateOf(member) == "ok"; })
             ? kOk
             : kNothing;
}

}  // namespace

Command ClusterCommand() {
  return {
      .name = "cluster",
      .group = CommandGroup::kOperate,
      .operands = "",
      .summary = "List the collectors that share the jobs, and how each of them is",
      .details =
          R"(Any member answers; it asks all others, for two seconds. JOBS counts those that a member keeps, AGENTS
the agents that are connected to it. With cluster.ack: shared, EPOCH rises with each owner of a shard;
UNSHIPPED BYTES wait for the bucket, the oldest of them since SECONDS. A member is fenced when another
collector has become owner of its shard: it acknowledges nothing more. In a cluster with spares the last
line lists the collectors that wait for a shard.

The exit code is 0 if all members answer and none is fenced, also without a cluster; else 1.

Examples:
  tachoctl cluster
  tachoctl cluster -o json | jq -r '.members[] | select(.state != "ok") | .address'

JSON: {"own_shard" or null, with spares "standbys": [address], "members": [{"shard", "address", "state": "ok"|"fenced"|"unreachable",
  "error", "version", "jobs", "agents", "shipping": null or {"epoch", "fenced", "unshipped_bytes",
  "unshipped_seconds"}}]}. Unknown values are null; without a cluster there are no members.)",
      .flags = {},
      .min_operands = 0,
      .max_operands = 0,
      .run = RunCluster};
}

}  // namespace tacho::ctl
