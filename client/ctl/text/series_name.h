// Series as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// Every label but the job, in a fixed order: task, host, then the series' own.
std::vector<std::pair<std::string, std::string>> LabelsOf(const v1::SeriesInfo& series);

// The series' own labels (neither job, task nor host): "chip=0,device=sda"; "" if it has none.
std::string OwnLabels(const v1::SeriesInfo& series);

// 'loss{task="0",host="a"}'.
std::string FullName(const v1::SeriesInfo& series);

// What tells each series of an answer from the others, as short as it can be: "loss", "task 3",
// "loss task 3 chip 0".
std::vector<std::string> ShortNames(const std::vector<const v1::SeriesInfo*>& series);

// "gauge", "counter", "histogram", "" if it is not known.
std::string TypeName(v1::MetricType type);

}  // namespace tacho::ctl
