// Labels of a series as text.
#pragma once

#include <string>

#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// Its own labels: {"chip":"0"}; {} if it has none.
std::string LabelsAsJson(const v1::SeriesInfo& series);

// Within braces, as Prometheus writes them: chip="0",slice="a"; "" if it has none.
std::string LabelsAsMatchers(const v1::SeriesInfo& series);

// A value between quotes, as Prometheus escapes it.
std::string PrometheusEscaped(const std::string& value);

}  // namespace tacho::ctl
