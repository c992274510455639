// Finds the series of one job that a selector wants.
#pragma once

#include <cstddef>
#include <vector>

#include "storage/index/job_catalog.h"
#include "storage/index/matcher.h"
#include "storage/model/series.h"

namespace tacho::storage {

// The series of `job` that match, in no order; more than `limit` only says that there are too many:
// then it stops. selector.job is not looked at.
//
// A matcher is evaluated once a value, not once a series: first for every source, or for every
// value of its label, then the series are walked with one bit test for each. Those walked are the
// series of the metrics wanted or those of the sources wanted, whichever are fewer.
std::vector<const Series*> SelectSeries(const JobCatalog& job, const Selector& selector,
                                        size_t limit);

// By (metric name, task, host, labels).
bool SeriesOrder(const Series* a, const Series* b);

}  // namespace tacho::storage
