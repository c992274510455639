// 'query --integrate': integrals instead of samples.
#pragma once

#include <vector>

#include "client/ctl/line/command.h"

namespace tacho::ctl {

const std::vector<FlagSpec>& IntegrateFlags();

// Runs 'query' with the flag --integrate.
int RunIntegrate(const Invocation& invocation);

}  // namespace tacho::ctl
