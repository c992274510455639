// The order of series in answers: by metric, task, host and labels.
#pragma once

#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

bool ComesBefore(const v1::SeriesInfo& a, const v1::SeriesInfo& b);

}  // namespace tacho::server::cluster
