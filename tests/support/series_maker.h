// Series and layouts as an index hands them out, for tests that have none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/model/series.h"

namespace tacho::storage {

// What a series made here points to.
struct MadeSeries {
  Metric metric;
  SeriesSource source;
  Labels labels;
  LabelSet label_set;
  Series series;
};

inline SeriesPtr MakeSeries(Series ids, Metric metric, SeriesSource source, Labels labels) {
  const auto made = std::make_shared<MadeSeries>();
  made->metric = std::move(metric);
  made->source = std::move(source);
  made->labels = std::move(labels);
  made->label_set.labels.assign(made->labels.begin(), made->labels.end());
  made->series = ids;
  made->series.metric = &made->metric;
  made->series.source = &made->source;
  made->series.labels = &made->label_set;
  return {made, &made->series};
}

// A layout of such series; `layout` says the rest of it.
inline LayoutPtr MakeLayout(Layout layout, std::vector<SeriesPtr> series) {
  struct Made {
    Layout layout;
    std::vector<SeriesPtr> series;
  };
  const auto made = std::make_shared<Made>();
  made->layout = std::move(layout);
  made->series = std::move(series);
  for (const SeriesPtr& one : made->series) made->layout.series.push_back(one.get());
  return {made, &made->layout};
}

}  // namespace tacho::storage
