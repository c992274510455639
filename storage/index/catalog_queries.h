// Questions to the catalogue of one job.
#pragma once

#include <cstddef>
#include <vector>

#include "storage/index/job_catalog.h"
#include "storage/index/matcher.h"
#include "storage/model/job.h"
#include "storage/model/series.h"

namespace tacho::storage {

// The label whose values are a host's chips.
inline constexpr char kChipLabel[] = "chip";

// Each looks once at every series of the catalogue, or at every column of its layouts. The caller
// keeps the catalogue from changing meanwhile.

// By (attempt, task, host). A series that several layouts of an incarnation have counts once.
std::vector<JobEntities::Incarnation> IncarnationsOf(const JobCatalog& catalog);
std::vector<JobEntities::Chip> ChipsOf(const JobCatalog& catalog);
std::vector<MetricUse> MetricUsesOf(const JobCatalog& catalog);

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
