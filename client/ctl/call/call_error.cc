#include "client/ctl/call/call_error.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/line/command.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "proto/base/nearest.h"

namespace tacho::ctl {
namespace {

std::string Remedy(const QueryClient& client, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::StrCat("no answer from ", client.address(), " within ",
                          ReadableDuration(client.timeout()),
                          ". Ask for less (--since, --points), or wait longer: --timeout 5m");
    case absl::StatusCode::kUnavailable:
      return absl::StrCat("the collector at ", client.address(),
                          " cannot answer now: ", std::string(status.message()),
                          ". Try again in a moment");
    case absl::StatusCode::kUnauthenticated:
      return absl::StrCat("the collector at ", client.address(),
                          " rejected your identity: ", std::string(status.message()));
    case absl::StatusCode::kUnimplemented:
      return absl::StrCat("the server at ", client.address(),
                          " does not know this call: it is older than this tachoctl, or not a "
                          "tacho-collector. Check --address, or upgrade the collector");
    default:
      return status.message().empty() ? absl::StatusCodeToString(status.code())
                                      : std::string(status.message());
  }
}

// Advice for the common texts of gRPC.
const char* WhatToDo(const absl::Status& status) {
  const std::string text(status.message());
  if (absl::StrContains(text, "CERTIFICATE_VERIFY_FAILED") ||
      absl::StrContains(text, "certificate verify failed")) {
    return "Its certificate comes from a CA that you do not trust, or is for another name: see "
           "--tls-ca and --tls-server-name.\n";
  }
  if (absl::StrContains(text, "andshake failed") || absl::StrContains(text, "WRONG_VERSION")) {
    return "The TLS handshake failed: the collector may not use TLS, or requires a certificate "
           "(--tls-cert, --tls-key).\n";
  }
  if (absl::StrContains(text, "ocket closed") || absl::StrContains(text, "SETTINGS")) {
    return "Something answered and closed the connection: the collector may require TLS "
           "(--tls-ca FILE), or this is not a collector's address.\n";
  }
  if (absl::StrContains(text, "reset by peer") || absl::StrContains(text, "roken pipe")) {
    return "Something listens there and closed the connection at once. A collector does so while "
           "it "
           "is short of memory or connections, and for some seconds after a flood from your "
           "address: its log and tacho_connections_refused_total say why. Try again in 10 s.\n";
  }
  return "Start one with 'tacho-collector', or give its address: --address HOST:PORT, or "
         "TACHO_ADDRESS in the environment.\n";
}

// Names of jobs to suggest; empty if the collector does not answer.
std::vector<std::string> KnownJobs(QueryClient& client) {
  // Enough to find a mistyped name, bounded for a collector with very many.
  constexpr size_t kAtMost = 10'000;
  std::vector<std::string> names;
  if (const auto jobs = client.ListJobs({}, kAtMost); jobs.ok()) {
    for (const v1::Job& job : *jobs) names.push_back(job.name());
  }
  return names;
}

}  // namespace

int UsageError(const Environment& env, absl::string_view command, absl::string_view message) {
  const std::string path = command.empty() ? "tachoctl" : absl::StrCat("tachoctl ", command);
  *env.err << path << ": " << Printable(message) << "\nHelp: " << path << " --help\n";
  return kUsage;
}

int CallError(const Invocation& invocation, const QueryClient& client, const absl::Status& status) {
  std::ostream& err = *invocation.env.err;
  if (!client.setup().ok()) {
    err << "tachoctl: " << Printable(std::string(status.message())) << "\n";
    return kUsage;
  }
  if (client.reached()) {
    err << "tachoctl: " << Printable(Remedy(client, status)) << "\n";
    return kNothing;
  }
  err << "tachoctl: cannot reach a collector at " << Printable(client.address()) << ": "
      << Printable(std::string(status.message())) << "\n"
      << WhatToDo(status);
  return kUnreachable;
}

int JobCallError(const Invocation& invocation, QueryClient& client, const std::string& job,
                 const absl::Status& status) {
  if (status.code() != absl::StatusCode::kNotFound ||
      absl::StrContains(absl::AsciiStrToLower(status.message()), "did you mean")) {
    return CallError(invocation, client, status);
  }
  const std::vector<std::string> known = KnownJobs(client);
  std::string message = absl::StrCat("no job '", job, "'", DidYouMean(job, known));
  if (known.empty()) {
    absl::StrAppend(&message, "; the collector at ", client.address(), " has no jobs yet");
  }
  *invocation.env.err << "tachoctl: " << Printable(message) << "\nAll jobs: tachoctl jobs\n";
  return kNothing;
}

int SelectorCallError(const Invocation& invocation, QueryClient& client,
                      const v1::Selector& selector, const absl::Status& status) {
  const int code = JobCallError(invocation, client, selector.job(), status);
  if (!absl::IsNotFound(status)) return code;
  for (const std::string& word : selector.metrics()) {
    if (!client.GetJob(word).ok()) continue;
    *invocation.env.err << "The job comes first: tachoctl query " << Printable(word) << " "
                        << Printable(selector.job()) << "\n";
    break;
  }
  return code;
}

std::string JobPatternHint(QueryClient& client, const std::string& pattern) {
  const std::vector<std::string> known = KnownJobs(client);
  const bool inside = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
    return name != pattern && absl::StrContains(name, pattern);
  });
  if (inside) {
    return absl::StrCat(". A pattern must match the whole name: tachoctl jobs '.*", pattern, ".*'");
  }
  return DidYouMean(pattern, known);
}

bool ReportUnknownMetrics(const Invocation& invocation, QueryClient& client, const std::string& job,
                          const std::vector<std::string>& wanted) {
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return false;
  std::vector<std::string> known;
  for (const v1::Metric& metric : answer->metrics()) known.push_back(metric.name());
  bool missing = false;
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    missing = true;
    *invocation.env.err << "tachoctl: "
                        << Printable(absl::StrCat("job '", job, "' has no metric '", name, "'",
                                                  DidYouMean(name, known)))
                        << '\n';
  }
  if (missing) {
    *invocation.env.err << "All metrics of the job: tachoctl metrics " << Printable(job) << '\n';
  }
  return missing;
}

}  // namespace tacho::ctl
