// The rules of OpenMetrics for samples of one family, apart from how they are spelt.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/exposition/exposition.h"

namespace tacho {

// The names that a sample of a family of the type may have, beyond the family's name; "" is that
// name itself.
std::span<const absl::string_view> SuffixesOf(FamilyType type);

// Checks a sample by itself. `suffix` is its name without the family's.
absl::Status CheckSample(const ExpositionFamily& family, absl::string_view suffix,
                         const ExpositionSample& sample, bool has_exemplar);

// The labels that the samples of one metric have in common, as one text: samples with the same are
// a group and stand together.
std::string GroupOf(const ExpositionFamily& family, absl::string_view suffix,
                    const ExpositionSample& sample);

// Buckets, sums and counts of a histogram or gauge histogram, with all points of the family.
absl::Status CheckHistogram(const ExpositionFamily& family,
                            std::span<const ExpositionSample> samples);

}  // namespace tacho
