// 'up': a collector and an agent of this machine, for first steps and for work on one machine. What
// already runs is used; what this command started ends with it, the agent first, so that it
// delivers what it has while the collector still listens.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/local/local_program.h"
#include "client/ctl/text/text.h"
#include "client/import/json_reader.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/host_name.h"
#include "proto/base/json_text.h"
#include "proto/base/state_directory.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr char kDefaultHttp[] = "127.0.0.1:7412";
constexpr absl::Duration kPollPause = absl::Milliseconds(50);
constexpr absl::Duration kAskTimeout = absl::Seconds(2);
// A working agent reports every ten seconds. One that has reported lately may have ended since.
constexpr absl::Duration kReportsWithin = absl::Seconds(30);
constexpr absl::Duration kNextReport = absl::Seconds(13);
constexpr absl::Duration kFirstReport = absl::Seconds(45);
constexpr absl::Duration kAgentPatience = absl::Seconds(15);
// It makes durable what it has received, and closes its columns.
constexpr absl::Duration kCollectorPatience = absl::Minutes(1);

struct UpAddresses {
  std::string grpc;
  std::string http;  // Empty: not known, because somebody else started the collector.
};

// The one 'tachoctl up' of a directory. Others read where it listens.
class UpLock {
 public:
  // The owner writes its process and, once it is up, its addresses.
  static constexpr char kName[] = "/up.lock";

  // False if another process holds it.
  //   UNAVAILABLE  the file cannot be written.
  absl::StatusOr<bool> Take(const std::string& directory) {
    path_ = absl::StrCat(directory, kName);
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot write ", path_, ": ", std::generic_category().message(errno)));
    }
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      Write({});
      return true;
    }
    if (errno == EWOULDBLOCK) return false;
    return absl::UnavailableError(absl::StrCat("cannot lock ", path_, ": ",
                                               std::generic_category().message(errno),
                                               "; choose another directory with --state DIR"));
  }
  ~UpLock() {
    if (fd_ >= 0) close(fd_);
  }

  void Write(const UpAddresses& addresses) const {
    std::ofstream(path_) << getpid() << " " << addresses.grpc << " " << addresses.http << "\n";
  }
  // [process, gRPC, HTTP] of the owner; what it has not written yet is empty.
  std::vector<std::string> Read() const {
    std::ifstream file(path_);
    std::string line;
    std::getline(file, line);
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    words.resize(3);
    return words;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

class Up {
 public:
  Up(const Invocation& invocation, std::string directory, std::string path)
      : invocation_(invocation),
        directory_(std::move(directory)),
        path_(std::move(path)),
        http_(invocation.args.Get("http").value_or(kDefaultHttp)),
        addresses_{.grpc = invocation.common.address, .http = {}},
        collector_("tacho-collector", directory_ + "/collector.log"),
        agent_("tacho-agent", directory_ + "/agent.log") {}

  // Returns the exit status.
  int Run() {
    UpLock lock;
    const absl::StatusOr<bool> taken = lock.Take(directory_);
    if (!taken.ok()) return Fail(taken.status());
    if (!*taken) return SayWhoRuns(lock);
    if (const absl::Status started = StartParts(); !started.ok()) {
      const int result = interrupts_.came() ? kOk : Fail(started);
      StopParts().IgnoreError();  // The reason above is the one that counts.
      return result;
    }
    lock.Write(addresses_);
    SayWhereItIs();
    if (collector_.pid() < 0 && agent_.pid() < 0) return kOk;
    const absl::Status ended = AwaitEnd();
    out() << "\nStopping." << std::endl;
    const absl::Status stopped = StopParts();
    if (!ended.ok()) return Fail(ended);
    return stopped.ok() ? kOk : Fail(stopped);
  }

 private:
  std::ostream& out() const { return *invocation_.env.out; }

  int Fail(const absl::Status& status) const {
    *invocation_.env.err << "tachoctl up: " << std::string(status.message()) << std::endl;
    return kNothing;
  }

  QueryClient Ask() const {
    return QueryClient({addresses_.grpc, kAskTimeout, invocation_.common.security});
  }

  bool CollectorAnswers() const {
    QueryClient client = Ask();
    return client.ListJobs({}, 1).ok() || client.reached();
  }

  // Whether the agent of this host has reported since then.
  bool AgentReports(absl::Time since) const {
    v1::LatestRequest request;
    request.mutable_selector()->set_job("hosts");
    request.mutable_selector()->add_metrics("tacho_agent_info");
    bool found = false;
    QueryClient client = Ask();
    const absl::Status asked = client.Latest(request, [&](const v1::LatestResponse& answer) {
      for (const v1::LatestSample& sample : answer.samples()) {
        found |= (agent_.pid() >= 0 || sample.series().host() == SystemHostName()) &&
                 absl::FromUnixNanos(sample.time_unix_ns()) >= since;
      }
      return true;
    });
    return asked.ok() && found;
  }

  absl::Status StartParts() {
    if (CollectorAnswers()) {
      out() << "A collector runs already at " << addresses_.grpc << "; this uses it." << std::endl;
    } else {
      TACHO_RETURN_IF_ERROR(StartCollector());
    }
    return AnAgentLives() ? absl::OkStatus() : StartAgent();
  }

  // Whether an agent of this host reports to the collector, that this has not started.
  bool AnAgentLives() const {
    const absl::Time begin = absl::Now();
    if (!AgentReports(begin - kReportsWithin)) return false;
    out() << "An agent of this host reported lately; checking whether it still runs." << std::endl;
    const absl::Time deadline = MonotonicNow() + kNextReport;
    while (MonotonicNow() < deadline && !interrupts_.came()) {
      if (AgentReports(begin)) {
        out() << "It still runs; this uses it." << std::endl;
        return true;
      }
      absl::SleepFor(kPollPause);
    }
    return false;
  }

  absl::Status StartCollector() {
    TACHO_ASSIGN_OR_RETURN(const std::string program, FindProgram("tacho-collector", path_));
    const std::string ports = absl::StrCat(directory_, "/ports.json");
    std::error_code ignored;
    std::filesystem::remove(ports, ignored);
    out() << "Starting " << program << std::endl;
    TACHO_RETURN_IF_ERROR(
        collector_.Start({program, "--data", CollectorData(directory_), "--grpc", addresses_.grpc,
                          "--http", http_, "--port-file", ports}));
    TACHO_RETURN_IF_ERROR(AwaitReady(&collector_, [&] {
      return std::filesystem::exists(ports, ignored) && ReadPorts(ports) && CollectorAnswers();
    }));
    return absl::OkStatus();
  }

  // With port 0 the collector chooses: {"grpc":PORT,"http":PORT}.
  bool ReadPorts(const std::string& file) {
    std::ifstream stream(file);
    std::string text;
    std::getline(stream, text);
    importer::FlatObject ports;
    if (!ports.Parse(text).ok()) return false;
    const importer::JsonMember* const grpc = ports.Find("grpc");
    const importer::JsonMember* const http = ports.Find("http");
    if (grpc == nullptr || http == nullptr) return false;
    addresses_.grpc =
        absl::StrCat(addresses_.grpc.substr(0, addresses_.grpc.rfind(':') + 1), grpc->text);
    addresses_.http = absl::StrCat(http_.substr(0, http_.rfind(':') + 1), http->text);
    return true;
  }

  absl::Status StartAgent() {
    TACHO_ASSIGN_OR_RETURN(const std::string program, FindProgram("tacho-agent", path_));
    const std::string config = absl::StrCat(directory_, "/agent.yaml");
    std::error_code error;
    std::filesystem::create_directories(Rings(), error);
    std::ofstream file(config);
    file << "# Written by tachoctl up. Every key: tacho-agent --print-config\n"
         << "collector: {address: " << JsonString(addresses_.grpc) << "}\n"
         << "spool: {path: " << JsonString(directory_ + "/spool") << "}\n"
         << "sources:\n  rings: {directory: " << JsonString(Rings()) << "}\n";
    file.close();
    if (error || !file) {
      return absl::UnavailableError(absl::StrCat("cannot write ", config, " or ", Rings()));
    }
    out() << "Starting " << program << std::endl;
    const absl::Time begin = absl::Now();
    TACHO_RETURN_IF_ERROR(agent_.Start({program, "--config", config}));
    const absl::Time deadline = MonotonicNow() + kFirstReport;
    bool reports = false;
    TACHO_RETURN_IF_ERROR(AwaitReady(&agent_, [&] {
      reports = AgentReports(begin);
      return reports || MonotonicNow() >= deadline;
    }));
    if (reports) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the agent runs, but does not report to the collector at ", addresses_.grpc,
        ". If that one asks for TLS or a token, start the agent with a configuration of its own "
        "(docs/security.md). ",
        agent_.log(), " says:\n", agent_.LastLines()));
  }

  // Waits as long as the program lives: after a crash a collector may read its journal for long.
  absl::Status AwaitReady(LocalProgram* program, const std::function<bool()>& ready) const {
    while (!ready()) {
      if (interrupts_.came()) return absl::CancelledError("interrupted");
      if (program->HasEnded()) return DidNotStart(*program);
      absl::SleepFor(kPollPause);
    }
    return absl::OkStatus();
  }

  absl::Status DidNotStart(const LocalProgram& program) const {
    const std::string said = program.LastLines();
    std::string advice;
    if (absl::StrContains(said, "another process using the port") ||
        absl::StrContains(said, "ddress already in use")) {
      advice =
          "\nAnother program uses the port: stop it (ss -ltnp shows it), or choose other ports "
          "with "
          "--address 127.0.0.1:PORT --http 127.0.0.1:PORT";
    }
    return absl::UnavailableError(
        absl::StrCat(program.name(), " did not start; ", program.log(), " says:\n", said, advice));
  }

  absl::Status AwaitEnd() {
    while (!interrupts_.came()) {
      if (collector_.HasEnded() || agent_.HasEnded()) {
        LocalProgram& ended = collector_.HasEnded() ? collector_ : agent_;
        return absl::UnavailableError(absl::StrCat(ended.name(), " ended by itself; ", ended.log(),
                                                   " says:\n", ended.LastLines()));
      }
      absl::SleepFor(kPollPause);
    }
    return absl::OkStatus();
  }

  absl::Status StopParts() {
    const absl::Status agent = agent_.Stop(kAgentPatience);
    const absl::Status collector = collector_.Stop(kCollectorPatience);
    return agent.ok() ? collector : agent;
  }

  std::string Rings() const { return absl::StrCat(directory_, "/rings"); }

  int SayWhoRuns(const UpLock& lock) {
    const std::vector<std::string> owner = lock.Read();
    if (owner[1].empty()) {
      return Fail(absl::UnavailableError(
          absl::StrCat("process ", owner[0], " is starting the same; try again in a moment")));
    }
    out() << "It is up already: process " << owner[0] << " has started it.\n";
    addresses_ = {.grpc = owner[1], .http = owner[2]};
    SayWhereItIs();
    return kOk;
  }

  void SayWhereItIs() const {
    out() << "\n  queries, agents  " << addresses_.grpc << " (gRPC)\n";
    if (const std::string page = Ask().PageUrl(); !page.empty()) {
      out() << "  page             " << Printable(page) << "\n";
    }
    if (!addresses_.http.empty()) {
      out() << "  Prometheus       http://" << addresses_.http << "/metrics\n";
    }
    out() << "  data, logs       " << directory_ << "\n  rings            " << Rings()
          << "\n\nNext, in another terminal:\n  export TACHO_RING_DIR=" << Rings()
          << (addresses_.grpc == kDefaultAddress ? ""
                                                 : absl::StrCat(" TACHO_ADDRESS=", addresses_.grpc))
          << "\n  tacho-example-train --job first      # or your own trainer, with the client "
             "library\n"
          << "  tachoctl status first\n";
    if (collector_.pid() >= 0 || agent_.pid() >= 0)
      out() << "\nCtrl-C stops what this has started.\n";
    out() << std::flush;
  }

  const Invocation& invocation_;
  const Interrupts interrupts_;  // Before any thread of gRPC.
  const std::string directory_;
  const std::string path_;
  const std::string http_;
  UpAddresses addresses_;
  LocalProgram collector_;
  LocalProgram agent_;
};

int RunUp(const Invocation& invocation) {
  const std::string directory =
      invocation.args.Get("state").value_or(invocation.env.state_directory);
  if (directory.empty()) {
    return UsageError(invocation.env, "up", "there is no HOME: name a directory with --state DIR");
  }
  if (!config::IsLoopback(invocation.common.address)) {
    return UsageError(
        invocation.env, "up",
        absl::StrCat("the address ", invocation.common.address,
                     " is not of this machine alone; for others see docs/security.md"));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory);
  std::filesystem::create_directories(absolute, error);
  if (error) {
    *invocation.env.err << "tachoctl up: cannot create " << absolute.string() << ": "
                        << error.message() << "; choose another directory with --state DIR\n";
    return kNothing;
  }
  return Up(invocation, absolute.lexically_normal().string(), invocation.env.path).Run();
}

}  // namespace

Command UpCommand() {
  return {
      .name = "up",
      .group = CommandGroup::kOperate,
      .operands = "",
      .summary = "Start a collector and an agent on this machine, until Ctrl-C",
      .details =
          R"(It starts tacho-collector and tacho-agent, which it finds beside itself or on PATH, waits until both
work, and prints the addresses, where trainers put their rings, and what to type next. Ctrl-C stops
both in order. If a collector answers at the address already, or an agent of this host reports to it,
that one is used and left alone. A second 'tachoctl up' says where the first one is.

Data, logs and the agent's configuration are in one directory, for the next start too: --state DIR,
else $XDG_STATE_HOME/tachograph (~/.local/state/tachograph), or for root /var/lib/tachograph if a
package has made it.

Examples:
  tachoctl up
  tachoctl up --state .tacho --address 127.0.0.1:7511 --http 127.0.0.1:7512)",
      .flags = {{.name = "state",
                 .placeholder = "DIR",
                 .help = "The directory of data, logs, spool and rings; created if missing."},
                {.name = "http",
                 .placeholder = "HOST:PORT",
                 .help = "Where the collector serves the page and /metrics. Default: "
                         "127.0.0.1:7412."}},
      .min_operands = 0,
      .max_operands = 0,
      .run = RunUp};
}

}  // namespace tacho::ctl
