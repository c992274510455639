#include "tests/format/records.h"

#include <algorithm>

namespace format_page {
namespace {

Job* FindJob(uint32_t id, Bytes* key, Records* records) {
  const auto job = records->jobs.find(id);
  if (job != records->jobs.end()) return &job->second;
  key->Fail("a job that the index does not have");
  return nullptr;
}

std::optional<uint32_t> TaskFrom(uint64_t number) {
  if (number == 0) return std::nullopt;
  return static_cast<uint32_t>(number - 1);
}

std::map<std::string, std::string> ReadTexts(Bytes* bytes) {
  std::map<std::string, std::string> texts;
  for (uint64_t left = bytes->Count(); left > 0 && bytes->ok(); --left) {
    std::string name = bytes->String();
    texts[name] = bytes->String();
  }
  return texts;
}

void ReadMetric(Bytes* key, Bytes* value, Job* job) {
  Metric metric;
  metric.type = value->Byte();
  if (metric.type < 1 || metric.type > 3) value->Fail("an unknown type");
  metric.name = value->String();
  metric.unit = value->String();
  metric.help = value->String();
  job->metrics[static_cast<uint32_t>(key->Big(4))] = metric;
}

std::vector<Labels> ReadLabelSets(Bytes* value) {
  std::vector<Labels> sets;
  for (uint64_t left = value->Count(); left > 0 && value->ok(); --left) {
    Labels labels;
    for (uint64_t pairs = value->Count(); pairs > 0 && value->ok(); --pairs) {
      std::string name = value->String();
      labels.emplace_back(std::move(name), value->String());
    }
    if (!std::is_sorted(labels.begin(), labels.end())) value->Fail("labels out of order");
    sets.push_back(std::move(labels));
  }
  return sets;
}

void ReadSeries(Bytes* key, Bytes* value, Job* job) {
  uint64_t id = key->Big(8);
  if (value->Varint() != job->series.size()) value->Fail("another number of series before");
  Series series;
  series.task = TaskFrom(value->Varint());
  series.host = value->String();
  const std::vector<Labels> sets = ReadLabelSets(value);
  int64_t metric = 0;
  for (uint64_t left = value->Count(); left > 0 && value->ok(); --left) {
    metric += value->Zigzag();
    series.metric = static_cast<uint32_t>(metric);
    if (!job->metrics.contains(series.metric)) value->Fail("a metric that there is not");
    const uint64_t set = value->Varint();
    if (set >= sets.size()) {
      value->Fail("a label set that there is not");
      return;
    }
    series.labels = sets[set];
    job->series[id++] = series;
  }
}

void ReadLayout(Bytes* key, Bytes* value, Job* job) {
  Layout& layout = job->layouts[key->Big(8)];
  layout.attempt = static_cast<uint32_t>(value->Varint());
  layout.has_steps = value->Byte() == 1;
  uint64_t next = 0;
  for (uint64_t left = value->Count(); left > 0 && value->ok(); --left) {
    next += static_cast<uint64_t>(value->Zigzag());
    const uint64_t length = value->Varint();
    for (uint64_t i = 0; i < length && value->ok(); ++i, ++next) {
      layout.series.push_back(next);
      if (layout.series.size() > 1'048'576) value->Fail("too many columns");
    }
  }
}

Extent ReadExtent(Bytes* bytes) {
  Extent extent;
  extent.first_time = bytes->Zigzag();
  extent.last_time = bytes->Zigzag();
  if (bytes->Byte() == 1) {
    extent.first_step = bytes->Zigzag();
    extent.last_step = bytes->Zigzag();
  }
  return extent;
}

void ReadDurable(Bytes* key, Bytes* value, Records* records) {
  const std::string agent(key->Take(std::max<size_t>(key->size(), 8) - 8));
  std::vector<SequenceRange>& ranges = records->durable[{agent, key->Big(8)}];
  uint64_t last = value->Varint();
  if (last > 0) ranges.emplace_back(1, last);
  for (uint64_t left = value->Count(); left > 0 && value->ok(); --left) {
    const uint64_t first = value->Varint();
    if (first < last + 2) value->Fail("ranges that leave no sequence out");
    last = value->Varint();
    if (last < first) value->Fail("a range that ends before it begins");
    ranges.emplace_back(first, last);
  }
  if (value->size() > 0) value->Take(4);  // The day of the write.
}

void ReadTask(Bytes* key, Bytes* value, Job* job) {
  std::optional<uint32_t> number;
  if (key->Byte() == 1) number = static_cast<uint32_t>(key->Big(4));
  Task& task = job->tasks[{number, key->Rest()}];
  task.extent = ReadExtent(value);
  task.attempt = static_cast<uint32_t>(value->Varint());
}

void ReadTotals(Bytes* value, Totals* totals) {
  totals->extent = ReadExtent(value);
  totals->attempts = value->Varint();
  totals->tasks = value->Varint();
  totals->hosts = value->Varint();
}

}  // namespace

void Extent::Include(int64_t time, std::optional<int64_t> step) {
  first_time = std::min(first_time, time);
  last_time = std::max(last_time, time);
  if (!step.has_value()) return;
  first_step = std::min(first_step.value_or(*step), *step);
  last_step = std::max(last_step.value_or(*step), *step);
}

void ReadIndexRecord(Bytes key, Bytes value, Records* records) {
  const uint8_t kind = key.Byte();
  if (kind == 'N') {
    for (int i = 0; i < 3; ++i) value.Varint();
  } else if (const auto id = static_cast<uint32_t>(key.Big(4)); kind == 'J') {
    records->jobs[id].name = value.Rest();
  } else if (Job* const job = FindJob(id, &key, records); job == nullptr) {
    return;
  } else if (kind == 'M') {
    ReadMetric(&key, &value, job);
  } else if (kind == 'S') {
    ReadSeries(&key, &value, job);
  } else if (kind == 'L') {
    ReadLayout(&key, &value, job);
  } else {
    key.Fail("an unknown kind of record");
  }
  key.ExpectEnd();
  value.ExpectEnd();
}

void ReadStateRecord(Bytes key, Bytes value, Records* records) {
  const uint8_t kind = key.Byte();
  if (kind == 'O') {
    ReadDurable(&key, &value, records);
  } else if (kind == 'C') {
    records->commits = {value.Varint(), value.Varint(), value.Varint(), value.Zigzag()};
  } else if (Job* const job = FindJob(static_cast<uint32_t>(key.Big(4)), &key, records);
             job == nullptr) {
    return;
  } else if (kind == 'A') {
    job->attempts[static_cast<uint32_t>(key.Big(4))].extent = ReadExtent(&value);
  } else if (kind == 'B') {
    job->attempts[static_cast<uint32_t>(key.Big(4))].attributes = ReadTexts(&value);
  } else if (kind == 'J') {
    ReadTotals(&value, &job->totals);
  } else if (kind == 'K') {
    ReadTask(&key, &value, job);
  } else if (kind == 'P') {
    const uint64_t layout = key.Big(8);
    if (!job->layouts.contains(layout)) key.Fail("a layout that the index does not have");
    job->layouts[layout].sealed = value.Varint();
  } else {
    key.Fail("an unknown kind of record");
  }
  key.ExpectEnd();
  value.ExpectEnd();
}

void ReadEventRecord(Bytes key, Bytes value, Records* records) {
  const uint32_t job = static_cast<uint32_t>(key.Big(4));
  Event event;
  event.time = key.KeyTime();
  key.Big(8);
  event.task = TaskFrom(value.Varint());
  event.attempt = static_cast<uint32_t>(value.Varint());
  event.host = value.String();
  if (value.Byte() == 1) event.step = value.Zigzag();
  event.kind = value.String();
  event.message = value.String();
  event.fields = ReadTexts(&value);
  key.ExpectEnd();
  value.ExpectEnd();
  records->events[job].push_back(std::move(event));
}

}  // namespace format_page
