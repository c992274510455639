// Commands that ask the agents of a job for something.
#pragma once

#include "client/ctl/line/command.h"

namespace tacho::ctl {

Command HangCommand();
Command ProfileCommand();

}  // namespace tacho::ctl
