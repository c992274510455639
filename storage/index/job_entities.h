// Who recorded a job, and what: read off its catalogue.
#pragma once

#include <vector>

#include "storage/index/job_catalog.h"
#include "storage/model/job.h"

namespace tacho::storage {

// The label whose values are a host's chips.
inline constexpr char kChipLabel[] = "chip";

// Each looks once at every series of the catalogue, or at every column of its layouts. The caller
// keeps the catalogue from changing meanwhile.

// By (attempt, task, host). A series that several layouts of an incarnation have counts once.
std::vector<JobEntities::Incarnation> IncarnationsOf(const JobCatalog& catalog);
std::vector<JobEntities::Chip> ChipsOf(const JobCatalog& catalog);
std::vector<MetricUse> MetricUsesOf(const JobCatalog& catalog);

}  // namespace tacho::storage
