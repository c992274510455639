// How names of metrics are compared. Needs the C++ library alone, for trainers.
#pragma once

#include <string>
#include <string_view>

namespace tacho {

// ASCII in lower case, every run of other characters than letters and digits as one '_', none at
// the ends. Empty if there is no letter and no digit.
inline std::string NormalisedName(std::string_view name) {
  std::string normalised;
  normalised.reserve(name.size());
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      normalised.push_back(static_cast<char>(c - 'A' + 'a'));
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      normalised.push_back(c);
    } else if (!normalised.empty() && normalised.back() != '_') {
      normalised.push_back('_');
    }
  }
  if (!normalised.empty() && normalised.back() == '_') normalised.pop_back();
  return normalised;
}

}  // namespace tacho
