// Everything that a command takes from the world around it, so that tests can say what it is.
#pragma once

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
// Where the collector of deploy/systemd has it.
inline constexpr absl::string_view kDefaultAdminAddress = "unix:/run/tacho-collector/admin.sock";
// Where a collector has it that was started with its defaults in the working directory.
inline constexpr absl::string_view kLocalAdminAddress = "unix:tacho-data/admin.sock";

// What the process exits with: part of the interface, scripts depend on it.
enum ExitCode : int {
  kOk = 0,
  kNothing = 1,      // Nothing was found, or the collector refused the request.
  kUsage = 2,        // The command line is wrong.
  kUnreachable = 3,  // No collector answered at the address.
  kThreshold = 4,    // 'report': a threshold is exceeded, or could not be checked; 'conditions
                     // --fail-on': one holds that is so severe.
};

struct TerminalSize {
  size_t width = 0;  // 0 is not known.
  size_t height = 0;
};

struct Environment {
  std::ostream* out = &std::cout;  // Answers.
  std::ostream* err = &std::cerr;  // Everything else.
  bool out_is_terminal = false;    // Long tables are shortened only for a person who looks at them.
  bool err_is_terminal = false;    // Progress is drawn only there.
  size_t width = 0;                // Columns of the terminal; 0 is no limit.
  std::function<TerminalSize()> terminal_size;  // Now; may be empty.
  bool unicode = true;
  bool color = false;  // Escape sequences for colour may be written.
  absl::Time now = absl::Now();
  absl::TimeZone zone = absl::UTCTimeZone();  // Of times in tables and of dates that are typed.
  std::string address{kDefaultAddress};       // Where --address is not given.
  // The same for 'tachoctl admin'.
  std::string admin_address{kDefaultAdminAddress};
  client::ChannelSecurity security;  // Where the flags of it are not given.
};

// The real one: stdout and stderr, terminal, clock, TZ, COLUMNS, NO_COLOR, LC_ALL/LC_CTYPE/LANG,
// TACHO_ADDRESS, TACHO_ADMIN_ADDRESS, TACHO_TLS, TACHO_TLS_CA, TACHO_TLS_CERT, TACHO_TLS_KEY,
// TACHO_TLS_SERVER_NAME, TACHO_TOKEN_FILE.
Environment RealEnvironment();

}  // namespace tacho::ctl
