// Commands that show what a collector concludes about a job.
#pragma once

#include "client/ctl/line/command.h"

namespace tacho::ctl {

Command ForecastCommand();

}  // namespace tacho::ctl
