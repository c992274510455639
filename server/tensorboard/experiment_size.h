// How much an experiment shows, as TensorBoard's page has it: in words. The members of a cluster
// add their parts up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::tb {

struct ExperimentSize {
  uint64_t jobs = 0;
  uint64_t runs = 0;
  uint64_t left_out = 0;  // Further jobs that match.
};

std::string SizeInWords(const ExperimentSize& size);
// nullopt if SizeInWords() does not write such a text.
std::optional<ExperimentSize> SizeFromWords(absl::string_view words);

}  // namespace tacho::server::tb
