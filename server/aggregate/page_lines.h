// The aggregates' lines in the text format of Prometheus.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/aggregate/job_scrape.h"
#include "server/metrics/metric_table.h"

namespace tacho::server::aggregate {

// A text that reads back as the same number: whole numbers without an exponent, others as short as
// possible; NaN, +Inf, -Inf. -0 loses its sign.
void AppendNumber(double value, std::string* page);

void AppendHead(absl::string_view family, absl::string_view type, absl::string_view help,
                std::string* page);

void AppendHead(metrics::Metric metric, std::string* page);

// NAME{LABELS} VALUE; without labels NAME VALUE.
void AppendLine(absl::string_view name, absl::string_view labels, double value, std::string* page);

// Appends all lines of a cell; LinesOf() counts them.
void AppendCell(const JobScrape& job, absl::Time now, uint32_t cell, std::string* page);

}  // namespace tacho::server::aggregate
