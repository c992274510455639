#include "client/ctl/line/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/state_directory.h"

namespace tacho::ctl {
namespace {

// Read before any thread starts.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

size_t TerminalWidth(bool is_terminal) {
  size_t columns = 0;
  if (absl::SimpleAtoi(Variable("COLUMNS"), &columns) && columns > 0) return columns;
  winsize size{};
  if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
  return 0;
}

TerminalSize SizeNow() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

// Only a locale that clearly is not UTF-8 turns block characters off: containers often set none.
bool LocaleHasUnicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = Variable(name);
    if (locale.empty()) continue;
    const std::string lower = absl::AsciiStrToLower(locale);
    return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
  }
  return true;
}

// The first socket that exists: of the system's service, of a collector without a configuration, of
// one with data in the working directory. Else that of the service.
std::string AdminSocketHere(const std::string& state_directory) {
  std::string packaged(kDefaultAdminAddress);
  for (const std::string& address :
       {packaged, absl::StrCat("unix:", CollectorData(state_directory), "/admin.sock"),
        std::string(kLocalAdminAddress)}) {
    if (access(address.substr(address.find(':') + 1).c_str(), F_OK) == 0) return address;
  }
  return packaged;
}

std::string StateDirectoryHere() {
  StateWorld world;
  world.environment = [](const char* name) -> const char* {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  };
  world.user = geteuid();
  return StateDirectory(world).value_or("");
}

// Off only for a word that says so: someone who sets the variable wants TLS.
bool IsOn(const std::string& value) {
  const std::string lower = absl::AsciiStrToLower(value);
  return !lower.empty() && lower != "0" && lower != "false" && lower != "no" && lower != "off";
}

client::ChannelSecurity SecurityVariables() {
  client::ChannelSecurity security;
  security.ca = Variable("TACHO_TLS_CA");
  security.certificate = Variable("TACHO_TLS_CERT");
  security.key = Variable("TACHO_TLS_KEY");
  security.server_name = Variable("TACHO_TLS_SERVER_NAME");
  security.token_file = Variable("TACHO_TOKEN_FILE");
  security.tls = IsOn(Variable("TACHO_TLS"));
  return security;
}

}  // namespace

Environment RealEnvironment() {
  Environment environment;
  environment.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  environment.err_is_terminal = isatty(STDERR_FILENO) == 1;
  environment.width = TerminalWidth(environment.out_is_terminal);
  environment.terminal_size = SizeNow;
  environment.unicode = LocaleHasUnicode();
  environment.color =
      environment.out_is_terminal && Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
  environment.zone = absl::LocalTimeZone();
  const std::string address = Variable("TACHO_ADDRESS");
  if (!address.empty()) environment.address = address;
  const std::string admin_address = Variable("TACHO_ADMIN_ADDRESS");
  environment.state_directory = StateDirectoryHere();
  environment.admin_address =
      admin_address.empty() ? AdminSocketHere(environment.state_directory) : admin_address;
  environment.path = Variable("PATH");
  environment.security = SecurityVariables();
  return environment;
}

Interrupts::Interrupts() {
  sigemptyset(&held_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) sigaddset(&held_, signal);
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

Interrupts::~Interrupts() {
  const timespec at_once{};
  while (sigtimedwait(&held_, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::came() const {
  sigset_t pending{};
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

}  // namespace tacho::ctl
