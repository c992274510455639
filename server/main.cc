// tacho-collector: turns the command line into a configuration, runs the collector until a signal
// ends it, and chooses the exit status. No other file of server/ reads flags or the environment, or
// waits for signals.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/base/exhaustion.h"
#include "proto/base/host_name.h"
#include "proto/base/log.h"
#include "proto/base/service_manager.h"
#include "proto/base/state_directory.h"
#include "proto/base/status_macros.h"
#include "proto/config/config_value.h"
#include "proto/config/yaml_config.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/cluster/membership.h"
#include "server/collector.h"
#include "server/command_line.h"
#include "server/cost/price_list.h"
#include "server/edge/listener.h"
#include "server/history/bucket_modes.h"
#include "server/history/history_bucket.h"
#include "server/interop/explain.h"
#include "server/interop/formats/label_mapping.h"
#include "server/process/grpc_transport.h"
#include "server/process/heap_trimmer.h"
#include "server/security/listen_policy.h"
#include "server/security/tokens.h"
#include "server/takeover/ownership.h"
#include "server/takeover/standby.h"
#include "server/web/page_url.h"
#include "storage/check_store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

int Fail(int code, const absl::Status& status) {
  std::cerr << "tacho-collector: " << status.message() << "\n";
  return code;
}

absl::Status OverrideAddress(const char* flag, const std::string& value, std::string* key) {
  if (value.empty()) return absl::OkStatus();
  if (auto s = config::CheckAddress(value); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, ": ", s.message()));
  }
  *key = value;
  return absl::OkStatus();
}

absl::Status MakeConfig(const CommandLine& line, config::v1::Collector* config) {
  absl::Status read = line.config.empty() ? config::ParseYaml("", "defaults", config)
                                          : config::LoadYamlFile(line.config, config);
  if (!read.ok()) return read;
  auto* listen = config->mutable_listen();
  TACHO_RETURN_IF_ERROR(OverrideAddress("--grpc", line.grpc, listen->mutable_grpc()));
  TACHO_RETURN_IF_ERROR(OverrideAddress("--http", line.http, listen->mutable_http()));
  if (!line.data.empty()) config->mutable_storage()->set_path(line.data);
  return absl::OkStatus();
}

// Readers see the whole file or none.
absl::Status WritePortFile(const std::string& path, mode_t mode, int grpc_port, int http_port) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  std::ofstream file(temporary, std::ios::trunc);
  file << "{\"grpc\":" << grpc_port << ",\"http\":" << http_port << "}\n";
  file.close();
  if (file && ::chmod(temporary.c_str(), mode) == 0 &&
      std::rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("--port-file ", path, ": cannot write it"));
}

// "127.0.0.1:0" -> "127.0.0.1:40123".
std::string WithPort(absl::string_view address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

// What a running collector has told about itself. It tells by SIGUSR1, or SIGTERM to end.
struct Told {
  std::atomic<bool> disk_failed = false;
  std::atomic<bool> shard_lost = false;
};

// Returns the signal that asks for the end: SIGUSR1 if the shard is another collector's now.
int AwaitEnd(const sigset_t& signals, Collector* collector, const Told& told,
             takeover::Ownership* ownership) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == SIGUSR1) {
      if (told.shard_lost || (ownership != nullptr && !ownership->shard().has_value()))
        return signal;
      continue;
    }
    if (signal != SIGHUP) return signal;
    collector->Reload("SIGHUP").IgnoreError();  // The log has it.
  }
}

// Waits until this collector owns a shard. Returns 0, or the signal that asks for the end.
//   as Standby::Serve().
absl::StatusOr<int> AwaitShard(const sigset_t& signals, takeover::Standby* standby,
                               const ServiceManager& manager, const log::Log& log) {
  TACHO_RETURN_IF_ERROR(standby->Serve());
  log.Info("waiting until a shard of the cluster needs an owner");
  if (const absl::Status ready = manager.Ready("standby: waits for a shard"); !ready.ok()) {
    log.Warn("cannot notify the service manager", {{"reason", ready.message()}});
  }
  standby->ownership()->Seek();
  int signal = 0;
  while (!standby->ownership()->shard().has_value()) {
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == SIGTERM || signal == SIGINT) break;
    signal = 0;
  }
  standby->StopServing();
  return signal;
}

CollectorWorld MakeWorld(const CommandLine& line, const log::Log& log, Told* told) {
  CollectorWorld world;
  world.log = log;
  world.web_directory = line.web_directory;
  world.read_config = [line]() -> absl::StatusOr<config::v1::Collector> {
    config::v1::Collector config;
    TACHO_RETURN_IF_ERROR(MakeConfig(line, &config));
    return config;
  };
  world.on_disk_failed = [told] {
    told->disk_failed = true;
    ::kill(::getpid(), SIGTERM);
  };
  return world;
}

// Reports the start in the log, in the port file and to the service manager.
absl::Status ReportStart(const CommandLine& line, mode_t port_file_mode,
                         const config::v1::Collector& config, const Collector& collector,
                         const ServiceManager& manager, const log::Log& log) {
  if (!line.port_file.empty()) {
    absl::Status written =
        WritePortFile(line.port_file, port_file_mode, collector.grpc_port(), collector.http_port());
    if (!written.ok()) return written;
  }
  const std::string grpc = WithPort(config.listen().grpc(), collector.grpc_port());
  const std::string http = WithPort(config.listen().http(), collector.http_port());
  log.Info("listening", {{"grpc", grpc}, {"http", http}, {"data", config.storage().path()}});
  if (const absl::Status ready = manager.Ready(absl::StrCat("listening grpc=", grpc));
      !ready.ok()) {
    log.Warn("cannot notify the service manager", {{"reason", ready.message()}});
  }
  return absl::OkStatus();
}

// Without a configuration, data goes where this user's state belongs, not where the shell stands.
//   FAILED_PRECONDITION, UNAVAILABLE  there is no such place; the text says why.
absl::Status ChooseData(CommandLine* line, config::v1::Collector* config) {
  StateWorld world;
  world.environment = [](const char* name) -> const char* {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  };
  world.user = ::geteuid();
  const auto state = StateDirectory(world);
  if (!state.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(state.status().message(), "; name one with --data DIRECTORY"));
  }
  std::error_code error;
  std::filesystem::create_directories(*state, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot create ", *state,
                                               " for the data: ", error.message(),
                                               "; name another place with --data DIRECTORY"));
  }
  line->data = CollectorData(*state);  // A reload takes the flags again.
  config->mutable_storage()->set_path(line->data);
  return absl::OkStatus();
}

// For the person who has typed "tacho-collector" and nothing more.
void Greet(const config::v1::Collector& config, const Collector& collector) {
  const std::string grpc = WithPort(config.listen().grpc(), collector.grpc_port());
  const std::string http = WithPort(config.listen().http(), collector.http_port());
  const std::string page = collector.page_url();
  config::v1::Collector defaults;
  const bool usual = config::ParseYaml("", "defaults", &defaults).ok() &&
                     grpc == defaults.listen().grpc();  // Where the others look by themselves.
  std::cout << "tacho-collector " TACHO_VERSION
               " runs with its defaults; Ctrl-C stops it.\n"
               "  data                "
            << config.storage().path() << "\n  agents and queries  " << grpc << " (gRPC)\n"
            << (page.empty() ? "" : absl::StrCat("  page                ", page, "\n"))
            << "  Prometheus          http://" << http
            << "/metrics\nNext, in another terminal: tacho-agent"
            << (usual ? "" : absl::StrCat(" --collector ", grpc)) << ", then: tachoctl"
            << (usual ? "" : absl::StrCat(" --address ", grpc))
            << " jobs\n('tachoctl up' does both. Every setting: tacho-collector --print-config)"
            << std::endl;
}

// Runs a collector until a signal ends it, or until another one has taken its shard.
class Runner {
 public:
  Runner(const CommandLine& line, const config::v1::Collector& config, mode_t port_file_mode)
      : line_(line), config_(config), port_file_mode_(port_file_mode) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals_, signal);
    // Before the first thread, so that every thread leaves them to sigwait().
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    const char* const notify = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
    manager_.emplace(notify == nullptr ? "" : notify);
  }

  // Returns the exit status.
  int Run() {
    edge::RaiseFileLimit();
    const process::HeapTrimmer trimmer({});
    process::LimitGrpcLog(log_);
    if (config_.cluster().spares().empty()) return RunCollector().value_or(0);
    if (const absl::Status opened = OpenStandby(); !opened.ok()) return CannotStart(opened);
    for (;;) {
      const auto signal = AwaitShard(signals_, standby_.get(), *manager_, log_);
      if (!signal.ok()) return CannotStart(signal.status());
      const std::optional<int> status = *signal != 0 ? 0 : RunCollector();
      if (!status.has_value()) {
        // The log of the shard often shows the loss before the map does. Without a look at the map
        // this collector would claim the shard once more, from its rightful owner.
        standby_->ownership()->Doubt();
        continue;
      }
      // Another collector may go on at once; all that it needs is in the bucket.
      standby_->ownership()->Release();
      return *status;
    }
  }

 private:
  int CannotStart(const absl::Status& why) const {
    log_.Error("cannot start", {{"reason", why.ToString()}});
    return kExitFailure;
  }

  absl::Status OpenStandby() {
    TACHO_ASSIGN_OR_RETURN(const cluster::Self self, cluster::FindSelf(config_, SystemHostName()));
    TACHO_ASSIGN_OR_RETURN(standby_, takeover::Standby::Open(config_, self, TACHO_VERSION, log_,
                                                             [] { ::kill(::getpid(), SIGUSR1); }));
    return absl::OkStatus();
  }

  // The exit status; nothing: the shard has another owner, and the process may wait for one again.
  std::optional<int> RunCollector() {
    Told told;
    CollectorWorld world = MakeWorld(line_, log_, &told);
    if (standby_ != nullptr) {
      world.ownership = standby_->ownership();
      world.hear_ownership =
          std::bind_front(&takeover::Standby::SetRequestListener, standby_.get());
      // Without spares it stays, and answers queries with what it had.
      world.on_shard_lost = [&told] {
        told.shard_lost = true;
        ::kill(::getpid(), SIGUSR1);
      };
    }
    auto collector = Collector::Start(config_, std::move(world));
    if (!collector.ok()) {
      if (standby_ != nullptr && absl::IsAborted(collector.status())) {
        log_.Warn("another collector was faster", {{"reason", collector.status().message()}});
        return std::nullopt;
      }
      return CannotStart(collector.status());
    }
    if (const absl::Status reported =
            ReportStart(line_, port_file_mode_, config_, **collector, *manager_, log_);
        !reported.ok()) {
      return CannotStart(reported);
    }
    if (line_.config.empty()) Greet(config_, **collector);
    const int signal = AwaitEnd(signals_, collector->get(), told,
                                standby_ == nullptr ? nullptr : standby_->ownership());
    if (signal == SIGUSR1) {
      log_.Warn("draining, to wait for a shard again");
      (*collector)->Drain().IgnoreError();  // What was not acknowledged is with the agents.
      return std::nullopt;
    }
    return End(signal, told, collector->get());
  }

  int End(int signal, const Told& told, Collector* collector) const {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int one : {SIGTERM, SIGINT}) sigaddset(&ending, one);
    pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);  // The next one ends the process at once.
    const char* const why = told.disk_failed   ? "the disk failed"
                            : signal == SIGINT ? "SIGINT"
                                               : "SIGTERM";
    log_.Info("draining", {{"reason", why}});
    manager_->Stopping("draining").IgnoreError();
    if (const absl::Status drained = collector->Drain(); !drained.ok()) {
      log_.Error("not closed cleanly", {{"reason", drained.ToString()}});
      return kExitFailure;
    }
    if (told.disk_failed) {
      log_.Error("exiting because the disk failed; the next start reads it anew");
      return kExitFailure;
    }
    log_.Info("closed cleanly");
    return 0;
  }

  const CommandLine& line_;
  const config::v1::Collector& config_;
  const mode_t port_file_mode_;
  sigset_t signals_ = {};
  std::optional<ServiceManager> manager_;
  const log::Log log_ = log::StandardLog(config_.log().format(), config_.log().level());
  std::unique_ptr<takeover::Standby> standby_;  // Null: the cluster has no spares.
};

int Run(CommandLine line, config::v1::Collector config) {
  // Only its owner may read the store, whoever starts the collector. Others read the port file.
  const mode_t masked = ::umask(077);
  if (line.config.empty() && line.data.empty()) {
    if (const absl::Status chosen = ChooseData(&line, &config); !chosen.ok()) {
      return Fail(kExitFailure, chosen);
    }
  }
  return Runner(line, config, 0666 & ~masked).Run();
}

int CheckStore(const std::string& path) {
  const auto contents = storage::CheckStore(path);
  if (!contents.ok()) return Fail(kExitFailure, contents.status());
  std::cout << path << ": whole; jobs=" << contents->jobs << " series=" << contents->series
            << " days=" << contents->days << " table_bytes=" << contents->table_bytes
            << " journal_entries=" << contents->journal_entries << "\n";
  return 0;
}

int MakeToken() {
  const auto token = security::NewToken();
  if (!token.ok()) return Fail(kExitFailure, token.status());
  std::cerr
      << "Give the token to its holder, in a file that others cannot read. The collector keeps no "
         "copy.\n"
         "Add this entry below 'tokens:' in auth.tokens_file (docs/security.md), with a name, "
         "roles and jobs of your choice:\n\n"
         "  - name: NAME\n"
         "    sha256: "
      << absl::BytesToHexString(security::Sha256(*token))
      << "\n"
         "    roles: [write]\n"
         "    jobs: '.*'\n\n";
  std::cout << *token << std::endl;
  return std::cout ? 0 : kExitFailure;
}

int ExplainMapping(const std::string& path, const config::v1::Collector& config) {
  std::ifstream file(path, std::ios::binary);
  const std::string request(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    return Fail(kExitUsage,
                absl::NotFoundError(absl::StrCat("--explain-mapping ", path, ": cannot read it")));
  }
  const auto text = interop::ExplainMapping(config.interop(), request);
  if (!text.ok()) {
    return Fail(kExitUsage,
                absl::InvalidArgumentError(absl::StrCat(path, ": ", text.status().message())));
  }
  std::cout << *text;
  return 0;
}

int CheckConfig(const CommandLine& line, const config::v1::Collector& config) {
  if (auto s = security::CheckSecurity(config); !s.ok()) return Fail(kExitUsage, s);
  if (auto s = web::CheckPageUrl(config.ui().url()); !s.ok()) return Fail(kExitUsage, s);
  if (auto s = history::HistoryBucket::Check(config); !s.ok()) return Fail(kExitUsage, s);
  if (const auto membership = cluster::Membership::Make(config, SystemHostName());
      !membership.ok()) {
    return Fail(kExitUsage, membership.status());
  }
  if (auto s = cost::PriceList::Create(config.cost()).status(); !s.ok()) return Fail(kExitUsage, s);
  const auto rules = aggregate::MakeAggregateRules(config.metrics());
  if (!rules.ok()) return Fail(kExitUsage, rules.status());
  const auto mapping = interop::LabelMapping::Create(config.interop());
  if (!mapping.ok()) return Fail(kExitUsage, mapping.status());
  std::cout << (line.config.empty() ? "defaults" : line.config) << ": valid\n";
  // The documentation describes the built-in rules.
  if ((*rules)->configured > 0) std::cout << aggregate::DescribeAggregateRules(**rules);
  return 0;
}

// What a bucket has of this member's shard.
int AskBucket(const CommandLine& line, const config::v1::Collector& config) {
  const auto self = cluster::FindSelf(config, SystemHostName());
  if (!self.ok()) return Fail(kExitUsage, self.status());
  if (!self->address.empty() && !self->home.has_value()) {
    return Fail(kExitUsage, absl::InvalidArgumentError(absl::StrCat(
                                "cluster.member: ", self->address,
                                " is a spare, which has no shard of its own: set it to the one of "
                                "cluster.members whose shard you mean")));
  }
  const uint32_t shard = self->home.value_or(0);
  if (line.mode == CommandLine::Mode::kCheckBucket) {
    return history::CheckBucket(config, shard, line.deep, std::cout, std::cerr);
  }
  ::umask(077);  // Only its owner may read the store.
  return history::RestoreFromBucket(config,
                                    {.directory = line.restore, .shard = shard, .days = line.days},
                                    absl::Now(), std::cout, std::cerr);
}

int Main(std::span<const char* const> arguments) {
  const auto line = ParseCommandLine(arguments);
  if (!line.ok()) return Fail(kExitUsage, line.status());
  if (line->mode == CommandLine::Mode::kHelp) {
    std::cout << kCommandLineHelp;
    return 0;
  }
  if (line->mode == CommandLine::Mode::kVersion) {
    std::cout << "tacho-collector " TACHO_VERSION "\n";
    return 0;
  }
  if (line->mode == CommandLine::Mode::kCheckStore) return CheckStore(line->check_store);
  if (line->mode == CommandLine::Mode::kMakeToken) return MakeToken();
  config::v1::Collector config;
  if (auto s = MakeConfig(*line, &config); !s.ok()) return Fail(kExitUsage, s);
  switch (line->mode) {
    case CommandLine::Mode::kCheckConfig:
      return CheckConfig(*line, config);
    case CommandLine::Mode::kCheckBucket:
    case CommandLine::Mode::kRestoreFromBucket:
      return AskBucket(*line, config);
    case CommandLine::Mode::kExplainMapping:
      return ExplainMapping(line->explain_mapping, config);
    case CommandLine::Mode::kPrintConfig:
      std::cout << config::PrintYaml(config);
      return 0;
    default:
      return Run(*line, config);
  }
}

}  // namespace
}  // namespace tacho::server

int main(int argc, char** argv) {
  // The distribution's Abseil looks for lock cycles at every Lock(). That takes a few per cent of
  // the CPU, and the thread sanitizer finds the same in the tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  tacho::ExplainExhaustion("tacho-collector");
  return tacho::server::Main({argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)});
}
