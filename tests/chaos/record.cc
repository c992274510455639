#include "tests/chaos/record.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::chaos {
namespace {

constexpr size_t kExamples = 5;

std::string Text(const SeriesKey& key, const Sample& sample) {
  return absl::StrFormat("%s{task=%d} time %d step %d attempt %d bits %016x", key.metric, key.task,
                         sample.time_ns, sample.step, sample.attempt, sample.bits);
}

std::string Text(const Happening& event) {
  return absl::StrFormat("event \"%s\" task %d attempt %d time %d step %d", event.message,
                         event.task, event.attempt, event.time_ns, event.step);
}

// Collects examples, and says how many more there are.
class Complaints {
 public:
  explicit Complaints(std::string kind) : kind_(std::move(kind)) {}
  void Add(const std::string& example) {
    if (++count_ <= kExamples) absl::StrAppend(&text_, "  ", kind_, ": ", example, "\n");
  }
  std::string Take() {
    if (count_ > kExamples) absl::StrAppend(&text_, "  … ", count_, " in all\n");
    return std::move(text_);
  }

 private:
  const std::string kind_;
  size_t count_ = 0;
  std::string text_;
};

const std::vector<Sample>& Of(const Record& record, const SeriesKey& key) {
  static const auto* const none = new std::vector<Sample>();
  const auto found = record.samples.find(key);
  return found == record.samples.end() ? *none : found->second;
}

}  // namespace

uint64_t Record::sample_count() const {
  uint64_t count = 0;
  for (const auto& [key, samples_of_key] : samples) count += samples_of_key.size();
  return count;
}

std::string Aliens(const Record& recorded, const Record& found) {
  Complaints complaints("stored and not recorded, or more than once");
  for (const auto& [key, samples] : found.samples) {
    std::vector<Sample> extra;
    const std::vector<Sample>& known = Of(recorded, key);
    // A sample that is there twice is in the difference of the two multisets.
    std::set_difference(samples.begin(), samples.end(), known.begin(), known.end(),
                        std::back_inserter(extra));
    for (const Sample& sample : extra) complaints.Add(Text(key, sample));
    if (!std::is_sorted(samples.begin(), samples.end())) {
      complaints.Add(absl::StrCat(key.metric, " is not in the order of time"));
    }
  }
  std::vector<Happening> extra;
  std::set_difference(found.events.begin(), found.events.end(), recorded.events.begin(),
                      recorded.events.end(), std::back_inserter(extra));
  for (const Happening& event : extra) complaints.Add(Text(event));
  return complaints.Take();
}

std::string Missing(const Record& recorded, const std::vector<Record>& found) {
  Complaints complaints("recorded and not stored");
  for (const auto& of_series : recorded.samples) {
    const auto& key = of_series.first;
    for (const Sample& sample : of_series.second) {
      const bool is_there = std::any_of(found.begin(), found.end(), [&](const Record& record) {
        const std::vector<Sample>& of_key = Of(record, key);
        return std::binary_search(of_key.begin(), of_key.end(), sample);
      });
      if (!is_there) complaints.Add(Text(key, sample));
    }
  }
  for (const Happening& event : recorded.events) {
    const bool is_there = std::any_of(found.begin(), found.end(), [&](const Record& record) {
      return std::binary_search(record.events.begin(), record.events.end(), event);
    });
    if (!is_there) complaints.Add(Text(event));
  }
  return complaints.Take();
}

std::string AttributeDifferences(const Record& recorded, const Record& found) {
  Complaints complaints("attribute");
  for (const auto& [attempt, values] : recorded.attributes) {
    const auto known = found.attributes.find(attempt);
    for (const auto& [key, value] : values) {
      const bool there = known != found.attributes.end() && known->second.contains(key);
      const std::string stored = there ? known->second.at(key) : "nothing";
      if (stored != value) {
        complaints.Add(
            absl::StrCat(key, " of attempt ", attempt, " is ", stored, ", recorded was ", value));
      }
    }
  }
  return complaints.Take();
}

uint64_t CountShared(const Record& a, const Record& b) {
  uint64_t shared = 0;
  for (const auto& [key, samples] : a.samples) {
    const std::vector<Sample>& others = Of(b, key);
    shared += static_cast<uint64_t>(
        std::count_if(samples.begin(), samples.end(), [&others](const Sample& sample) {
          return std::binary_search(others.begin(), others.end(), sample);
        }));
  }
  return shared;
}

}  // namespace tacho::chaos
