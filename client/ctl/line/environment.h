// Everything that a command takes from its surroundings, so that tests can set it.
#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <iostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/channel/channel_security.h"

namespace tacho::ctl {

inline constexpr absl::string_view kDefaultAddress = "127.0.0.1:7411";
// The socket of a collector that systemd started (deploy/systemd).
inline constexpr absl::string_view kDefaultAdminAddress = "unix:/run/tacho-collector/admin.sock";
// The socket of a collector whose configuration leaves storage.path as it is.
inline constexpr absl::string_view kLocalAdminAddress = "unix:tacho-data/admin.sock";

// The exit status of the process. Scripts depend on it.
enum ExitCode : int {
  kOk = 0,
  kNothing = 1,      // Nothing was found, or the collector refused the request.
  kUsage = 2,        // The command line is wrong.
  kUnreachable = 3,  // No collector answered at the address.
  kThreshold = 4,    // 'report': a threshold is exceeded or could not be checked; 'conditions
                     // --fail-on': a condition of that severity holds; 'bucket probe': collectors
                     // cannot share it.
};

struct TerminalSize {
  size_t width = 0;  // 0: not known.
  size_t height = 0;
};

struct Environment {
  std::ostream* out = &std::cout;               // Answers.
  std::ostream* err = &std::cerr;               // Everything else.
  bool out_is_terminal = false;                 // Long tables are shortened only on a terminal.
  bool err_is_terminal = false;                 // Progress is drawn only there.
  size_t width = 0;                             // Columns of the terminal; 0: no limit.
  std::function<TerminalSize()> terminal_size;  // Now; may be empty.
  bool unicode = true;
  bool color = false;  // Escape sequences for colour may be written.
  absl::Time now = absl::Now();
  absl::TimeZone zone = absl::UTCTimeZone();  // For times in tables and dates on the command line.
  std::string address{kDefaultAddress};       // Unless --address is given.
  // The same for 'tachoctl admin'.
  std::string admin_address{kDefaultAdminAddress};
  std::string state_directory;       // For data, unless a flag names it; empty: none is known.
  std::string path;                  // $PATH.
  client::ChannelSecurity security;  // Unless its flags are given.
};

// The real one: stdout and stderr, terminal, clock, TZ, COLUMNS, NO_COLOR, LC_ALL/LC_CTYPE/LANG,
// TACHO_ADDRESS, TACHO_ADMIN_ADDRESS, TACHO_TLS, TACHO_TLS_CA, TACHO_TLS_CERT, TACHO_TLS_KEY,
// TACHO_TLS_SERVER_NAME, TACHO_TOKEN_FILE.
Environment RealEnvironment();

// Lets a command ask whether to stop, so that it can end in order. While it exists, SIGINT, SIGTERM
// and SIGHUP wait in this thread and in those that it starts, and Ctrl-Z does nothing. Create it
// before any other thread.
class Interrupts {
 public:
  Interrupts();
  // Discards signals that came.
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether one of the three signals came.
  bool came() const;

 private:
  sigset_t held_{};
  sigset_t before_{};
};

}  // namespace tacho::ctl
