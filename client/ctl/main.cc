#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "client/ctl/commands/run.h"
#include "client/ctl/line/environment.h"
#include "client/ctl/text/fd_stream.h"

int main(int argc, char** argv) {
  // 'tachoctl query … | head' is no failure: writing then reports EPIPE, and we stop quietly.
  std::signal(SIGPIPE, SIG_IGN);
  tacho::ctl::FdStreambuf buffer(STDOUT_FILENO);
  std::ostream out(&buffer);
  tacho::ctl::Environment env = tacho::ctl::RealEnvironment();
  env.out = &out;
  const int result = tacho::ctl::Run(std::vector<std::string>(argv + 1, argv + argc), env);
  out.flush();
  if (buffer.error() == 0 || buffer.error() == EPIPE) return result;
  std::cerr << "tachoctl: cannot write the answer: "
            << std::generic_category().message(buffer.error()) << "\n";
  return result == tacho::ctl::kOk ? tacho::ctl::kNothing : result;
}
