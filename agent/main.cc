// tacho-agent: flags, configuration, log, signals, exit status. Everything else is in Agent, which
// tests use without a process.
//
// Exit status: 0 stopped as asked, 1 cannot start or go on, 2 wrong flags or configuration.
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/agent.h"
#include "agent/diagnose/command.h"
#include "agent/loaded_pages.h"
#include "agent/stream/collector_config.h"
#include "proto/base/exhaustion.h"
#include "proto/base/flags.h"
#include "proto/base/log.h"
#include "proto/base/nearest.h"
#include "proto/base/service_manager.h"
#include "proto/base/status_macros.h"
#include "proto/config/config_diff.h"
#include "proto/config/yaml_config.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr char kHelp[] =
    R"(tacho-agent samples this machine and its training jobs, and delivers every row to a collector.

Usage: tacho-agent [--config FILE] [--collector HOST:PORT,...] [--spool DIR]
       tacho-agent diagnose [--help]    checks this machine and the way to the collectors

  --config FILE          Reads this YAML configuration. Without it every key has its default.
  --collector HOST:PORT  Replaces collector.addresses, and collector.members. Separate several
                         collectors with commas, the preferred one first.
  --spool DIR            Replaces spool.path.
  --check-config         Checks the configuration and exits: 0 if it is valid, 2 if not.
  --print-config         Prints the whole configuration, with the meaning of each key, and exits.
  --version              Prints the version and exits.
  -h, --help             Prints this help and exits.

Rows wait in the spool until the collector has them on disk, so the collector may be away until the
spool is full (spool.max_bytes). SIGTERM and Ctrl-C stop the agent within seconds; it delivers what
is left after the next start. SIGHUP reads the configuration again and applies log.level. The agent
logs to standard error.

Exit status: 0 stopped as asked, 1 cannot start or go on, 2 wrong flags or configuration. diagnose
also exits with 3 and 4.

Example: tacho-agent --print-config > agent.yaml, edit the file, then tacho-agent --config agent.yaml
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

// INVALID_ARGUMENT  the text says what is wrong.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments) {
  const std::vector<tacho::FlagSpec> specs = {
      {.name = "config", .placeholder = "FILE"},
      {.name = "collector", .placeholder = "HOST:PORT,..."},
      {.name = "spool", .placeholder = "DIR"},
      {.name = "check-config"},
      {.name = "print-config"},
      {.name = "version"},
      {.name = "help", .letter = 'h'},
  };
  TACHO_ASSIGN_OR_RETURN(const auto parsed, tacho::ParseArgs(arguments, specs));
  if (!parsed.positionals().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown command '", parsed.positionals().front(), "'",
                     tacho::DidYouMean(parsed.positionals().front(), {"diagnose"})));
  }
  return Flags{.config = parsed.Get("config").value_or(""),
               .collector = parsed.Get("collector").value_or(""),
               .spool = parsed.Get("spool").value_or(""),
               .check = parsed.Has("check-config"),
               .print = parsed.Has("print-config"),
               .version = parsed.Has("version"),
               .help = parsed.Has("help")};
}

absl::Status ReadConfig(const Flags& flags, tacho::config::v1::Agent* config) {
  absl::Status status = flags.config.empty() ? tacho::config::ParseYaml("", "", config)
                                             : tacho::config::LoadYamlFile(flags.config, config);
  if (!status.ok()) return status;
  if (flags.collector.empty() && flags.spool.empty()) return status;

  if (!flags.collector.empty()) {
    config->mutable_collector()->clear_address();
    config->mutable_collector()->clear_addresses();
    config->mutable_collector()->clear_members();
    config->mutable_collector()->clear_spares();
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
  ::umask(077);  // Only its owner may read the spool, whoever starts the agent.
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
  options.log = log;
  options.broken = [log, &broken](const absl::Status& status) {
    log.Error("stopping: the agent must be started again", {{"reason", status.ToString()}});
    broken = true;
    kill(getpid(), SIGTERM);
  };
  auto agent = tacho::agent::Agent::Create(std::move(options));
  if (!agent.ok()) {
    log.Error("cannot start", {{"reason", agent.status().message()}});
    return absl::IsInvalidArgument(agent.status()) ? kExitUsage : kExitFailed;
  }
  // An agent shall be small, and what its libraries touched to be loaded is most of it.
  tacho::agent::ReleaseLoadedPages();
  (*agent)->Start();
  if (const absl::Status told = manager.Ready("sampling"); !told.ok()) {
    log.Warn("cannot notify the service manager", {{"reason", told.message()}});
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
  tacho::ExplainExhaustion("tacho-agent");

  if (argc > 1 && std::string(argv[1]) == "diagnose") {
    return tacho::agent::RunDiagnose({argv + 2, argv + argc}, TACHO_VERSION, &std::cout,
                                     &std::cerr);
  }
  const absl::StatusOr<Flags> parsed = ParseFlags({argv + 1, argv + argc});
  if (!parsed.ok()) {
    std::cerr << "tacho-agent: " << parsed.status().message() << "\nTry tacho-agent --help\n";
    return kExitUsage;
  }
  const Flags& flags = *parsed;
  if (flags.help || flags.version) {
    std::cout << (flags.help ? kHelp : "tacho-agent " TACHO_VERSION "\n");
    return 0;
  }
  tacho::config::v1::Agent config;
  if (absl::Status status = LoadConfig(flags, &config); !status.ok()) {
    std::cerr << "tacho-agent: " << status.message() << "\n"
              << "Correct it; --print-config shows every key\n";
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
