// Whether the collector takes work, and how much room its disk has: what alerts ask for while the
// scrape still answers.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "server/http/readiness.h"

namespace tacho::server::http {

// `readiness` may be nullptr, `storage_path` empty: what is not known is left out.
std::vector<prometheus::MetricFamily> HealthFamilies(const Readiness* readiness,
                                                     const std::string& storage_path);

}  // namespace tacho::server::http
