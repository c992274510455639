// The store's figures as metric families.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "storage/store.h"

namespace tacho::server::http {

std::vector<prometheus::MetricFamily> StoreFamilies(const storage::StoreStats& stats);

}  // namespace tacho::server::http
