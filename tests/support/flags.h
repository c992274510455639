// Flags of a test's program: "--name VALUE", and "--name" alone for a switch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tacho::testing {

// Where the value of each flag goes, by its name without dashes. Not owned.
using Flags = std::map<absl::string_view, std::variant<std::string*, uint64_t*, bool*>>;

// False if a flag is not known, has no value, or its number is none.
inline bool ParseFlags(int argc, char** argv, const Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view name = argv[i];
    const auto found = absl::ConsumePrefix(&name, "--") ? flags.find(name) : flags.end();
    if (found == flags.end()) return false;
    if (auto* const* on = std::get_if<bool*>(&found->second)) {
      **on = true;
      continue;
    }
    if (++i == argc) return false;
    if (auto* const* text = std::get_if<std::string*>(&found->second)) {
      **text = argv[i];
    } else if (!absl::SimpleAtoi(argv[i], std::get<uint64_t*>(found->second))) {
      return false;
    }
  }
  return true;
}

}  // namespace tacho::testing
