// Commands that show what a collector concludes about a job, and what collectors say of each other.
#pragma once

#include "client/ctl/line/command.h"

namespace tacho::ctl {

Command ClusterCommand();
Command CostCommand();
Command ForecastCommand();

}  // namespace tacho::ctl
