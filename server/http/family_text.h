// Families of prometheus-cpp in the text format of Prometheus.
//
// The lines are those of prometheus::TextSerializer, which has two faults. It rounds numbers to 16
// digits, which changes some; here every number reads back as the same. And it writes to a
// std::ostream, which takes a microsecond for each of the tens of thousands of lines of many jobs.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace tacho::server::http {

void AppendFamilies(const std::vector<prometheus::MetricFamily>& families, std::string* page);

}  // namespace tacho::server::http
