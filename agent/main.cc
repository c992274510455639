// tacho-agent: flags, configuration, log, signals, exit code.
//
// Exit codes: 0 stopped as asked, 1 could not start or go on, 2 wrong flags or configuration.
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/agent.h"
#include "agent/diagnose/command.h"
#include "agent/stream/collector_security.h"
#include "proto/base/loaded_pages.h"
#include "proto/base/log.h"
#include "proto/base/service_manager.h"
#include "proto/config/config_diff.h"
#include "proto/config/yaml_config.h"

namespace {

using tacho::agent::LogLevel;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr char kHelp[] =
    R"(tacho-agent: samples this machine and its training jobs, and delivers every row to a collector.

Usage: tacho-agent [--config FILE] [--collector HOST:PORT,...] [--spool DIR]
       tacho-agent diagnose [--help]   checks this machine and the way to the collectors

  --config FILE          YAML configuration; without it every key has its default.
  --collector HOST:PORT  Instead of the configuration's collector.addresses; further ones, in the
                         order of preference, after commas.
  --spool DIR            Instead of the configuration's spool.path.
  --check-config         Check the configuration and exit: 0 if it is right, 2 if not.
  --print-config         Print the whole configuration, with what each key means, and exit.
  --version              Print the version and exit.
  --help                 Print this and exit.

Rows wait in the spool until the collector has them on disk: the collector may be away for as long as
spool.max_bytes lasts. SIGTERM and Ctrl-C stop the agent within seconds; what could not be delivered
is delivered after the next start. SIGHUP reads the configuration again and takes a new log.level.
The log goes to standard error.

Exit codes: 0 stopped as asked, 1 could not start or go on, 2 wrong flags or configuration; of
diagnose also 3 and 4.

Example: tacho-agent --print-config > agent.yaml, edit it, then tacho-agent --config agent.yaml
)";

struct Flags {
  std::string config;
  std::string collector;
  std::string spool;
  bool check = false;
  bool print = false;
  bool version = false;
  bool help = false;
};

// False after saying what is wrong.
bool ParseFlags(int argc, char** argv, Flags* flags) {
  const option options[] = {
      {"config", required_argument, nullptr, 'c'}, {"collector", required_argument, nullptr, 'a'},
      {"spool", required_argument, nullptr, 's'},  {"check-config", no_argument, nullptr, 'k'},
      {"print-config", no_argument, nullptr, 'p'}, {"version", no_argument, nullptr, 'v'},
      {"help", no_argument, nullptr, 'h'},         {nullptr, 0, nullptr, 0}};
  int chosen = 0;
  // getopt says itself what it does not know. No other thread runs yet.
  while ((chosen = getopt_long(argc, argv, "h", options, nullptr)) != -1) {  // NOLINT
    switch (chosen) {
      case 'c':
        flags->config = optarg;
        break;
      case 'a':
        flags->collector = optarg;
        break;
      case 's':
        flags->spool = optarg;
        break;
      case 'k':
        flags->check = true;
        break;
      case 'p':
        flags->print = true;
        break;
      case 'v':
        flags->version = true;
        break;
      case 'h':
        flags->help = true;
        break;
      default:
        return false;
    }
  }
  if (optind == argc) return true;
  std::cerr << "tacho-agent: '" << argv[optind] << "' is no flag; nothing else is expected\n";
  return false;
}

absl::Status ReadConfig(const Flags& flags, tacho::config::v1::Agent* config) {
  absl::Status status = flags.config.empty() ? tacho::config::ParseYaml("", "", config)
                                             : tacho::config::LoadYamlFile(flags.config, config);
  if (!status.ok()) return status;
  if (flags.collector.empty() && flags.spool.empty()) return status;

  if (!flags.collector.empty()) {
    config->mutable_collector()->clear_address();
    config->mutable_collector()->clear_addresses();
    for (const absl::string_view address : absl::StrSplit(flags.collector, ',')) {
      config->mutable_collector()->add_addresses(std::string(address));
    }
  }
  if (!flags.spool.empty()) config->mutable_spool()->set_path(flags.spool);
  // Through the reader again, which checks what the flags have set.
  return tacho::config::ParseYaml(tacho::config::PrintYaml(*config), "configuration with the flags",
                                  config);
}

absl::Status LoadConfig(const Flags& flags, tacho::config::v1::Agent* config) {
  absl::Status status = ReadConfig(flags, config);
  return status.ok() ? tacho::agent::CheckSecurity(config->collector()) : status;
}

tacho::log::Level ToLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return tacho::log::Level::kDebug;
    case LogLevel::kInfo:
      return tacho::log::Level::kInfo;
    case LogLevel::kWarning:
      return tacho::log::Level::kWarn;
    case LogLevel::kError:
      return tacho::log::Level::kError;
  }
  return tacho::log::Level::kError;
}

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// All of the file that can be taken while the agent runs, or nothing.
void Reload(const Flags& flags, const tacho::config::v1::Agent& running,
            const tacho::log::Log& log) {
  tacho::config::v1::Agent config;
  absl::Status read = LoadConfig(flags, &config);
  if (read.ok()) {
    const auto fixed = tacho::config::KeysThatNeedRestart(running, config);
    if (!fixed.empty()) {
      read = absl::FailedPreconditionError(
          absl::StrCat(absl::StrJoin(fixed, ", "), ": changed, which needs a restart"));
    }
  }
  if (!read.ok()) {
    return log.Error("reload refused: nothing was changed", {{"reason", read.message()}});
  }
  log.SetLevel(tacho::log::LevelNamed(config.log().level()).value_or(tacho::log::Level::kInfo));
  log.Info("the configuration was read again");
}

int RunAgent(const Flags& flags, const tacho::config::v1::Agent& config) {
  // Blocked in every thread, and taken by this one with sigwait(): no handler, nothing
  // asynchronous.
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const char* const notify = getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  const tacho::ServiceManager manager(notify == nullptr ? "" : notify);

  const auto log = tacho::log::StandardLog(config.log().format(), config.log().level());
  std::atomic<bool> broken = false;
  tacho::agent::AgentOptions options;
  options.config = config;
  options.version = TACHO_VERSION;
  options.environment = [](const char* name) {
    return getenv(name);
  };  // NOLINT(concurrency-mt-unsafe)
  options.log = [log](LogLevel level, absl::string_view line) { log.Write(ToLevel(level), line); };
  options.broken = [log, &broken](const absl::Status& status) {
    log.Error("stopping, start the agent again", {{"reason", status.ToString()}});
    broken = true;
    kill(getpid(), SIGTERM);
  };
  auto agent = tacho::agent::Agent::Create(std::move(options));
  if (!agent.ok()) {
    log.Error("cannot start", {{"reason", agent.status().message()}});
    return absl::IsInvalidArgument(agent.status()) ? kExitUsage : kExitFailed;
  }
  // An agent shall be small, and what its libraries touched to be loaded is most of it.
  tacho::ReleaseLoadedPages();
  (*agent)->Start();
  if (const absl::Status told = manager.Ready("sampling"); !told.ok()) {
    log.Warn("the service manager is not told", {{"reason", told.message()}});
  }
  int signal = SIGHUP;
  while (signal == SIGHUP) {
    sigwait(&signals, &signal);
    if (signal == SIGHUP) Reload(flags, config, log);
  }
  log.Info("stopping", {{"reason", strsignal(signal)}});
  manager.Stopping("stopping").IgnoreError();
  (*agent)->Stop();
  return broken ? kExitFailed : 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Threads here allocate little: one heap instead of one for each saves several MiB.
  mallopt(M_ARENA_MAX, 1);

  if (argc > 1 && std::string(argv[1]) == "diagnose") {
    return tacho::agent::RunDiagnose({argv + 2, argv + argc}, TACHO_VERSION, &std::cout,
                                     &std::cerr);
  }
  Flags flags;
  if (!ParseFlags(argc, argv, &flags)) {
    std::cerr << "Try tacho-agent --help\n";
    return kExitUsage;
  }
  if (flags.help || flags.version) {
    std::cout << (flags.help ? kHelp : "tacho-agent " TACHO_VERSION "\n");
    return 0;
  }
  tacho::config::v1::Agent config;
  if (absl::Status status = LoadConfig(flags, &config); !status.ok()) {
    std::cerr << "tacho-agent: " << status.message() << "\n"
              << "Correct it, or see every key with --print-config\n";
    return kExitUsage;
  }
  if (flags.print) {
    std::cout << tacho::config::PrintYaml(config);
    return 0;
  }
  if (flags.check) {
    std::cout << (flags.config.empty() ? "defaults" : flags.config) << ": valid\n";
    return 0;
  }
  return RunAgent(flags, config);
}
