// Which metrics there are: each source is polled once, with what it finds thrown away, and says
// itself why something is missing.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "agent/diagnose/context.h"
#include "agent/diagnose/tcp_connect.h"
#include "agent/sources/kubernetes/api_server.h"
#include "agent/sources/make_sources.h"
#include "agent/sources/rows/source.h"
#include "proto/base/log.h"

namespace tacho::agent {
namespace {

// Counts series and keeps nothing. One thread.
class CountingSink : public RowSink {
 public:
  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override {
    layouts_.push_back(layout);
    return static_cast<uint32_t>(layouts_.size() - 1);
  }
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> /*times*/,
                          std::span<const int64_t> /*steps*/, std::span<const double> /*values*/,
                          const Checkpoint& /*checkpoint*/) override {
    for (const v1::Layout::Series& series : layouts_.at(layout).series()) {
      if (absl::StartsWith(series.metric().name(), "tacho_agent_")) continue;
      ++series_;
      metrics_.insert(series.metric().name());
    }
    return absl::OkStatus();
  }
  absl::Status AppendEvent(const v1::Event&, const Checkpoint&) override {
    return absl::OkStatus();
  }
  absl::Status AppendAttributes(const v1::Attributes&, const Checkpoint&) override {
    return absl::OkStatus();
  }
  absl::Status WriteCheckpoint(const Checkpoint&) override { return absl::OkStatus(); }
  std::string ReadCheckpoint(absl::string_view) const override { return ""; }

  size_t series() const { return series_; }
  size_t metrics() const { return metrics_.size(); }

 private:
  std::vector<v1::Layout> layouts_;
  size_t series_ = 0;
  std::set<std::string> metrics_;
};

// The sources that may be polled by somebody who is not the agent. The others keep a place in what
// they read, and rings are removed once they are read.
config::v1::Agent Harmless(const config::v1::Agent& config) {
  config::v1::Agent harmless = config;
  harmless.mutable_sources()->mutable_rings()->set_directory("");
  harmless.mutable_sources()->mutable_tfevents()->clear_directories();
  harmless.mutable_sources()->mutable_json_lines()->clear_files();
  return harmless;
}

// A line of the log as a person reads it: `... msg="host: text" key=value` as "host: text
// (key=value)".
std::string TextOf(absl::string_view line) {
  constexpr absl::string_view kMessage = "msg=\"";
  const size_t begin = line.find(kMessage);
  if (begin == absl::string_view::npos) return std::string(absl::StripAsciiWhitespace(line));
  line.remove_prefix(begin + kMessage.size());
  size_t end = 0;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  end = std::min(end, line.size());
  std::string text(line.substr(0, end));
  const absl::string_view fields =
      absl::StripAsciiWhitespace(line.substr(std::min(end + 1, line.size())));
  if (!fields.empty()) absl::StrAppend(&text, " (", fields, ")");
  return text;
}

std::vector<Finding> PollOnce(Source* source, const std::vector<std::string>& log) {
  CountingSink sink;
  source->Poll(absl::Now(), &sink);
  const absl::Status status = source->status();
  Finding finding{.subject = std::string(source->name()),
                  .message = absl::StrCat(sink.series(), " series of ", sink.metrics(), " metrics"),
                  .figures = {{"series", absl::StrCat(sink.series())},
                              {"metrics", absl::StrCat(sink.metrics())}}};
  if (!status.ok()) {
    finding.severity = Severity::kWarning;
    absl::StrAppend(&finding.message, "; ", status.message());
    finding.remedy = "do what the message says, or remove the source from the configuration";
  } else if (!log.empty()) {
    // A part that a machine does not have is no fault.
    finding.severity = Severity::kInfo;
    absl::StrAppend(&finding.message, "; ", absl::StrJoin(log, "; "));
  }
  return {finding};
}

// Where the agent knows no node to ask for, and this is a pod: why.
std::vector<Finding> CheckNode(const absl::Status& missing) {
  return {{.subject = "node",
           .severity = Severity::kInfo,
           .message = absl::StrCat("not watched; ", missing.message())}};
}

// A source by its place in the list that MakeSources() makes: each check makes its own.
std::vector<Finding> CheckSource(const config::v1::Agent& config, const SourceIdentity& identity,
                                 size_t index) {
  std::vector<std::string> log;
  log::LogOptions options;
  options.write = [&log](log::Level, absl::string_view line) { log.push_back(TextOf(line)); };
  auto sources = MakeSources(config, identity, log::Log(std::move(options)));
  if (!sources.ok())
    return {{.severity = Severity::kFailed, .message = sources.status().ToString()}};
  std::vector<Finding> findings = PollOnce((*sources)[index].get(), log);
  return findings;
}

std::vector<Finding> CheckReadable(const std::string& path) {
  Finding finding{.subject = path, .message = "the agent can read it"};
  if (::access(path.c_str(), R_OK) != 0) {
    finding.severity = errno == ENOENT ? Severity::kInfo : Severity::kWarning;
    finding.message = std::generic_category().message(errno);
    if (finding.severity == Severity::kWarning)
      finding.remedy = "give the agent's user the right to read it";
  }
  return {finding};
}

// libtpu serves metrics at the ports that this variable of its process names; 8431 by default.
std::vector<Finding> CheckPorts(const std::string& ports) {
  std::vector<Finding> findings;
  for (const absl::string_view port : absl::StrSplit(ports, ',', absl::SkipEmpty())) {
    const absl::Status open = TcpConnect("localhost", std::string(port), absl::Seconds(2)).status();
    Finding finding{.subject = absl::StrCat("localhost:", port),
                    .message = "libtpu or another program listens"};
    if (!open.ok()) {
      finding.severity = Severity::kInfo;
      finding.message = absl::StrCat("no libtpu serves metrics here (", open.message(),
                                     "): no trainer runs, or "
                                     "it has other TPU_RUNTIME_METRICS_PORTS");
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

std::vector<Check> SourceChecks(const DiagnoseContext& context) {
  std::vector<Check> checks;
  const config::v1::Agent config = Harmless(context.config);
  // If the identity is wrong, the identity check reports it.
  const auto identity = IdentityOf(context);
  SourceIdentity named =
      identity.ok() ? SourceIdentity{.host = identity->host, .metadata = identity->metadata}
                    : SourceIdentity{.host = "localhost"};
  const config::v1::Agent::Node& wanted = config.sources().node();
  if (wanted.enabled()) {
    auto place = FindNode(context.environment, wanted.service_account());
    if (place.ok()) {
      named.node = *std::move(place);
    } else {
      checks.push_back(
          {.name = "metrics", .run = [missing = place.status()] { return CheckNode(missing); }});
    }
  }
  const auto sources = MakeSources(config, named, {});
  if (!sources.ok()) {
    checks.push_back({.name = "metrics", .run = [status = sources.status()] {
                        return std::vector<Finding>{{.severity = Severity::kFailed,
                                                     .message = std::string(status.message()),
                                                     .remedy = "correct the configuration"}};
                      }});
    return checks;
  }
  for (size_t i = 0; i < sources->size(); ++i) {
    checks.push_back({.name = "metrics",
                      .deadline = context.timeout,
                      .run = [config, named, i] { return CheckSource(config, named, i); },
                      .remedy = absl::StrCat("the source ", std::string((*sources)[i]->name()),
                                             " hangs: look at its driver, mount or endpoint")});
  }
  const config::v1::Agent::Sources& all = context.config.sources();
  std::vector<std::string> paths;
  for (const auto& directory : all.tfevents().directories()) paths.push_back(directory.path());
  for (const auto& file : all.json_lines().files()) paths.push_back(file.path());
  for (const std::string& path : paths) {
    checks.push_back({.name = "logs",
                      .deadline = context.timeout,
                      .run = [path] { return CheckReadable(path); },
                      .remedy = absl::StrCat(path, " hangs: check its file server")});
  }
  const char* const ports = ::getenv("TPU_RUNTIME_METRICS_PORTS");  // NOLINT(concurrency-mt-unsafe)
  checks.push_back({.name = "ports",
                    .deadline = context.timeout,
                    .run = [named = std::string(ports == nullptr ? "8431" : ports)] {
                      return CheckPorts(named);
                    }});
  return checks;
}

}  // namespace tacho::agent
